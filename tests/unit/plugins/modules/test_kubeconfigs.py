# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kubeconfig that is no good gets one clear error from every module, soon, and none of its secrets is told."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import FakeApi, serving
from unit.plugins.support.modules import ModuleRunner

MODULES = Path(__file__).parents[4] / "plugins/modules"
# What each module needs beside a kubeconfig.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "access_account": {"namespace": "a", "name": "b", "roles": ["drain"]},
    "access_kubeconfig": {"namespace": "a", "name": "b", "path": "{folder}/out"},
    "access_review": {"roles": ["drain"]},
    "cluster_snapshot": {"path": "{folder}/out"},
    "maintenance_plan": {"nodes": ["n1"], "path": "{folder}/out"},
    "maintenance_run": {"run": "patch"},
    "node_drain": {"name": "n1", "owner": "patch"},
    "node_maintenance": {"name": "n1", "owner": "patch"},
    "node_readiness": {"name": "n1"},
    "node_topology": {"topology": [{"nodes": ["n1"], "zone": "a"}]},
    "pod_eviction": {"pods": [{"namespace": "a", "name": "b"}]},
    "rebalance_plan": {},
    "vmi_migration": {"namespace": "a", "name": "b", "target_node": "n1"},
    "vmi_replicaset": {"namespace": "a", "name": "b", "state": "absent"},
}
SECRET = "open-sesame"
# Each takes seconds, so one module has to do.
SLOW = ("a program that never ends", "a megabyte of text", "a megabyte of rubbish", "deep nesting")
Config = dict[str, Any]


def user(**fields: Any) -> Callable[[Config], Any]:
    def change(config: Config) -> None:
        config["users"][0]["user"] = fields

    return change


def cluster(**fields: Any) -> Callable[[Config], Any]:
    return lambda config: config["clusters"][0]["cluster"].update(fields)


def plain_http(config: Config) -> None:
    found = config["clusters"][0]["cluster"]
    found["server"] = found["server"].replace("https:", "http:")


def program(script: str, command: str = "sh") -> Callable[[Config], Any]:
    """As credentials, what a program prints."""
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": ["-c", script]}
    return user(exec={**run, "env": [{"name": "TOKEN", "value": SECRET}], "interactiveMode": "Never"})


BOMB = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in itertools.pairwise("abcdefghi")
)
# What the client library cannot make credentials of, it goes without.
UNKNOWN_USER = "check the credentials"
SETTINGS = "its settings are not usable"
# How a good one is spoilt, or what stands in its place, and what has to be said.
BAD: dict[str, tuple[Callable[[Config], Any] | str | bytes, str]] = {
    "no YAML": ("clusters: [", SETTINGS),
    "a list": ("- a\n- b\n", SETTINGS),
    "a line of text": ("just text", SETTINGS),
    "nothing": ("", SETTINGS),
    "a megabyte of rubbish": (b"\x00\xff\x1b[2J" * 200_000, SETTINGS),
    "a megabyte of text": ("a" * (1 << 20), SETTINGS),
    "deep nesting": ("[" * 500, SETTINGS),
    "a bomb of anchors": (BOMB, SETTINGS),
    "no current context": (lambda config: config.pop("current-context"), SETTINGS),
    "an unknown context": (lambda config: config.update({"current-context": "elsewhere"}), SETTINGS),
    "an unknown user": (lambda config: config["contexts"][0]["context"].update(user="nobody"), UNKNOWN_USER),
    "an unknown cluster": (lambda config: config["contexts"][0]["context"].update(cluster="nowhere"), SETTINGS),
    "no server": (lambda config: config["clusters"][0].update(cluster={}), SETTINGS),
    "a server that is a number": (cluster(server=5), SETTINGS),
    "a server's name that is a number": (cluster(**{"tls-server-name": 5}), SETTINGS),
    "a server that is no address": (cluster(server="sesame street"), ""),
    "plain http": (plain_http, ""),
    "another port": (cluster(server="https://127.0.0.1:9"), "connection refused"),
    "an unknown host": (cluster(server="https://cluster.invalid"), "the host's name cannot be resolved"),
    "a proxy that does not answer": (
        cluster(**{"proxy-url": f"http://me:{SECRET}@127.0.0.1:9"}),
        "the proxy on the way",
    ),
    "an authority that is none": (cluster(**{"certificate-authority-data": "bm8="}), ""),
    "an authority that is no base64": (cluster(**{"certificate-authority-data": "%%%"}), "no secure connection"),
    "an authority that is not there": (
        lambda config: config["clusters"][0].update(
            cluster={"server": config["clusters"][0]["cluster"]["server"], "certificate-authority": "/nowhere/ca.crt"}
        ),
        "/nowhere/ca.crt",
    ),
    "a key that is none": (user(**{"client-certificate-data": "bm8=", "client-key-data": "bm8="}), ""),
    "a token that is refused": (user(token=f"not-{SECRET}"), "check the credentials"),
    "a program that is not there": (
        user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/x"}),
        "",
    ),
    "a program that fails": (program(f"echo {SECRET} >&2; exit 1"), UNKNOWN_USER),
    "a program that says nothing": (program("true"), UNKNOWN_USER),
    "a program that prints rubbish": (program("echo $TOKEN"), UNKNOWN_USER),
    "a program that never ends": (
        program("exec sleep 20"),
        "the command sh of the kubeconfig gave none within 1 seconds",
    ),
}


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[FakeApi]:
    fake = FakeApi(token=SECRET)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])) as running:
        yield running


@pytest.fixture
def kubeconfig(server: FakeApi, authority: Authority, tmp_path: Path) -> Path:
    return write_kubeconfig(tmp_path / "config.yaml", server.url, authority.cert, {"token": SECRET})


def spoil(kubeconfig: Path, bad: Callable[[Config], Any] | str | bytes) -> None:
    if callable(bad):
        config = yaml.safe_load(kubeconfig.read_text())
        bad(config)
        kubeconfig.write_text(yaml.safe_dump(config))
    else:
        kubeconfig.write_bytes(bad.encode() if isinstance(bad, str) else bad)


# An address without a scheme is urllib3's to complain of.
@pytest.mark.filterwarnings("ignore:URLs without a scheme")
@pytest.mark.parametrize("name", BAD)
def test_one_clear_error_from_every_module(
    name: str, kubeconfig: Path, run_module: ModuleRunner, tmp_path: Path
) -> None:
    bad, words = BAD[name]
    spoil(kubeconfig, bad)
    for module, arguments in list(ARGUMENTS.items())[: 1 if name in SLOW else None]:
        main = importlib.import_module(f"ansible_collections.virtops.kubevirt.plugins.modules.{module}").main
        given = json.loads(json.dumps(arguments).replace("{folder}", str(tmp_path)))
        patience = 1 if name == "a program that never ends" else 30
        result = run_module(main, kubeconfig=str(kubeconfig), request_timeout=patience, **given)
        message = result["msg"]
        assert result["failed"], module
        assert words.lower() in message.lower(), (module, message)
        assert message.isprintable(), (module, message)
        assert len(message) < 1000, (module, len(message))
        assert message.startswith("Cannot "), (module, message)
        assert result["error"]["remedy"] in message, module
        assert SECRET not in json.dumps(result), (module, message)
    assert not (tmp_path / "out").exists()


def test_a_good_one_gets_further(kubeconfig: Path, run_module: ModuleRunner, tmp_path: Path) -> None:
    main = importlib.import_module("ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot").main
    result = run_module(main, kubeconfig=str(kubeconfig), path=str(tmp_path / "out"))
    assert "KubeVirt is not deployed" in result["msg"]


def test_of_one_that_is_given_by_its_content_the_secrets_alone_are_hidden(
    kubeconfig: Path, run_module: ModuleRunner
) -> None:
    """Cluster, context and user have names that stand in much that a task tells."""
    config = yaml.safe_load(kubeconfig.read_text())
    hidden = [f"https://me:hush-{number}@elsewhere" for number in range(12)]
    extensions = [{"name": "x", "extension": {"note": hidden[11]}}]
    config["clusters"] = [
        {"name": "default", "cluster": {**config["clusters"][0]["cluster"], "proxy-url": hidden[0]}},
        {"name": "b", "cluster": {"server": hidden[1], "extensions": extensions}},
    ]
    config["contexts"] = [
        {"name": "default", "context": {"cluster": "default", "user": "admin", "namespace": "shop"}},
        {"name": hidden[2], "context": {"cluster": hidden[2], "user": "b"}},
    ]
    program = {"command": "login", "args": [hidden[3]], "env": [{"name": "shop", "value": hidden[4]}]}
    provider = {"name": "oidc", "config": {"id-token": hidden[5], "deep": {"er": [hidden[6]]}}}
    ways = {"password": hidden[7], "client-key-data": hidden[8], "colour": [{"of": hidden[9]}], "token": hidden[2]}
    config["users"] = [
        {"name": "admin", "user": {"token": SECRET}},
        {"name": "b", "user": {**ways, "exec": program, "auth-provider": provider, "username": "admin"}},
    ]
    config["current-context"] = "default"
    config["more"] = {"kind": hidden[10]}
    main = importlib.import_module("ansible_collections.virtops.kubevirt.plugins.modules.pod_eviction").main
    pods = [{"namespace": "default", "name": " ".join(["admin", "shop", *hidden, SECRET])}]
    cases: list[tuple[dict[str, Any], str]] = [({}, "default admin"), ({"api_key": "default"}, "admin")]
    for given, told in cases:
        result = json.dumps(run_module(main, kubeconfig=config, pods=pods, **given))
        assert [secret for secret in (SECRET, *hidden) if secret in result] == []
        assert all(word in result for word in [*told.split(), "login", "oidc", "shop"]), result
        assert ("default" in result) is ("default" in told)


def shown(run_module: ModuleRunner, kubeconfig: Path, words: list[str], change: Callable[[Config], Any]) -> list[str]:
    """Which of the words a result shows, of a task that has them all in its options beside a kubeconfig's content."""
    config = yaml.safe_load(kubeconfig.read_text())
    change(config)
    main = importlib.import_module("ansible_collections.virtops.kubevirt.plugins.modules.pod_eviction").main
    result = run_module(main, kubeconfig=config, pods=[{"namespace": word, "name": "a"} for word in words])
    told = [pod["namespace"] for pod in result["invocation"]["module_args"]["pods"]]
    return [word for word in words if word in told]


def by_program(**run: Any) -> Callable[[Config], Any]:
    """One more user, whose credentials a program gives."""
    version = {"apiVersion": "client.authentication.k8s.io/v1beta1"}
    return lambda config: config["users"].append({"name": "cloud", "user": {"exec": {**version, **run}}})


EKS = {
    "command": "aws",
    "args": [*("--region", "eu-west-1", "eks", "get-token", "--cluster-name", "prod", "--output", "json"), SECRET],
    "env": [
        {"name": "AWS_PROFILE", "value": "default"},
        {"name": "AWS_SESSION_TOKEN", "value": "hush-0"},
        {"AWS_PROFILE": {"value": "hush-1"}},
    ],
}
GKE = {
    "command": "gke-gcloud-auth-plugin",
    "args": ["--use_application_default_credentials", "-phush", "--account=hush@example", "hush", "--", "hush-2"],
    "env": None,
    "installHint": "Install gke-gcloud-auth-plugin",
    "provideClusterInfo": True,
}
AKS = {
    "command": "kubelogin",
    "args": [
        *("get-token", "--environment", "AzurePublicCloud", "--server-id", "6dae42f8", "--client-id", "80faf920"),
        *(
            "--tenant-id",
            "common",
            "--login",
            "spn",
            "--client-secret",
            "hush",
            "-t",
            "hush-t",
            "--output",
            "--password",
        ),
        "hush-3",
    ],
    "env": [{"name": "AAD_SERVICE_PRINCIPAL_CLIENT_SECRET", "value": "hush-4"}, {"name": ["x"], "value": "hush-5"}],
}


@pytest.mark.parametrize(
    ("program", "told", "hidden"),
    [
        (EKS, "aws --region eu-west-1 eks get-token --cluster-name prod json default", f"{SECRET} hush-0 hush-1"),
        (
            GKE,
            "True None --use_application_default_credentials -- Install",
            "hush hush-2 -phush --account=hush@example",
        ),
        (
            AKS,
            "get-token AzurePublicCloud 6dae42f8 80faf920 common spn -t --password",
            "hush hush-t hush-3 hush-4 hush-5",
        ),
    ],
    ids=["EKS", "GKE", "AKS"],
)
def test_what_a_cloud_calls_its_program_with_is_shown(
    kubeconfig: Path, run_module: ModuleRunner, program: Config, told: str, hidden: str
) -> None:
    """Its words stand in much that a task tells, such as the `json` of a file's name."""
    words = [*told.split(), *hidden.split()]
    assert shown(run_module, kubeconfig, words, by_program(**program)) == told.split()


OIDC = {
    "client-id": "kubernetes",
    "idp-issuer-url": "https://idp.example/realm",
    "client-secret": "hush",
    "id-token": "hush-1",
    "refresh-token": "hush-2",
}
AZURE = {
    "apiserver-id": "6dae42f8",
    "client-id": "80faf920",
    "tenant-id": "common",
    "environment": "AzurePublicCloud",
    "config-mode": "1",
    "expires-in": "3600",
    "expires-on": "1700000000",
    "access-token": "hush",
    "idp-issuer-url": "https://me:hush-1@idp",
}


@pytest.mark.parametrize("settings", [OIDC, AZURE])
def test_of_what_gives_tokens_only_where_and_as_whom_is_shown(
    kubeconfig: Path, run_module: ModuleRunner, settings: dict[str, str]
) -> None:
    """A `1` that is hidden stands in most of what a task tells, such as the path of a snapshot."""
    words = list(settings.values())
    other = {"name": "b", "user": {"auth-provider": {"name": "oidc", "config": settings}}}
    told = shown(run_module, kubeconfig, words, lambda config: config["users"].append(other))
    assert told == [word for word in words if "hush" not in word]


@pytest.mark.parametrize("part", ["clusters", "contexts"])
def test_of_notes_on_a_cluster_those_of_minikube_are_shown(
    kubeconfig: Path, run_module: ModuleRunner, part: str
) -> None:
    note = {"last-update": "Mon, 02 Jan 2006 15:04:05 MST", "provider": "minikube.sigs.k8s.io", "version": "v1.38.0"}

    def change(config: Config) -> None:
        inner = config[part][0][part.removesuffix("s")]
        inner["extensions"] = [{"name": "info", "extension": {**note, "more": "hush", "deep": {"version": "hush-1"}}}]

    assert shown(run_module, kubeconfig, ["info", *note.values(), "hush", "hush-1"], change) == ["info", *note.values()]


@pytest.mark.parametrize("path", ["/etc/pki/hush.key", "./hush", "../hush.pem", "~/.kube/hush"])
@pytest.mark.parametrize("key", ["client-key", "client-certificate", "tokenFile"])
def test_a_path_is_shown(kubeconfig: Path, run_module: ModuleRunner, key: str, path: str) -> None:
    other = {"name": "b", "user": {key: path}}
    assert shown(run_module, kubeconfig, [path], lambda config: config["users"].append(other)) == [path]


PEM = "-----BEGIN PRIVATE KEY-----\nhush"
TOO_LONG = f"/{'a' * 255}"


@pytest.mark.parametrize(
    ("part", "mistake", "secret"),
    [
        *(
            ("users", {"user": {key: text}}, text)
            for key in ("client-key", "client-certificate", "tokenFile")
            for text in (PEM, "hush", TOO_LONG, "/hush\n/hush", "/hush==")
        ),
        ("clusters", {"cluster": {"certificate-authority": PEM}}, PEM),
        ("clusters", {"cluster": {"server": "https://h/?token=hush"}}, "https://h/?token=hush"),
        ("users", {"name": ["hush"]}, "hush"),
        ("users", {"name": {"name": "hush"}}, "hush"),
        ("users", [{"name": "hush"}], "hush"),
        ("contexts", {"context": [{"user": "hush"}]}, "hush"),
        ("users", {"user": {"exec": {"args": {"--region": "hush"}}}}, "hush"),
        ("users", {"user": {"exec": {"env": [{"AWS_PROFILE": "hush"}]}}}, "hush"),
    ],
)
def test_a_secret_in_the_wrong_place_is_hidden(
    kubeconfig: Path, run_module: ModuleRunner, part: str, mistake: Any, secret: str
) -> None:
    assert shown(run_module, kubeconfig, [secret], lambda config: config[part].append(mistake)) == []


def test_a_mapping_in_place_of_a_list_is_hidden(kubeconfig: Path, run_module: ModuleRunner) -> None:
    def change(config: Config) -> None:
        config["users"] = {"name": "hush", "user": {"username": "hush-1"}}
        config["clusters"] = {"name": "hush-2"}

    assert shown(run_module, kubeconfig, ["hush", "hush-1", "hush-2"], change) == []


def test_every_module_that_talks_to_a_cluster_is_tried() -> None:
    assert sorted(ARGUMENTS) == sorted(path.stem for path in MODULES.glob("*.py") if "connect" in path.read_text())

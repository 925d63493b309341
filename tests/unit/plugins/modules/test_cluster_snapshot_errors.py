# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each thing that goes wrong gives one sentence with what to do, and leaves the file as it was."""

from __future__ import annotations

import datetime
import errno
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import REVIEWS, Answer, FakeApi, Request, refusal, serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.objects import kubevirt, pod

EARLIER = "an earlier snapshot"


class Fail(Protocol):
    """Run the module, which must fail and leave the earlier file alone; whatever is given replaces an argument."""

    def __call__(self, **arguments: Any) -> Result: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "snapshots" / "cluster.json"
    path.parent.mkdir()
    path.write_text(EARLIER)
    return path


@pytest.fixture
def fail(run_module: ModuleRunner, connection: dict[str, str], file: Path) -> Fail:
    def run(**arguments: Any) -> Result:
        given = {**connection, "path": str(file), **arguments}
        result = run_module(main, **{name: value for name, value in given.items() if value is not None})
        assert result["failed"], result
        assert file.read_text() == EARLIER
        assert list(file.parent.iterdir()) == [file]
        assert "\n" not in result["msg"]
        assert result["error"]["remedy"] in result["msg"]
        return result

    return run


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_nobody_listens(fail: Fail) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and nobody listens there
        port = nobody.getsockname()[1]
        result = fail(host=f"https://127.0.0.1:{port}")
    assert result["error"]["reason"] == "ConnectionRefused"
    assert f"Cannot connect to the Kubernetes API (https://127.0.0.1:{port}): connection refused." in result["msg"]


def test_a_server_out_of_a_kubeconfig_is_named(fail: Fail, authority: Authority, tmp_path: Path) -> None:
    """Ansible strikes the kubeconfig's path from results; the address is what helps anyway."""
    kubeconfig = write_kubeconfig(tmp_path / "config.yaml", "https://127.0.0.1:9", authority.cert, {"token": "x"})
    result = fail(host=None, api_key=None, ca_cert=None, kubeconfig=str(kubeconfig))
    assert result["error"]["object"] == "https://127.0.0.1:9"


def test_the_name_is_unknown(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    def know_none(*_given: Any, **_more: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", know_none)
    result = fail(host="https://cluster.invalid:6443")
    assert result["error"]["reason"] == "NameUnknown"
    assert "Check the address and the DNS." in result["msg"]


def test_the_server_is_silent(fail: Fail, silent_port: int) -> None:
    result = fail(host=f"https://127.0.0.1:{silent_port}", request_timeout=1)
    assert result["error"]["reason"] == "Timeout"
    assert "there was no answer in time" in result["msg"]


@pytest.mark.parametrize(
    ("lifetime", "host", "trusted", "words"),
    [
        (datetime.timedelta(minutes=-1), "127.0.0.1", True, ["certificate has expired", "Renew"]),
        (datetime.timedelta(days=1), "192.0.2.1", True, ["IP address mismatch", "that the certificate holds"]),
        (datetime.timedelta(days=1), "127.0.0.1", False, ["unable to get local issuer", "ca_cert"]),
    ],
    ids=["expired", "for another host", "of an unknown authority"],
)
def test_the_servers_certificate_is_not_valid(
    fail: Fail, tmp_path: Path, lifetime: datetime.timedelta, host: str, trusted: bool, words: list[str]
) -> None:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    own, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    own.lifetime = lifetime
    with serving(FakeApi(), own.issue("server", "server", hosts=[host])) as api:
        result = fail(host=api.url, ca_cert=str((own if trusted else other).cert))
    assert result["error"]["reason"] == "CertificateInvalid"
    assert all(word in result["msg"] for word in words), result["msg"]


def test_the_server_speaks_no_tls(fail: Fail) -> None:
    with serving(FakeApi(), None) as api:
        result = fail(host=api.url.replace("http:", "https:"))
    assert result["error"]["reason"] == "TlsFailed"


def test_the_credentials_are_refused(fail: Fail, api: FakeApi) -> None:
    api.faults["/version"] = lambda request: refusal(401, "Unauthorized", "Unauthorized")
    result = fail()
    assert result["error"]["status"] == 401
    assert "the client certificate may have expired, or the token be wrong" in result["msg"]
    assert "open-sesame" not in str(result)


def test_all_missing_permissions_are_named_with_the_rules_that_grant_them(fail: Fail, api: FakeApi) -> None:
    api.forbidden = {"pods", "nodes", "vmis"}
    result = fail()
    assert result["error"]["status"] == 403
    assert result["error"]["missing_rules"] == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
        {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstances"], "verbs": ["list"]},
    ]
    assert "nodes, virtualmachineinstances.kubevirt.io, pods in all namespaces is missing" in result["msg"]
    assert 'User "jane"' in result["msg"]


def test_permissions_of_all_kinds_are_asked_for_at_once(fail: Fail, api: FakeApi) -> None:
    """Also when the very first list, which is read alone, is refused."""
    api.forbidden = {"kubevirts", "pods"}
    assert len(fail()["error"]["missing_rules"]) == 2


def test_who_may_not_ask_is_told_what_is_known(fail: Fail, api: FakeApi) -> None:
    api.forbidden = {"pods"}
    api.faults[REVIEWS] = lambda request: refusal(403, "Forbidden", "no reviews")
    result = fail()
    assert result["error"]["attempted"] == "list pods in all namespaces"
    assert "Grant the permission" in result["msg"]


def test_kubevirt_is_not_installed(fail: Fail, api: FakeApi) -> None:
    api.unserve("kubevirts")
    result = fail()
    assert result["error"]["reason"] == "KubeVirtNotInstalled"
    assert "Install KubeVirt, or check that host, kubeconfig and context" in result["msg"]
    assert not api.asked("pods")


@pytest.mark.parametrize(
    ("objects", "words"),
    [([], "does not exist"), ([kubevirt("Deploying")], "is in phase Deploying"), ([kubevirt(None)], "phase unknown")],
)
def test_kubevirt_is_not_deployed(fail: Fail, api: FakeApi, objects: list[dict[str, Any]], words: str) -> None:
    api.lists["kubevirts"] = objects
    result = fail()
    assert result["error"]["reason"] == "KubeVirtNotDeployed"
    assert words in result["msg"]


def test_a_kind_that_placement_needs_is_not_served(fail: Fail, api: FakeApi) -> None:
    api.unserve("vmis")
    assert "does not serve virtualmachineinstances.kubevirt.io" in fail()["msg"]


def test_pages_always_expire(fail: Fail, api: FakeApi) -> None:
    def expire(request: Request) -> Answer | None:
        return (
            refusal(410, "Expired", "The provided continue parameter is too old")
            if request.query.get("continue")
            else None
        )

    api.lists["pods"] = [pod("a"), pod("b")]
    api.fail("pods", expire)
    result = fail(page_size=1)
    assert (result["error"]["status"], result["error"]["reason"]) == (410, "Expired")
    assert "grew too old 3 times" in result["msg"]
    assert "Raise page_size" in result["msg"]
    assert len(api.asked("pods")) == 6


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (
            Answer(200, {"metadata": {}, "items": [pod("a")]}, cut=20),
            "ConnectionLost",
            "before the answer was complete",
        ),
        (Answer(200, b"<html>Log in</html>"), "NotJson", "not of a web page or proxy"),
        (Answer(502, b"<html>Bad Gateway</html>"), "Bad Gateway", "answered 502, Bad Gateway"),
        (refusal(500, "InternalError", "etcdserver: request timed out"), "InternalError", "request timed out"),
        (refusal(429, "TooManyRequests", "try again"), "TooManyRequests", "page_size if the task has one"),
    ],
    ids=["cut", "web page", "proxy", "internal", "overload"],
)
def test_a_list_is_not_answered(fail: Fail, api: FakeApi, answer: Answer, reason: str, words: str) -> None:
    api.fail("pods", lambda request: answer)
    result = fail()
    assert result["error"]["reason"] == reason
    assert result["error"]["attempted"] == "list pods in all namespaces"
    assert words in result["msg"]


@pytest.mark.parametrize(
    "content",
    [
        "clusters: [",
        "- a\n- b\n",
        "just text",
        "clusters: []\n",
        yaml.safe_dump({"current-context": "a", "contexts": [], "clusters": [], "users": []}),
        "users:\n- user: {token: secret-token\n",
    ],
)
def test_the_kubeconfig_is_malformed(fail: Fail, tmp_path: Path, content: str) -> None:
    kubeconfig = tmp_path / "config.yaml"
    kubeconfig.write_text(content)
    result = fail(host=None, api_key=None, ca_cert=None, kubeconfig=str(kubeconfig))
    assert result["error"]["reason"] == "SettingsInvalid"
    assert "Check the kubeconfig and its context" in result["msg"]
    assert "secret-token" not in str(result)


def test_the_kubeconfig_does_not_exist(fail: Fail, tmp_path: Path) -> None:
    result = fail(host=None, api_key=None, ca_cert=None, kubeconfig=str(tmp_path / "missing.yaml"))
    assert result["error"]["reason"] == "SettingsInvalid"


def test_the_authority_file_does_not_exist(fail: Fail, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.crt")
    result = fail(ca_cert=missing)
    assert "No such file" in result["msg"]


def test_the_disk_is_full(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = fail()
    assert result["error"]["reason"] == "ENOSPC"
    assert "No space left on device. Free some space there" in result["msg"]


def test_the_file_may_not_grow_that_large(fail: Fail, api: FakeApi) -> None:
    """The one way in which the system itself refuses to write that needs no privileges."""
    api.lists["pods"] = [pod(f"p{number}") for number in range(1000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        result = fail()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result["error"]["reason"] == "EFBIG"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing/cluster.json", "ENOENT"), ("", "EISDIR"), ("cluster.json/cluster.json", "ENOTDIR")],
)
def test_the_path_is_wrong(fail: Fail, api: FakeApi, file: Path, path: str, reason: str) -> None:
    result = fail(path=str(file.parent / path))
    assert result["error"]["reason"] == reason
    assert not api.requests, "a path that cannot be written is found before the cluster is read"


def test_the_folder_cannot_be_made(fail: Fail, api: FakeApi, file: Path) -> None:
    result = fail(path=str(file / "folder/cluster.json"), create_folder=True)
    assert (result["error"]["reason"], api.requests) == ("ENOTDIR", [])


def test_the_folder_is_not_writable(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    # The superuser may write everywhere, so permissions alone would not stop a test that runs as root.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = fail()
    assert result["error"]["reason"] == "EACCES"
    assert "may write to" in result["msg"]


@pytest.mark.parametrize("name", ["page_size", "request_timeout"])
@pytest.mark.parametrize("number", [0, -1])
def test_a_number_is_too_small(fail: Fail, api: FakeApi, name: str, number: int) -> None:
    assert f"{name} is {number}. Give a number of at least 1." in fail(**{name: number})["msg"]
    assert not api.requests


def test_the_path_is_missing(run_module: ModuleRunner, file: Path) -> None:
    """Ansible itself refuses a call without a path."""
    result = run_module(main)
    assert result["msg"] == "missing required arguments: path"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module cluster_snapshot against a real API server: least privilege, refused credentials, pages, expired pages."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import DISPENSABLE, READ
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import manifests, policy_rules
from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main

from integration.accounts import account as limited_account
from integration.clusters import loaded
from testbed.api import ApiError, Object
from testbed.handle import RunningTestbed
from testbed.pki import Authority, certificate_user, write_kubeconfig
from testbed.scenarios import files
from testbed.waiting import wait_for
from unit.plugins.support.modules import ModuleRunner, Result

PODS = "/api/v1/pods"


@pytest.fixture(scope="module", autouse=True)
def customapp(testbed: RunningTestbed) -> Iterator[None]:
    with loaded(testbed.api, files.read(files.FOLDER / "customapp.yaml")):
        yield


@pytest.fixture
def take(run: ModuleRunner, tmp_path: Path) -> Any:
    return partial(run, main, path=str(tmp_path / "cluster.json"))


@pytest.fixture
def account(testbed: RunningTestbed, namespace: str) -> Iterator[tuple[str, Object]]:
    """The kubeconfig of a service account with the rights that the module needs, and their ClusterRole."""
    with limited_account(testbed, namespace, [READ]) as kubeconfig:
        (role,) = manifests(namespace, READ.reasons)
        yield kubeconfig, role


@pytest.fixture(scope="module")
def without_history(testbed: RunningTestbed, customapp: None) -> None:
    """An API server that keeps no past state of pods itself, so that a page of the past needs etcd's.

    It keeps what has happened since the last compaction, and looks every 15 seconds whether there was a newer one.
    """

    def is_forgotten() -> bool:
        page = testbed.api.get(PODS, limit=1)["metadata"]
        # Where the servers of a cluster tell each other up to which revision they have compacted.
        _etcd(testbed, "put", key=_encoded("compact_rev_key"), value=_encoded(page["resourceVersion"]))
        _compact(testbed, int(page["resourceVersion"]))
        try:
            testbed.api.get(PODS, limit=1, **{"continue": page["continue"]})
        except ApiError as error:
            return error.status == 410
        return False

    wait_for("the API server to drop past states of pods", is_forgotten, 60, interval=1)


@pytest.mark.gate
def test_the_rights_of_the_guide_are_enough(take: Any, account: tuple[str, Object]) -> None:
    result = take(kubeconfig=account[0])
    lists = snapshot_file.load(Path(result["snapshot_path"])).lists
    # Other tests' VMs may still be on their way out.
    vmis = [vmi for vmi in lists["vmis"] if vmi["metadata"]["namespace"] == "customapp"]
    assert (len(lists["nodes"]), len(vmis)) == (6, 6)
    assert result["missing_kinds"] == []


@pytest.mark.gate
def test_the_rights_of_the_guide_are_not_too_much(
    take: Any, testbed: RunningTestbed, account: tuple[str, Object]
) -> None:
    """Without its rules the module asks for exactly these, but for what it can do without."""
    kubeconfig, role = account
    testbed.api.apply({**role, "rules": [{"nonResourceURLs": ["/version"], "verbs": ["get"]}]})
    result = _until_refused(take, kubeconfig)
    assert result["error"]["missing_rules"] == [
        # KubeVirt itself lets every user see its KubeVirt object.
        {**rule, "resources": [name for name in rule["resources"] if name != "kubevirts"]}
        for rule in policy_rules(right for right in READ.reasons if right not in DISPENSABLE)
    ]
    assert result["error"]["status"] == 403


def test_all_that_is_missing_is_named_at_once(take: Any, testbed: RunningTestbed, account: tuple[str, Object]) -> None:
    kubeconfig, role = account
    rules = [rule for rule in role["rules"] if rule["apiGroups"] not in (["policy"], ["kubevirt.io"])]
    testbed.api.apply({**role, "rules": rules})
    result = _until_refused(take, kubeconfig)
    assert [rule["apiGroups"] for rule in result["error"]["missing_rules"]] == [["kubevirt.io"], ["policy"]]
    assert "to list virtualmachineinstances.kubevirt.io, virtualmachines.kubevirt.io, " in result["msg"]
    assert "poddisruptionbudgets.policy in all namespaces is missing" in result["msg"]


def test_an_impersonated_user_has_that_users_rights(
    take: Any, testbed: RunningTestbed, account: tuple[str, Object], namespace: str
) -> None:
    allowed = f"system:serviceaccount:{namespace}:limited"
    assert take(kubeconfig=str(testbed.kubeconfig), impersonate_user=allowed)["changed"]
    denied = take(kubeconfig=str(testbed.kubeconfig), impersonate_user="jane")
    assert 'User "jane"' in denied["msg"]


@pytest.mark.gate
def test_a_wrong_token_is_refused(take: Any, testbed: RunningTestbed) -> None:
    server = yaml.safe_load(testbed.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    result = take(host=server, api_key="no-such-token", ca_cert=str(testbed.home.pki / "ca.crt"))
    assert result["error"]["status"] == 401
    assert result["error"]["object"] == server


def test_a_certificate_that_the_server_does_not_accept_is_refused(
    take: Any, testbed: RunningTestbed, tmp_path: Path
) -> None:
    """API servers let every certificate through the handshake, and answer one that is not valid with 401."""
    server = yaml.safe_load(testbed.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    user = certificate_user(Authority(tmp_path).issue("jane", "jane"))
    kubeconfig = write_kubeconfig(tmp_path / "jane.yaml", server, testbed.home.pki / "ca.crt", user)
    result = take(kubeconfig=str(kubeconfig))
    assert result["error"]["status"] == 401
    assert "the client certificate may have expired" in result["msg"]


def test_a_certificate_that_has_expired_is_refused(take: Any, testbed: RunningTestbed) -> None:
    result = take(kubeconfig=str(testbed.home.kubeconfig("expired")))
    assert result["error"]["status"] == 401
    assert "the client certificate may have expired" in result["msg"]


def test_a_cluster_at_rest_is_the_same_in_pages_of_any_size(take: Any, testbed: RunningTestbed) -> None:
    seen: list[list[Result]] = []

    def read(page_size: int = 500) -> Result:
        found: Result = take(kubeconfig=str(testbed.kubeconfig), page_size=page_size)
        return found

    def is_at_rest() -> bool:
        """Else what other tests have left goes meanwhile."""
        before = read()
        seen.append([read(1), read(7)])
        return bool(before["sha256"] == read()["sha256"])

    assert read()["changed"]
    wait_for("the cluster to be at rest", is_at_rest)
    assert [result["changed"] for result in seen[-1]] == [False, False]


def test_pages_that_expire_are_read_again(
    take: Any, testbed: RunningTestbed, without_history: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between two pages of pods the cluster changes, and etcd forgets the revision that the first page is of."""
    asked = _compact_after_first_page(testbed, monkeypatch, times=1)
    counts = take(kubeconfig=str(testbed.kubeconfig), page_size=5)["counts"]
    assert len(testbed.api.items(PODS)) == counts["pods"] > 10
    # First page, its refused successor, and all pages again.
    assert len(asked) == 2 + -(-counts["pods"] // 5)
    names = [pod["metadata"]["name"] for pod in json.loads((tmp_path / "cluster.json").read_text())["pods"]]
    assert len(names) == len(set(names)) == counts["pods"]


def test_pages_that_expire_again_and_again_are_an_error(
    take: Any, testbed: RunningTestbed, without_history: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compact_after_first_page(testbed, monkeypatch, times=3)
    result = take(kubeconfig=str(testbed.kubeconfig), page_size=5)
    assert result["error"]["status"] == 410
    assert "The provided continue parameter is too old" in result["msg"]


def _until_refused(take: Any, kubeconfig: str) -> Result:
    """The API server notices a changed role with a little delay."""
    results: Iterator[Result] = (take(kubeconfig=kubeconfig) for _attempt in range(50))
    return next(result for result in results if result.get("failed"))


def _compact_after_first_page(testbed: RunningTestbed, monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Let the first page of pods expire at once, `times` times. Returns the paths of pods asked for, as they come."""
    asked: list[str] = []
    compactions = iter(range(times))
    get = Client.get

    def get_and_compact(client: Client, path: str, attempted: str, **query: str | int) -> Any:
        if path == PODS:
            asked.append(path)
        page = get(client, path, attempted, **query)
        if path == PODS and "continue" not in query and next(compactions, None) is not None:
            _compact(testbed, int(page["metadata"]["resourceVersion"]))
        return page

    monkeypatch.setattr(Client, "get", get_and_compact)
    return asked


def _compact(testbed: RunningTestbed, revision: int) -> None:
    """Make etcd forget a revision, which takes a newer one."""
    testbed.drop_namespace(testbed.namespace("compaction"))
    _etcd(testbed, "compaction", revision=str(revision + 1), physical=True)


def _etcd(testbed: RunningTestbed, command: str, **body: Any) -> None:
    settings = testbed.home.settings()
    assert settings
    context = ssl.create_default_context(cafile=str(testbed.home.pki / "ca.crt"))
    context.load_cert_chain(testbed.home.pki / "etcd.crt", testbed.home.pki / "etcd.key")
    url = f"https://127.0.0.1:{settings.ports['etcd']}/v3/kv/{command}"
    httpx.post(url, json=body, verify=context, trust_env=False).raise_for_status()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

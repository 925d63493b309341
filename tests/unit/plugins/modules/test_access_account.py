# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account has just the rights of its roles, whatever the API server does in between."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.modules.access_account import main

from testbed.pki import Authority
from unit.plugins.support.account_api import BINDINGS, LEASE_BINDINGS, LEASE_ROLES, PLANNER, PLANNING, ROLES, AccountApi
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NAMESPACES

DRAIN, KUBEVIRT = "virtops.kubevirt:drain", "kubevirt.io:migrate"
MIGRATES = f"{BINDINGS}/{KUBEVIRT}:ops:me"


@pytest.fixture
def api(authority: Authority) -> Iterator[AccountApi]:
    fake = AccountApi()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def write(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    def run(*roles: str, **arguments: Any) -> Any:
        given = {"namespace": "ops", "name": "me", **({"roles": roles} if roles else {}), **arguments}
        return run_module(main, **connection, **given)

    return run


def changes(result: Any) -> Counter[str]:
    return Counter(item["change"] for item in result["objects"])


def test_an_account_has_all_that_its_roles_take(write: Any, api: AccountApi) -> None:
    result = write("planning")
    assert (result["changed"], changes(result), {*api.objects}) == (True, {"created": 7}, PLANNER)
    assert {"kind": "Role", "namespace": "medik8s-leases", "name": PLANNING, "change": "created"} in result["objects"]
    binding = api.objects[f"{LEASE_BINDINGS}/{PLANNING}:ops:me"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": PLANNING}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "me", "namespace": "ops"}]
    before = len(api.writes())
    again = write("planning")
    assert (again["changed"], again["objects"], len(api.writes())) == (False, [], before)


def test_it_has_no_other_rights_any_more(write: Any, api: AccountApi) -> None:
    write("planning", "drain")
    assert MIGRATES in api.objects
    result = write("planning")
    removed = {item["name"] for item in result["objects"]}
    assert (changes(result), removed) == ({"removed": 3}, {f"{DRAIN}:ops:me", f"{KUBEVIRT}:ops:me"})
    assert api.objects.keys() == {*PLANNER, f"{ROLES}/{DRAIN}", f"{LEASE_ROLES}/{DRAIN}"}


def test_it_is_bound_to_kubevirts_own_role_if_that_is_wanted(write: Any, api: AccountApi) -> None:
    for is_wanted in (False, True, False):
        write("live_migrate", kubevirt_role=is_wanted)
        assert (MIGRATES in api.objects) is is_wanted


def test_what_somebody_has_changed_is_mended_and_shown(write: Any, api: AccountApi) -> None:
    write("planning")
    role = api.objects[f"{ROLES}/{PLANNING}"]
    wanted, role["metadata"]["labels"] = copy.deepcopy(role["rules"]), {"theirs": "1"}
    role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    result = write("planning", diff=True)
    assert changes(result) == {"changed": 1}
    assert result["diff"] == {
        "before": {f"ClusterRole {PLANNING}": {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}},
        "after": {f"ClusterRole {PLANNING}": {"rules": wanted}},
    }
    mended = api.objects[f"{ROLES}/{PLANNING}"]
    assert (mended["rules"], mended["metadata"]["labels"]) == (wanted, {"theirs": "1"})


def test_an_account_is_removed_with_what_nobody_else_is_bound_to(write: Any, api: AccountApi) -> None:
    write("planning", "drain")
    write("planning", name="other")
    result = write(state="absent", diff=True)
    assert changes(result) == {"removed": 8}
    assert (f"ClusterRole {DRAIN}" in result["diff"]["before"], result["diff"]["after"]) == (True, {})
    others = {path.replace("serviceaccounts/me", "serviceaccounts/other").replace(":me", ":other") for path in PLANNER}
    assert api.objects.keys() == others
    assert not write(state="absent")["changed"]


@pytest.mark.parametrize("there", [(), (f"{NAMESPACES}/medik8s-leases", f"{NAMESPACES}/ops")])
def test_check_mode_foretells_all_of_it(write: Any, api: AccountApi, there: tuple[str, ...]) -> None:
    for path in there:
        api.objects[path] = {"metadata": {"name": path.rpartition("/")[2], "uid": "u", "resourceVersion": "1"}}
    before = copy.deepcopy(api.objects)
    foretold = write("planning", check=True)
    assert (foretold["changed"], api.objects) == (True, before)
    assert foretold["objects"] == write("planning")["objects"]
    foretold = write(state="absent", check=True)
    assert api.objects.keys() == PLANNER
    assert foretold["objects"] == write(state="absent")["objects"]


def test_a_server_that_is_busy_or_loses_answers_is_asked_again(
    write: Any, api: AccountApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is refused the first time, and the answer to the second one is lost."""
    monkeypatch.setattr(persistence, "READING", 60.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    tried: Counter[tuple[str, str, str]] = Counter()
    serve = api._list

    def fail(request: Request) -> Answer:
        key = (request.method, request.path, str(request.body.get("metadata")))
        tried[key] += 1
        if tried[key] == 1:
            return refusal(429, "TooManyRequests", "later")
        answer = serve(request)
        return SILENCE if tried[key] == 2 else answer

    monkeypatch.setattr(api, "_list", fail)
    result = write("planning")
    assert (changes(result), {*api.objects}) == ({"created": 7}, PLANNER)
    assert changes(write(state="absent")) == {"removed": 5}
    assert api.objects.keys() == {f"{NAMESPACES}/ops", f"{NAMESPACES}/medik8s-leases"}


def test_somebody_who_makes_the_same_at_the_same_time_is_no_error(write: Any, api: AccountApi) -> None:
    path = f"{NAMESPACES}/ops/serviceaccounts"

    def make(request: Request) -> None:
        if request.method == "POST":
            metadata = {"name": "me", "namespace": "ops", "uid": "theirs", "resourceVersion": "1"}
            api.objects[f"{path}/me"] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}

    api.faults[path] = make
    assert changes(write("planning")) == {"created": 6}


def test_what_was_done_is_told_where_not_all_could_be(write: Any, api: AccountApi) -> None:
    forbidden = refusal(403, "Forbidden", 'clusterroles is forbidden: User "jane" cannot create resource')
    api.faults[ROLES] = lambda _request: forbidden
    result = write("planning")
    assert f"Cannot write ClusterRole {PLANNING} (" in result["msg"]
    assert (result["error"]["status"], result["changed"], changes(result)) == (403, True, {"created": 3})
    assert len([request for request in api.writes() if request.path == ROLES]) == 1, "it is final"


def test_nothing_is_changed_where_nothing_may_be(write: Any, api: AccountApi) -> None:
    api.faults[NAMESPACES] = lambda _request: refusal(403, "Forbidden", "namespaces is forbidden")
    result = write("planning")
    assert (result["error"]["status"], "changed" in result, api.objects) == (403, False, {})


def test_what_cannot_be_meant(write: Any, api: AccountApi) -> None:
    assert "state is present but all of the following are missing: roles" in write()["msg"]
    assert "value of roles must be one or more of" in write("everything")["msg"]
    told = write("planning", name="a/b", lease_namespace="")["msg"]
    assert "name is 'a/b'" in told
    assert "lease_namespace is empty" in told
    assert not api.writes()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account has just the rights of its roles, whatever the API server does in between."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.modules.access_account import main

from testbed.pki import Authority
from unit.plugins.support.account_api import (
    BINDINGS,
    LEASE_BINDINGS,
    LEASE_ROLES,
    PLANNER,
    PLANNING,
    RBAC,
    ROLES,
    AccountApi,
)
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NAMESPACES

DRAIN, KUBEVIRT = "virtops.kubevirt:drain", "kubevirt.io:migrate"
MIGRATES = f"{BINDINGS}/{KUBEVIRT}:ops:me"
BOUND = f"{BINDINGS}/{PLANNING}:ops:me"
ME = {"kind": "ServiceAccount", "name": "me", "namespace": "ops"}
JANE, JOHN = ({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name} for name in ("jane", "john"))


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


def became(result: Any, name: str) -> list[str]:
    """What became of the ClusterRoleBinding of this name."""
    return [
        item["change"] for item in result["objects"] if (item["kind"], item["name"]) == ("ClusterRoleBinding", name)
    ]


def bind_meanwhile(api: AccountApi, *subjects: dict[str, str]) -> None:
    """Somebody lets a binding have these subjects, right before the first request that is about it alone."""
    left = [subjects]

    def write(_request: Request) -> None:
        if left:
            api.objects[BOUND]["subjects"] = [*left.pop()]
            api.objects[BOUND]["metadata"]["resourceVersion"] = "theirs"

    api.faults[BOUND] = write


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


def test_what_somebody_has_added_to_it_is_mended(write: Any, api: AccountApi) -> None:
    """A rule for one node only lacks rights in mid-run, and another subject has rights that nobody gave it."""
    write("planning")
    api.objects[f"{ROLES}/{PLANNING}"]["rules"][0]["resourceNames"] = ["worker-1"]
    api.objects[f"{BINDINGS}/{PLANNING}:ops:me"]["subjects"][0]["apiGroup"] = "theirs"
    assert changes(write("planning")) == {"changed": 2}
    assert not write("planning")["changed"]


def test_a_change_that_is_lost_is_not_taken_for_done(
    write: Any, api: AccountApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "READING", 60.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    write("planning")
    role = f"{ROLES}/{PLANNING}"
    api.objects[role]["rules"][0]["resourceNames"] = ["worker-1"]
    lost = [SILENCE]
    api.faults[role] = lambda request: lost.pop() if lost and request.method == "PATCH" else None
    assert changes(write("planning")) == {"changed": 1}
    assert "resourceNames" not in api.objects[role]["rules"][0]


AGGREGATION: dict[str, Any] = {"aggregationRule": {"clusterRoleSelectors": []}}
OTHER_ROLE = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("path", "theirs", "why"),
    [
        (f"{ROLES}/{PLANNING}", AGGREGATION, f"write ClusterRole {PLANNING} (%s): its rules are those of other"),
        (f"{BINDINGS}/{PLANNING}:ops:me", OTHER_ROLE, f"{PLANNING}:ops:me (%s): it binds to ClusterRole admin, and"),
    ],
    ids=["aggregationRule", "roleRef"],
)
def test_what_cannot_be_changed_is_refused(
    write: Any, api: AccountApi, path: str, theirs: dict[str, Any], why: str, check: bool
) -> None:
    write("planning")
    api.objects[path].update(theirs)
    before = copy.deepcopy(api.objects)
    result = write("planning", check=check)
    assert (why % api.url in result["msg"], result["error"]["reason"]) == (True, "Unchangeable")
    assert "and run the task again." in result["msg"]
    assert api.objects == before


def test_an_account_is_removed_with_what_nobody_else_is_bound_to(write: Any, api: AccountApi) -> None:
    write("planning", "drain")
    write("planning", name="other")
    result = write(state="absent", diff=True)
    assert changes(result) == {"removed": 8}
    assert (f"ClusterRole {DRAIN}" in result["diff"]["before"], result["diff"]["after"]) == (True, {})
    others = {path.replace("serviceaccounts/me", "serviceaccounts/other").replace(":me", ":other") for path in PLANNER}
    assert api.objects.keys() == others
    assert not write(state="absent")["changed"]


def test_it_has_no_rights_in_the_namespace_where_the_leases_were(write: Any, api: AccountApi) -> None:
    """The Role there grants nothing any more, and goes with the account. Another account keeps its own there."""
    write("planning", "drain")
    write("planning", name="other")
    result = write("planning", lease_namespace="my-leases")
    removed = {(item["namespace"], item["name"]) for item in result["objects"] if item["change"] == "removed"}
    drained = {("", f"{DRAIN}:ops:me"), ("", f"{KUBEVIRT}:ops:me"), ("medik8s-leases", f"{DRAIN}:ops:me")}
    assert removed == {*drained, ("medik8s-leases", f"{PLANNING}:ops:me")}
    assert write("planning", lease_namespace="my-leases")["objects"] == []
    write(state="absent", lease_namespace="elsewhere")
    left = {path for path in api.objects if path.startswith(RBAC)}
    own = {f"{ROLES}/{PLANNING}", f"{LEASE_ROLES}/{PLANNING}"}
    assert left == {*own, f"{BINDINGS}/{PLANNING}:ops:other", f"{LEASE_BINDINGS}/{PLANNING}:ops:other"}


@pytest.mark.parametrize("check", [False, True])
def test_others_whom_somebody_has_bound_keep_their_rights(write: Any, api: AccountApi, check: bool) -> None:
    write("planning")
    theirs = f"{BINDINGS}/{PLANNING}:other-ops:me"
    api.objects[BOUND]["subjects"].append(JANE)
    api.objects[theirs] = copy.deepcopy(api.objects[BOUND])
    api.objects[theirs]["metadata"]["name"] = f"{PLANNING}:other-ops:me"
    result = write(state="absent", check=check)
    changed = [item["name"] for item in result["objects"] if item["change"] == "changed"]
    assert (changed, changes(result)["removed"]) == ([f"{PLANNING}:ops:me"], 3)
    if not check:
        assert api.objects[BOUND]["subjects"] == [JANE]
        assert {path for path in api.objects if path.startswith(RBAC)} == {f"{ROLES}/{PLANNING}", BOUND, theirs}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("others", [[], [JANE]])
def test_a_binding_that_is_gone_by_now_is_not_made_again(
    write: Any, api: AccountApi, others: list[dict[str, str]], check: bool
) -> None:
    """Who removed it has revoked the rights of the others in it."""
    write("planning")
    api.objects[BOUND]["subjects"] += others
    before = len(api.writes())

    def revoke(_request: Request) -> None:
        api.objects.pop(BOUND, None)

    api.faults[BOUND] = revoke
    result = write(state="absent", check=check)
    assert (result.get("msg"), became(result, f"{PLANNING}:ops:me"), BOUND in api.objects) == (None, [], False)
    assert {request.method for request in api.writes()[before:]} <= {"PATCH", "DELETE"}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("subjects", "done", "left"),
    [([JOHN, ME], ["changed"], [JOHN]), ([ME], ["removed"], None), ([], ["removed"], None), ([JOHN], [], [JOHN])],
)
@pytest.mark.parametrize("before", [[ME, JANE], [ME]])
def test_whom_somebody_binds_meanwhile_is_who_stays_bound(
    write: Any,
    api: AccountApi,
    before: list[dict[str, str]],
    subjects: list[dict[str, str]],
    done: list[str],
    left: Any,
    check: bool,
) -> None:
    write("planning")
    api.objects[BOUND]["subjects"] = before
    bind_meanwhile(api, *subjects)
    result = write(state="absent", check=check)
    assert (result.get("msg"), became(result, f"{PLANNING}:ops:me")) == (None, done)
    assert api.objects.get(BOUND, {}).get("subjects") == (subjects if check else left)


def test_a_role_stays_to_which_somebody_binds_another_account_meanwhile(write: Any, api: AccountApi) -> None:
    write("planning", "drain")
    other = copy.deepcopy(api.objects[BOUND])
    other["metadata"]["name"] = f"{PLANNING}:ops:other"

    def bind(_request: Request) -> None:
        api.objects[f"{BINDINGS}/{PLANNING}:ops:other"] = other

    api.faults[BOUND] = bind
    write(state="absent")
    roles = {path for path in api.objects if path.startswith((f"{ROLES}/", f"{LEASE_ROLES}/"))}
    assert roles == {f"{ROLES}/{PLANNING}"}


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


def test_check_mode_foretells_that_a_role_is_missing_which_nobody_makes(write: Any, api: AccountApi) -> None:
    """It is no more there when the account is made."""
    api.is_kubevirt_here = False
    foretold, done = write("live_migrate", check=True), write("live_migrate")
    assert f"Cannot write ClusterRoleBinding {KUBEVIRT}:ops:me (" in foretold["msg"]
    assert (foretold["error"]["status"], foretold["msg"]) == (404, done["msg"])
    assert foretold["objects"] == done["objects"]


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


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_stays_busy_is_given_up_when_all_has_been_refused_for_so_long(
    write: Any, api: AccountApi, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """However many objects there are to write."""
    monkeypatch.setattr(persistence, "READING", 0.5)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    monkeypatch.setattr(api, "_list", lambda _request: refusal(status, "Busy", "later"))
    begun = time.monotonic()
    result = write("planning")
    assert time.monotonic() - begun >= 0.5
    assert (result["error"]["status"], "changed" in result, len(api.writes())) == (status, False, 0)
    assert "tried" in result["msg"]


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

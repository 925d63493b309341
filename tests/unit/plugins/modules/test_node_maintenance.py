# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is taken with its owner's name on it, and given back without touching what others did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.held_node import (
    FAR_OFF,
    LEASE,
    LONG_AGO,
    MARK,
    Maintain,
    cordon_by_hand,
    free_node,
    hold_lease,
    traces,
)
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NAMESPACES, NODES, ObjectApi


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    fake = free_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Maintain:
    return partial(run_module, main, **{**connection, "name": "n1", "owner": "run-a"})


def test_a_node_is_taken(maintain: Maintain, api: ObjectApi) -> None:
    result = maintain(reason="New kernel", lease_duration=7200)
    assert result["changed"]
    assert (result["schedulable"], result["cordon"]["by"], result["cordon"]["ours"]) == (False, "run-a", True)
    assert result["cordon"]["reason"] == "New kernel"
    assert (result["lease"]["name"], result["lease"]["holder"]) == ("node-n1", "run-a")
    assert traces(api) == (True, True, True)
    mark = json.loads(api.node("n1")["metadata"]["annotations"][MARK])
    since = result["cordon"]["since"]
    assert mark == {"owner": "run-a", "reason": "New kernel", "since": since, "invocation": None}
    assert "New kernel" not in str(result["lease"])


def test_the_lease_is_as_medik8s_writes_it(maintain: Maintain, api: ObjectApi) -> None:
    maintain(lease_duration=7200)
    lease = api.objects[LEASE]
    spec = lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("run-a", 7200, 0)
    assert spec["acquireTime"] == spec["renewTime"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1"}
    assert lease["metadata"]["ownerReferences"] == [owner]


def test_a_second_run_only_renews_the_lease(maintain: Maintain, api: ObjectApi) -> None:
    first = maintain()
    acquired, node = dict(api.objects[LEASE]["spec"]), api.node("n1")
    second = maintain()
    renewed = api.objects[LEASE]["spec"]
    assert not second["changed"]
    assert second["cordon"] == first["cordon"]
    assert renewed["renewTime"] > acquired["renewTime"]
    assert {**renewed, "renewTime": ""} == {**acquired, "renewTime": ""}
    assert api.node("n1") is node, "the node is not written again"


def test_a_node_is_given_back_without_a_trace(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    result = maintain(state="uncordoned")
    assert result["changed"]
    assert (result["schedulable"], result["cordon"], result["lease"]) == (True, None, None)
    assert traces(api) == (False, False, False)
    assert not maintain(state="uncordoned")["changed"]


def test_a_free_node_stays_as_it_is(maintain: Maintain, api: ObjectApi) -> None:
    assert not maintain(state="uncordoned")["changed"]
    assert api.writes() == []


@pytest.mark.parametrize("state", ["cordoned", "uncordoned"])
def test_a_cordon_by_hand_is_respected_and_named(maintain: Maintain, api: ObjectApi, state: str) -> None:
    cordon_by_hand(api)
    result = maintain(state=state)
    assert result["error"]["reason"] == "CordonedByOther"
    assert result["error"]["node_owner"] == "kubectl-cordon"
    assert "by kubectl-cordon since 2026-01-01T00:00:00Z, not by run-a" in result["msg"]
    assert "set foreign_cordon to keep" in result["msg"]
    assert api.writes() == []


def test_another_owner_is_respected_and_named(maintain: Maintain, api: ObjectApi) -> None:
    maintain(owner="run-b", reason="Disk swap")
    del api.objects[LEASE]
    result = maintain()
    assert "by run-b since" in result["msg"]
    assert "(Disk swap), not by run-a" in result["msg"]
    assert traces(api) == (True, True, False)


HOSTILE = "\x1b[2J\nTASK [ok]\u202e"


def test_what_others_have_written_is_only_text(maintain: Maintain, api: ObjectApi) -> None:
    maintain(owner=f"run-b{HOSTILE}", reason=HOSTILE * 1000)
    held = maintain()
    del api.objects[LEASE]
    cordoned = maintain()
    for result, reason in ((held, "LeaseHeld"), (cordoned, "CordonedByOther")):
        assert (result["error"]["reason"], result["error"]["node_owner"]) == (reason, f"run-b{HOSTILE}")
        assert result["msg"].isprintable()
        assert "run-b\N{REPLACEMENT CHARACTER}[2J TASK [ok]" in result["msg"]
        assert len(result["msg"]) < 1000
    warnings = repr(maintain(foreign_cordon="keep", state="uncordoned")["warnings"])
    assert "run-b\N{REPLACEMENT CHARACTER}[2J TASK [ok]" in warnings
    assert "\\x1b" not in warnings


def test_a_foreign_cordon_can_be_kept(maintain: Maintain, api: ObjectApi) -> None:
    cordon_by_hand(api)
    begun = maintain(foreign_cordon="keep")
    assert (begun["changed"], begun["schedulable"], begun["cordon"]["ours"]) == (True, False, False)
    assert traces(api) == (True, False, True)
    assert not maintain(foreign_cordon="keep")["changed"]
    ended = maintain(foreign_cordon="keep", state="uncordoned")
    assert (ended["changed"], ended["schedulable"], ended["cordon"]["by"]) == (True, False, "kubectl-cordon")
    assert "Node n1 stays cordoned, by kubectl-cordon since" in str(ended["warnings"])
    assert traces(api) == (True, False, False)


def test_a_node_that_others_freed_and_cordoned_again_is_theirs(maintain: Maintain, api: ObjectApi) -> None:
    """They leave the annotation where it is, so it alone proves nothing."""
    maintain()
    cordon_by_hand(api)
    assert maintain(state="uncordoned")["error"]["node_owner"] == "kubectl-cordon"
    result = maintain(state="uncordoned", foreign_cordon="keep")
    assert (result["changed"], result["schedulable"]) == (True, False)
    assert traces(api) == (True, False, False)


def test_a_node_that_others_freed_is_taken_again(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    api.node("n1")["spec"] = {}
    assert maintain()["changed"]
    assert traces(api) == (True, True, True)


def test_a_node_that_others_freed_is_tidied(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    api.node("n1")["spec"] = {}
    assert maintain(state="uncordoned")["changed"]
    assert traces(api) == (False, False, False)


@pytest.mark.parametrize("text", ["", "text", "[]", '{"owner": "run-a"}'])
def test_an_annotation_that_was_tampered_with_proves_nothing(maintain: Maintain, api: ObjectApi, text: str) -> None:
    maintain()
    api.node("n1")["metadata"]["annotations"][MARK] = text
    assert maintain(state="uncordoned")["error"]["reason"] == "CordonedByOther"


def test_a_held_lease_is_respected(maintain: Maintain, api: ObjectApi) -> None:
    hold_lease(api, "node-maintenance", FAR_OFF)
    result = maintain()
    assert result["error"]["reason"] == "LeaseHeld"
    assert "node-maintenance holds its lease medik8s-leases/node-n1 until 2999-01-01T00:01:00Z" in result["msg"]
    assert api.writes() == []
    assert not maintain(state="uncordoned")["changed"], "and it is not released either"


def test_an_expired_lease_is_taken_over(maintain: Maintain, api: ObjectApi) -> None:
    hold_lease(api, "node-maintenance", LONG_AGO)
    assert maintain()["lease"]["holder"] == "run-a"
    spec = api.objects[LEASE]["spec"]
    assert (spec["leaseTransitions"], spec["acquireTime"]) == (5, spec["renewTime"])


def test_a_dead_run_is_taken_up_by_its_owner(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    hold_lease(api, "run-a", LONG_AGO)
    assert maintain()["changed"]
    hold_lease(api, "run-a", LONG_AGO)
    assert maintain(state="uncordoned")["changed"]
    assert traces(api) == (False, False, False)


def test_waiting_ends_when_others_let_go(maintain: Maintain, api: ObjectApi) -> None:
    hold_lease(api, "node-maintenance", FAR_OFF)

    def let_go_at_second_look(request: Request) -> Answer | None:
        if [request.path for request in api.requests].count(LEASE) == 2:
            del api.objects[LEASE]
        return None

    api.faults[LEASE] = let_go_at_second_look
    assert maintain(wait=True, wait_timeout=60, wait_sleep=1)["changed"]


def test_waiting_ends_with_its_time(maintain: Maintain, api: ObjectApi) -> None:
    hold_lease(api, "node-maintenance", FAR_OFF)
    result = maintain(wait=True, wait_timeout=1, wait_sleep=30)
    assert result["error"]["reason"] == "LeaseHeld"
    assert "set wait and a wait_timeout" in result["error"]["remedy"]
    assert [request.path for request in api.requests].count(LEASE) == 2


def test_check_mode_tells_the_truth_and_writes_nothing(maintain: Maintain, api: ObjectApi) -> None:
    predicted = maintain(check=True, diff=True)
    assert traces(api) == (False, False, False)
    assert {write.query.get("dryRun") for write in api.writes()} == {"All"}
    done = maintain(diff=True)
    times = {"since": "", "expires_at": ""}
    for name in ("cordon", "lease"):
        assert predicted[name] | times == done[name] | times
    assert done["diff"]["before"] == {"schedulable": True, "cordon": None, "lease_holder": None, "maintained": None}
    assert predicted["diff"]["after"].keys() == done["diff"]["after"].keys()
    assert maintain(check=True, state="uncordoned")["schedulable"]
    assert traces(api) == (True, True, True)


def test_check_mode_waits_for_nobody(maintain: Maintain, api: ObjectApi) -> None:
    hold_lease(api, "node-maintenance", FAR_OFF)
    assert maintain(check=True, wait=True)["error"]["reason"] == "LeaseHeld"
    assert [request.path for request in api.requests].count(LEASE) == 1


@pytest.mark.parametrize("check", [True, False])
def test_a_missing_namespace_is_created(maintain: Maintain, api: ObjectApi, check: bool) -> None:
    del api.objects[f"{NAMESPACES}/medik8s-leases"]
    assert maintain(check=check)["changed"]
    assert (f"{NAMESPACES}/medik8s-leases" in api.objects) is not check
    assert (LEASE in api.objects) is not check


def test_a_write_in_between_is_noticed_and_looked_at_again(maintain: Maintain, api: ObjectApi) -> None:
    looks: list[Request] = []

    def beat(request: Request) -> Answer | None:
        """A kubelet's heartbeat between reading and writing, twice."""
        if request.method == "PATCH" and len(looks) < 2:
            looks.append(request)
            api.node("n1")["metadata"]["resourceVersion"] += "0"
        return None

    api.faults[f"{NODES}/n1"] = beat
    assert maintain()["changed"]
    assert traces(api) == (True, True, True)


def test_a_node_that_is_always_written_is_given_up(maintain: Maintain, api: ObjectApi) -> None:
    api.faults[f"{NODES}/n1"] = lambda request: (
        refusal(409, "Conflict", "the object has been modified") if request.method == "PATCH" else None
    )
    result = maintain()
    assert result["error"]["status"] == 409
    assert "Somebody else writes the object at the same time" in result["msg"]
    assert traces(api) == (False, False, False)


def test_a_refused_cordon_releases_the_lease(maintain: Maintain, api: ObjectApi) -> None:
    api.faults[f"{NODES}/n1"] = lambda request: (
        refusal(403, "Forbidden", 'User "jane" cannot patch nodes') if request.method == "PATCH" else None
    )
    result = maintain()
    assert "Cannot cordon node n1" in result["msg"]
    assert "Grant the permission" in result["msg"]
    assert traces(api) == (False, False, False)


def test_a_server_that_goes_away_before_the_cordon_is_what_is_told(maintain: Maintain, api: ObjectApi) -> None:
    """And not that the Lease could not be let go of either, which was asked for once only, at the end of all time."""
    away = refusal(503, "ServiceUnavailable", "shutting down")

    def go_away(request: Request) -> Answer | None:
        if request.method == "PATCH":
            api.faults[LEASE] = lambda _request: away
            return away
        return None

    api.faults[f"{NODES}/n1"] = go_away
    result = maintain()
    assert "Cannot cordon node n1" in result["msg"]
    assert result["error"]["status"] == 503


def test_a_refused_lease_leaves_the_node_alone(maintain: Maintain, api: ObjectApi) -> None:
    api.faults[LEASE.rpartition("/")[0]] = lambda request: refusal(403, "Forbidden", "no leases")
    result = maintain()
    assert "Cannot hold lease medik8s-leases/node-n1" in result["msg"]
    assert traces(api) == (False, False, False)


def test_the_node_does_not_exist(maintain: Maintain) -> None:
    result = maintain(name="n2")
    assert "Cannot read node n2" in result["msg"]
    assert "Check the name" in result["msg"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"owner": ""}, "owner is empty"),
        ({"name": " "}, "name is empty"),
        ({"name": "n1/../n2"}, "name is 'n1/../n2', but no object can be named so"),
        ({"lease_namespace": "a/b"}, "lease_namespace is 'a/b', but no object can be named so"),
        ({"lease_namespace": ""}, "lease_namespace is empty"),
        ({"lease_duration": 0}, "lease_duration is 0, but at least 1 second is needed"),
        ({"wait_sleep": -1}, "wait_sleep is -1"),
    ],
)
def test_mistakes(maintain: Maintain, api: ObjectApi, arguments: dict[str, Any], words: str) -> None:
    result = maintain(**arguments)
    assert words in result["msg"]
    assert api.requests == []

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each batch is planned on what the ones before it leave."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant, occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler import state

from unit.plugins.module_utils._planner.replay_actions import ActionReplay
from unit.plugins.module_utils._planner.scene import (
    FIXED,
    HOST,
    ZONE,
    Lists,
    Scene,
    apart,
    apart_but_own,
    migrating,
    node,
)
from unit.plugins.module_utils._planner.tight import tight_cluster

BATCHES = [["n0"], ["n1", "n2"], ["n3"], ["n4"], ["n5"]]
ONE_OF_TWO: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1},
}
# Clusters whose batches can all be emptied one after the other; thirty more were tried by hand.
FEASIBLE = (0, 1, 3, 4, 5, 9, 10, 11, 12, 13, 15, 16, 18, 19, 20, 22, 23, 24, 30, 31)


def planned(lists: Lists, *batches: list[str], **options: Any) -> Plan:
    plan = plan_run(from_plain(lists), "patch", batches, PlanOptions(**options))
    assert decode(encode(plan)) == plan
    return plan


def step_by_step(lists: Lists) -> tuple[Lists, int] | None:
    """The cluster after a whole run in which each batch is planned when its turn comes, and how many VMs migrated."""
    moves = 0
    for number, nodes in enumerate(BATCHES, start=1):
        later = [name for others in BATCHES[number:] for name in others]
        plan = planned(lists, nodes, avoid=tuple(later))
        if plan.blocked:
            return None
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(0))
        assert replay.wrong == []
        lists, moves = replay.lists, moves + plan.totals.migrations
    return lists, moves


def test_plans_of_one_snapshot_read_it_once_and_do_not_see_what_others_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Object] = []

    def counted(raw: Object) -> Occupant:
        read.append(raw)
        return occupant(raw)

    monkeypatch.setattr(state, "parsed_occupant", counted)
    lists = tight_cluster(0, nodes=6, machines=7, pods=2)
    snapshot = from_plain(lists)
    plans = [plan_run(snapshot, "patch", batches, PlanOptions()) for batches in (BATCHES, BATCHES[::-1], BATCHES)]
    assert len(read) == len(lists["pods"])
    assert plans[0] == plans[2] == planned(lists, *BATCHES)
    assert plans[1] == planned(lists, *BATCHES[::-1])
    assert plans[0].totals.migrations > len(lists["vmis"])  # some are carried more than once


def test_what_a_replica_set_makes_for_one_replica_keeps_from_what_it_makes_for_another() -> None:
    """Both are foretold, so that neither has a uid by which its rule could know its own pods."""
    scene = Scene(node("a", "x"), node("b", "y"))
    for name, where in (("db-1", "a"), ("db-2", "b")):
        rules = {"affinity": apart_but_own(ZONE, "db")}
        vmi = scene.vm(name, where, owner="VirtualMachineInstanceReplicaSet", status=FIXED, rules=rules)
        vmi["metadata"]["ownerReferences"][0]["name"] = "db-1"
    plan = planned(scene.lists, ["a"], ["b"], policies=[{"policy": "stop"}])
    assert (plan.totals.stops, plan.totals.restarts) == (2, 0)
    assert [(action.object.name, action.target) for action in plan.actions if action.kind is ActionKind.START] == [
        ("db-1", "a"),
        ("db-2", "b"),
    ]


def test_a_vm_that_has_started_anew_is_known_to_its_own_rule_when_it_migrates_later() -> None:
    unnamed = node("n2", "x")
    del unnamed["metadata"]["labels"][HOST]  # so that no migration can be pinned to it
    scene = Scene(node("n1", "x"), unnamed, node("n3", "x"))
    scene.vm("db-1", "n1", rules={"affinity": apart_but_own(ZONE, "db")})
    plan = planned(scene.lists, ["n1", "n3"], ["n2"], policies=[{"policy": "restart"}])
    moves = [(action.kind.value, action.source) for action in plan.actions if action.object.name == "db-1"]
    assert (moves, plan.blocked) == ([("restart", "n1"), ("migrate", "n2")], ())


@pytest.mark.campaign
@pytest.mark.parametrize("seed", FEASIBLE)
def test_a_run_planned_as_a_whole_moves_no_more_than_one_planned_step_by_step(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=7, pods=2)
    found = step_by_step(lists)
    assert found is not None
    plan = planned(lists, *BATCHES)
    assert plan.blocked == ()
    assert plan.totals.migrations <= found[1]
    replay = ActionReplay(lists, plan)
    replay.run(random.Random(seed))
    assert (replay.wrong, replay.ended) == ([], {action.id for action in plan.actions})


def test_who_has_moved_moves_again_from_where_it_is() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm-1", "a")
    plan = planned(scene.lists, ["a"], ["b"])
    moves = [(action.id, action.source, action.target) for action in plan.actions if action.target]
    assert moves == [("1.migrate.shop/vm-1", "a", "b"), ("2.migrate.shop/vm-1", "b", "a")]
    assert {action.object.uid for action in plan.actions if action.target} == {"vmi-vm-1"}
    assert (plan.totals.migrations, plan.totals.lower_bound, plan.totals.proof) == (2, 1, "none")


def test_who_migrates_already_has_one_place_on_its_target_for_later_batches() -> None:
    """Its pod there was counted as one that had come to another one."""
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("vm-1", "a")
    migrating(scene.lists, "vm-1", "b")
    plan = planned(scene.lists, ["a"], ["b"])
    moves = [(action.source, action.target) for action in plan.actions if action.target]
    assert (moves, plan.blocked) == ([("a", "b"), ("b", "a")], ())


def test_nodes_that_are_still_to_come_are_avoided() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("vm-1", "a")
    plan = planned(scene.lists, ["a"], ["b"])
    assert [action.target for action in plan.actions if action.target] == ["c"]


def test_who_was_stopped_runs_on_its_node_again_and_is_another_one() -> None:
    scene = Scene(node("a", role="x"), node("b"))
    scene.vm("vm-1", "a", rules={"nodeSelector": {"role": "x"}})
    scene.lists["nodes"].append(node("c", role="x", memory="1Gi"))
    plan = planned(scene.lists, ["a"], ["b"], ["c"], policies=[{"policy": "stop"}])
    kinds = [
        (action.batch, action.kind.value, action.target) for action in plan.actions if action.object.name == "vm-1"
    ]
    assert kinds == [(1, "stop", None), (1, "start", "a")]


def test_who_was_stopped_starts_on_its_own_node_although_an_emptier_one_of_its_batch_may_be_back() -> None:
    scene = Scene(node("a", role="x"), node("b", role="x", memory="32Gi"), node("c"))
    scene.vm("vm-1", "a", rules={"nodeSelector": {"role": "x"}})
    plan = planned(scene.lists, ["a", "b"], policies=[{"policy": "stop"}])
    assert [action.target for action in plan.actions if action.kind is ActionKind.START] == ["a"]


def test_a_pod_that_was_replaced_leaves_again_under_a_name_that_no_pod_has() -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("web-1", "a")
    plan = planned(scene.lists, ["a"], ["b"])
    second = next(action for action in plan.actions if action.id == "2.evict.shop/web-1/replacement")
    assert (second.source, second.target, second.object.uid) == ("b", "a", "")


def test_a_target_is_for_where_a_vm_is_now() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("vm-1", "a")
    plan = planned(scene.lists, ["a"], ["b"], targets={"shop/vm-1": "b"})
    assert next(action.target for action in plan.actions if action.target) == "b"


def test_all_that_is_wrong_is_said_at_once() -> None:
    scene = Scene(node("worker-1"), node("worker-2"))
    with pytest.raises(InvalidRequest) as caught:
        planned(scene.lists, ["worker-1", "worker-3"], ["worker-1"], [], avoid=("x",), targets={"shop/db": "worker-2"})
    assert len(caught.value.problems) == 5
    assert "there is no node worker-3 (do you mean worker-2?)" in caught.value.problems


def test_who_stays_on_a_node_is_there_for_the_next_batch() -> None:
    scene = Scene(node("a"), node("b", memory="2Gi"), node("c", memory="2Gi"))
    scene.vm("bound-1", "a", rules={"nodeSelector": {HOST: "a"}})
    plan = planned(scene.lists, ["a"], ["b"])
    assert [entry.object.name for entry in plan.blocked] == ["bound-1"]


def next_to_web(*pods: dict[str, Any], **lists: Any) -> Plan:
    """Of a cluster whose third node has a VM that keeps away from pods, and is emptied when the others are back."""
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"), **lists)
    scene.pod("agent-1", "b", "4Gi", owner="DaemonSet")
    for number, pod in enumerate(pods, start=1):
        scene.pod(f"web-{number}", **pod)
    scene.vm("db-1", "c", rules={"affinity": apart(HOST, "web")})
    return plan_run(from_plain(scene.lists), "", [sorted({pod["on"] for pod in pods}), ["c"]], PlanOptions())


def test_a_pod_that_may_not_go_is_still_there_in_the_next_batch() -> None:
    plan = next_to_web({"on": "a", "volumes": [{"name": "scratch", "emptyDir": {}}]})
    assert [entry.object.name for entry in plan.blocked] == ["web-1"]
    assert [(action.id, action.target) for action in plan.actions if action.target] == [("2.migrate.shop/db-1", "b")]


def test_a_pod_that_its_budget_keeps_is_still_there_in_the_next_batch() -> None:
    pods = ({"on": on, "nodeSelector": {ZONE: "x"}} for on in ("a", "b"))
    assert [entry.object.name for entry in next_to_web(*pods, pdbs=[ONE_OF_TWO]).blocked] == ["web-2", "db-1"]


@pytest.mark.parametrize(("ready", "healthy"), [("True", 2), ("False", 1)])
def test_a_pod_that_still_waits_holds_its_budget_in_the_next_batch(ready: str, healthy: int) -> None:
    """One that was not ready has never served, but will not be either."""
    status = ONE_OF_TWO["status"] | {"currentHealthy": healthy, "disruptionsAllowed": healthy - 1}
    scene = Scene(node("a"), node("b"), pdbs=[{**ONE_OF_TWO, "status": status}])
    scene.pod("web-1", "a", nodeSelector={ZONE: "gone"})
    scene.pod("web-2", "b")
    scene.lists["pods"][0]["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    (blocked,) = planned(scene.lists, ["a"], ["b"]).blocked
    assert blocked.object.name == "web-2"


def test_who_starts_elsewhere_leaves_their_node_to_those_who_start_there() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("db-1", "a", rules={"nodeSelector": {HOST: "a"}})
    scene.vm("db-2", "a", status=FIXED, rules={"affinity": apart(HOST, "db")})
    plan = plan_run(from_plain(scene.lists), "", [["a"]], PlanOptions(policies=[{"policy": "stop"}]))
    first, second = (action for action in plan.actions if action.kind is ActionKind.START)
    assert ((first.object.name, first.target), (second.object.name, second.target)) == (("db-1", "a"), ("db-2", "b"))
    assert first.id in second.after

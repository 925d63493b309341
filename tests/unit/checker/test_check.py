# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A right plan has no violations, and each way to spoil it is noticed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Obstacle,
    Plan,
    Verdict,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from checker.check import violations
from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Lists, Scene, apart, near, node


def planned(lists: Lists, *batches: Sequence[str], **options: Any) -> Plan:
    plan = plan_run(from_plain(lists), "patch", batches, PlanOptions(**options))
    assert found(lists, plan) == []
    return plan


def found(lists: Lists, plan: Plan, lots: int = 4) -> list[tuple[str, str]]:
    dice = [random.Random(seed).randrange for seed in range(lots)]
    return [(entry.fault.value, entry.subject) for entry in violations(lists, plan, dice)]


def changed(plan: Plan, name: str, **fields: Any) -> Plan:
    actions = tuple(replace(action, **fields) if action.id == name else action for action in plan.actions)
    assert actions != plan.actions
    return replace(plan, actions=actions)


def without(plan: Plan, *names: str) -> Plan:
    actions = (action for action in plan.actions if action.id not in names)
    kept = (replace(action, after=tuple(name for name in action.after if name not in names)) for action in actions)
    return replace(plan, actions=tuple(kept))


def of(plan: Plan, name: str) -> Action:
    return next(action for action in plan.actions if action.id == name)


def zones() -> Scene:
    """y-1 may enter zone x only when x-1 has left it."""
    scene = Scene(node("a", "x", role="front"), node("b", "y"), node("c", "x"), node("d", "z", role="front"))
    scene.vm("x-1", "a", rules={"nodeSelector": {"role": "front"}})
    scene.vm("y-1", "b", rules={"affinity": apart(ZONE, "x"), "nodeSelector": {ZONE: "x"}})
    return scene


def crowded() -> tuple[Lists, Plan]:
    """A small VM makes room for a large one."""
    scene = Scene(node("a"), node("b"), node("c", memory="4Gi"))
    scene.vm("large-1", "a", "6Gi")
    scene.vm("small-1", "b", "2Gi")
    return scene.lists, planned(scene.lists, ["a"], room=2)


def pair() -> tuple[Lists, Plan]:
    """Two VMs and a pod leave a; then b is emptied."""
    scene = Scene(node("a"), node("b", memory="12Gi"), node("c", memory="3Gi"))
    scene.vm("web-1", "a", "2Gi")
    scene.vm("web-2", "a", "2Gi", rules={"nodeSelector": {HOST: "a"}})
    scene.pod("job-1", "a")
    return scene.lists, planned(scene.lists, ["a"], ["b"], policies=[{"policy": "stop"}])


def test_a_target_that_is_full() -> None:
    lists, plan = crowded()
    spoilt = changed(plan, "1.migrate.shop/large-1", target="c", selector={HOST: "c"})
    assert found(lists, spoilt) == [("no place", "1.migrate.shop/large-1")]


def test_a_selector_that_leads_elsewhere() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("web-1", "a")
    spoilt = changed(planned(scene.lists, ["a"]), "1.migrate.shop/web-1", selector={})
    assert found(scene.lists, spoilt) == [("no place", "1.migrate.shop/web-1")]


def test_a_wait_that_is_missing() -> None:
    lists, plan = crowded()
    spoilt = changed(plan, "1.migrate.shop/large-1", after=("1.cordon.a",))
    assert found(lists, spoilt) == [("no place", "1.migrate.shop/large-1")]


def test_a_wait_that_is_missing_across_the_nodes_of_a_batch() -> None:
    """Both ends of what is in flight are taken: it is not enough that the other one has begun."""
    lists = zones().lists
    plan = planned(lists, ["a", "b"])
    spoilt = changed(plan, "1.migrate.shop/y-1", after=("1.cordon.a", "1.cordon.b"))
    assert found(lists, spoilt) == [("no place", "1.migrate.shop/y-1")]


def test_an_order_the_other_way_round() -> None:
    lists, plan = crowded()
    spoilt = changed(plan, "1.migrate.shop/large-1", after=("1.cordon.a",))
    spoilt = changed(spoilt, "1.migrate.shop/small-1", after=("1.cordon.a", "1.migrate.shop/large-1"))
    assert found(lists, spoilt) == [("no place", "1.migrate.shop/large-1")]


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"migrations": 5, "proof": "none"}, "migrations"),
        ({"evictions": 5}, "evictions"),
        ({"stops": 5}, "stops"),
        ({"restarts": 5}, "restarts"),
        ({"seconds": 1}, "seconds"),
        ({"batch_seconds": (1,), "seconds": 1}, "batch_seconds"),
        ({"batch_reserves": (1, 2, 3)}, "batch_reserves"),
        ({"lower_bound": 7, "proof": "none"}, "lower_bound"),
        ({"lower_bound": 0, "proof": "optimal"}, "proof"),
    ],
)
def test_totals_that_are_not_those_of_the_actions(fields: dict[str, Any], part: str) -> None:
    lists, plan = pair()
    assert found(lists, replace(plan, totals=replace(plan.totals, **fields))) == [("totals", part)]


def test_a_verdict_that_what_is_blocked_does_not_bear_out() -> None:
    lists, plan = pair()
    assert found(lists, replace(plan, verdict=Verdict.PARTIAL)) == [("totals", "verdict")]


def test_a_node_twice() -> None:
    lists, plan = crowded()
    uncounted = replace(plan.totals, batch_reserves=())
    twice = replace(plan, batches=(("a",), ("a",)), totals=uncounted)
    assert found(lists, twice) == [("twice", "a"), ("totals", "batch_seconds")]


def test_an_action_twice() -> None:
    lists, plan = crowded()
    assert found(lists, replace(plan, actions=(*plan.actions, plan.actions[0]))) == [("twice", "1.cordon.a")]


def test_a_wait_for_nobody() -> None:
    lists, plan = crowded()
    assert found(lists, changed(plan, "1.cordon.a", after=("1.cordon.x",))) == [("unknown", "1.cordon.a")]


def test_a_circle() -> None:
    lists, plan = crowded()
    spoilt = changed(plan, "1.migrate.shop/small-1", after=("1.migrate.shop/large-1",))
    assert found(lists, spoilt) == [("circle", "1.migrate.shop/large-1"), ("circle", "1.migrate.shop/small-1")]


def test_a_node_that_is_not_there() -> None:
    lists, plan = crowded()
    reference = ObjectReference("Node", "", "x", "")
    action = Action("1.cordon.x", ActionKind.CORDON, 1, "a", reference)
    assert ("unknown", "1.cordon.x") in found(lists, replace(plan, actions=(*plan.actions, action)))


def test_maintained_before_the_last_one_has_left() -> None:
    lists, plan = pair()
    spoilt = changed(plan, "1.maintain.a", after=("1.cordon.a", "1.stop.shop/web-2", "1.evict.shop/job-1"))
    spoilt = changed(spoilt, "1.stop.shop/web-2", after=("1.cordon.a",))
    assert found(lists, spoilt) == [("unfinished", "1.maintain.a"), ("occupied", "1.maintain.a")]


def test_somebody_is_forgotten() -> None:
    lists, plan = crowded()
    spoilt = without(plan, "1.migrate.shop/large-1")
    assert ("occupied", "1.maintain.a") in found(lists, spoilt)


def test_maintained_without_a_cordon() -> None:
    lists, plan = crowded()
    assert set(found(lists, without(plan, "1.cordon.a"))) == {("unfinished", "a"), ("in service", "1.maintain.a")}


def test_a_node_that_is_not_given_back() -> None:
    lists, plan = crowded()
    assert found(lists, without(plan, "1.uncordon.a")) == [("unfinished", "a")]


def test_a_batch_that_does_not_wait_for_the_one_before() -> None:
    lists, plan = pair()
    assert ("out of turn", "2.cordon.b") in found(lists, changed(plan, "2.cordon.b", after=()))


def test_who_is_stopped_and_never_started() -> None:
    lists, plan = pair()
    assert found(lists, without(plan, "1.start.shop/web-2")) == [("unfinished", "1.stop.shop/web-2")]


def test_a_vm_that_migrates_twice_at_once() -> None:
    lists, plan = crowded()
    again = replace(of(plan, "1.migrate.shop/small-1"), id="1.migrate.again")
    assert ("busy", "1.migrate.again") in found(lists, replace(plan, actions=(*plan.actions, again)))


@pytest.mark.parametrize("fields", [{"source": "c"}, {"object": ObjectReference("Pod", "shop", "x", "")}])
def test_a_pod_that_is_not_where_it_is_to_leave_from(fields: dict[str, Any]) -> None:
    lists, plan = pair()
    assert ("absent", "1.evict.shop/job-1") in found(lists, changed(plan, "1.evict.shop/job-1", **fields))


def test_a_vm_of_the_same_name_that_is_another_one() -> None:
    lists, plan = crowded()
    reference = replace(of(plan, "1.migrate.shop/large-1").object, uid="other")
    assert ("absent", "1.migrate.shop/large-1") in found(
        lists, changed(plan, "1.migrate.shop/large-1", object=reference)
    )


def test_a_migration_that_kubevirt_refuses() -> None:
    lists, plan = crowded()
    fixed = [{**vmi, "status": {**vmi["status"], **FIXED}} for vmi in lists["vmis"]]
    assert ("refused", "1.migrate.shop/large-1") in found({**lists, "vmis": fixed}, plan)


def test_a_replacement_that_does_not_come_where_it_is_foretold() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.pod("web-1", "a", affinity=apart(HOST, "db"))
    scene.pod("db-1", "b")
    plan = planned(scene.lists, ["a"])
    assert found(scene.lists, changed(plan, "1.evict.shop/web-1", target="b")) == [("no place", "1.evict.shop/web-1")]


def test_a_restart_that_does_not_come_where_it_is_foretold() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm("db-1", "a", "2Gi", status=FIXED)
    plan = planned(scene.lists, ["a"], policies=[{"expression": "`true`", "policy": "restart"}])
    assert found(scene.lists, changed(plan, "1.restart.shop/db-1", target="c")) == [("no place", "1.restart.shop/db-1")]


def budget(lists: Lists, allowed: int, expected: int) -> None:
    status = {"expectedPods": expected, "desiredHealthy": expected - allowed, "disruptionsAllowed": allowed}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    lists["pdbs"] = [{"metadata": {"namespace": "shop", "name": "web"}, "spec": spec, "status": status}]


def test_a_budget_lets_one_pod_go_after_the_other() -> None:
    scene = Scene(node("a"), node("b"))
    for number in range(3):
        scene.pod(f"web-{number}", "a")
    budget(scene.lists, 1, 3)
    assert planned(scene.lists, ["a"]).totals.evictions == 3


def test_a_budget_that_never_lets_a_pod_go() -> None:
    """The replacement of the first one finds no node."""
    scene = Scene(node("a"), node("b"))
    for number in range(2):
        scene.pod(f"web-{number}", "a")
    plan = planned(scene.lists, ["a"])
    budget(scene.lists, 0, 2)
    assert [entry for entry in found(scene.lists, plan) if entry[0] == "budget"] == [
        ("budget", "1.evict.shop/web-0"),
        ("budget", "1.evict.shop/web-1"),
    ]


def test_blocked_for_want_of_a_node_although_there_is_one() -> None:
    scene = Scene(node("a"), node("b", memory="1Gi"))
    scene.vm("db-1", "a", "2Gi")
    plan = planned(scene.lists, ["a"])
    assert [entry.object.name for entry in plan.blocked] == ["db-1"]
    assert found({**scene.lists, "nodes": [node("a"), node("b")]}, plan) == [("not stuck", "shop/db-1")]


def test_blocked_by_a_rule_that_does_not_hold() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("db-1", "a", "2Gi", status=FIXED)
    plan = planned(scene.lists, ["a"])
    movable = [{**vmi, "status": {**vmi["status"], "conditions": []}} for vmi in scene.lists["vmis"]]
    assert found({**scene.lists, "vmis": movable}, plan) == [("not stuck", "shop/db-1")]


def test_a_pod_called_blocked_that_may_be_evicted() -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("lone-1", "a", owner="")
    plan = planned(scene.lists, ["a"])
    assert [entry.object.name for entry in plan.blocked] == ["lone-1"]
    owned = Scene(node("a"), node("b"))
    owned.pod("lone-1", "a")
    assert found(owned.lists, plan) == [("not stuck", "shop/lone-1")]


def test_a_name_in_another_namespace_is_another_one() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm("db-1", "a", "2Gi")
    plan = planned(scene.lists, ["a"])
    twin = Scene(node("a"))
    twin.vm("db-1", "c", "2Gi")
    for kind in ("vmis", "pods"):
        for item in twin.lists[kind]:
            item["metadata"] |= {"namespace": "other", "uid": f"other-{kind}"}
            for owner in item["metadata"].get("ownerReferences", ()):
                owner["uid"] = "other-vmis"
        scene.lists[kind] = [*twin.lists[kind], *scene.lists[kind]]
    assert found(scene.lists, plan) == []


def test_who_follows_a_pod_is_legal_when_that_has_come() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.pod("web-1", "a", affinity=apart(HOST, "web"))
    scene.vm("near-1", "a", rules={"affinity": near(HOST, "web")})
    plan = planned(scene.lists, ["a"])
    spoilt = changed(plan, "1.migrate.shop/near-1", after=("1.cordon.a",))
    assert found(scene.lists, spoilt) == [("no place", "1.migrate.shop/near-1")]


def test_violations_are_said_in_sentences() -> None:
    lists, plan = crowded()
    spoilt = changed(plan, "1.migrate.shop/large-1", after=("1.cordon.a",))
    assert [entry.sentence for entry in violations(lists, spoilt)] == [
        "1.migrate.shop/large-1: b cannot take it at its moment: 0/3 nodes are available: 1 Insufficient memory, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable."
    ]


def test_what_is_blocked_by_another_word_is_looked_at_all_the_same() -> None:
    scene = Scene(node("a"), node("b"))
    vmi = scene.vm("db-1", "a")
    reference = ObjectReference("VirtualMachineInstance", "shop", "db-1", vmi["metadata"]["uid"])
    plan = planned(scene.lists, ["a"])
    entry = Blocked(reference, "a", ("somebody says so",), obstacle=Obstacle("invented"))
    stays = without(plan, "1.migrate.shop/db-1")
    spoilt = replace(
        stays,
        blocked=(entry,),
        verdict=Verdict.INFEASIBLE,
        totals=replace(plan.totals, migrations=0, lower_bound=0),
    )
    assert found(scene.lists, spoilt) == [("not stuck", "shop/db-1")]

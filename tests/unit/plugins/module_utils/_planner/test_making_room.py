# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs on nodes that stay in service move, so that those of drained nodes find one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import plan_text

from unit.plugins.module_utils._planner.replay_actions import ActionReplay
from unit.plugins.module_utils._planner.scene import FIXED, HOST, Lists, Scene, apart, node
from unit.plugins.module_utils._planner.tight import tight_cluster


def planned(lists: Lists, *batches: list[str], room: int = 4, **options: Any) -> Plan:
    plan = plan_run(from_plain(lists), "patch", batches, PlanOptions(room=room, **options))
    assert decode(encode(plan)) == plan
    for seed in range(4 if plan.verdict is Verdict.FEASIBLE else 0):
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(seed))
        assert replay.wrong == []
    return plan


def moves(plan: Plan) -> list[tuple[str, str | None, str | None]]:
    return [(a.object.name, a.source, a.target) for a in plan.actions if a.kind is ActionKind.MIGRATE]


def making_room(plan: Plan) -> list[Action]:
    return [action for action in plan.actions if action.makes_room]


def crowded() -> Scene:
    """A large VM on a, which b and c could take one by one only if one small VM were not there."""
    scene = Scene(node("a"), node("b"), node("c", memory="4Gi"))
    scene.vm("large-1", "a", "6Gi")
    scene.vm("small-1", "b", "2Gi")
    return scene


def test_a_small_vm_moves_so_that_a_large_one_finds_a_node() -> None:
    scene = crowded()
    assert planned(scene.lists, ["a"], room=0).verdict is Verdict.INFEASIBLE
    plan = planned(scene.lists, ["a"])
    assert plan.verdict is Verdict.FEASIBLE
    assert moves(plan) == [("small-1", "b", "c"), ("large-1", "a", "b")]
    (action,) = making_room(plan)
    assert action.node == "a"
    assert action.why == "It makes room on b for what leaves a; no other node fits."
    assert action.id in next(a for a in plan.actions if a.object.name == "large-1").after


def test_nobody_makes_room_where_there_is_some() -> None:
    scene = crowded()
    scene.lists["nodes"].append(node("d"))
    assert making_room(planned(scene.lists, ["a"])) == []


def test_the_smallest_moves_that_is_large_enough() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="4Gi"))
    scene.vm("large-1", "a", "5Gi")
    for name, memory in (("tiny-1", "512Mi"), ("small-1", "2Gi"), ("speck-1", "1Mi")):
        scene.vm(name, "b", memory)
    assert [action.object.name for action in making_room(planned(scene.lists, ["a"]))] == ["tiny-1"]


def test_two_move_if_one_is_not_enough() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="6Gi"))
    scene.vm("large-1", "a", "6Gi")
    for number in range(2):
        scene.vm(f"small-{number}", "b", "2Gi")
    assert planned(scene.lists, ["a"], room=1).verdict is Verdict.INFEASIBLE
    assert len(making_room(planned(scene.lists, ["a"], room=2))) == 2


def test_who_keeps_another_away_by_a_rule_moves() -> None:
    scene = Scene(node("a", pool="x"), node("b", pool="x"), node("c"))
    scene.vm("db-1", "a", rules={"affinity": apart(HOST, "db"), "nodeSelector": {"pool": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart(HOST, "db")})
    assert planned(scene.lists, ["a"], room=0).verdict is Verdict.INFEASIBLE
    assert moves(planned(scene.lists, ["a"])) == [("db-2", "b", "c"), ("db-1", "a", "b")]


def test_who_cannot_migrate_makes_no_room() -> None:
    scene = crowded()
    next(vmi for vmi in scene.lists["vmis"] if vmi["metadata"]["name"] == "small-1")["status"] |= FIXED
    assert planned(scene.lists, ["a"]).verdict is Verdict.INFEASIBLE


@pytest.mark.parametrize("policy", ["stop", "restart"])
def test_others_make_room_before_anybody_is_interrupted(policy: str) -> None:
    plan = planned(crowded().lists, ["a"], policies=[{"policy": policy}])
    assert (plan.totals.stops, plan.totals.restarts, len(making_room(plan))) == (0, 0, 1)


def test_no_more_of_them_move_in_a_run_than_are_allowed() -> None:
    scene = Scene()
    for pool in "xy":
        scene.lists["nodes"] += [
            node(f"{pool}{number}", memory="4Gi" if number else "8Gi", pool=pool) for number in (0, 2)
        ]
        scene.lists["nodes"] += [node(f"{pool}1", pool=pool)]
        scene.vm(f"large-{pool}", f"{pool}0", "6Gi", rules={"nodeSelector": {"pool": pool}})
        scene.vm(f"small-{pool}", f"{pool}1", "2Gi", rules={"nodeSelector": {"pool": pool}})
    assert planned(scene.lists, ["x0"], ["y0"], room=2).verdict is Verdict.FEASIBLE
    assert planned(scene.lists, ["x0"], ["y0"], room=1).verdict is Verdict.PARTIAL


# Of clusters that are tight: what is drained, where others make room.
TIGHT = [(0, ["n0"]), (3, ["n0", "n1"]), (12, ["n0"]), (44, ["n1"]), (49, ["n1"]), (54, ["n0", "n1"])]


@pytest.mark.campaign
@pytest.mark.parametrize(("seed", "nodes"), TIGHT)
def test_what_goes_as_planned_stays_as_planned(seed: int, nodes: list[str]) -> None:
    """With whatever has ended, and whatever is on its way."""
    lists = tight_cluster(seed, nodes=5, machines=10, pods=2)
    plan = planned(lists, nodes)
    assert making_room(plan)
    assert repair(plan, from_plain(lists)) == plan
    for most in range(1, len(plan.actions)):
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(most), most=most)
        assert differences(plan, repair(plan, from_plain(replay.lists), ended=replay.ended)) == []


def test_who_cannot_make_room_after_all_keeps_the_other_where_it_is() -> None:
    scene = crowded()
    plan = planned(scene.lists, ["a"])
    found = repair(plan, from_plain(scene.lists), failures={"shop/small-1": ("c",)}, hopeless={"shop/small-1"})
    assert (moves(found), [entry.object.name for entry in found.blocked]) == ([], ["large-1"])


def test_who_was_to_make_room_and_has_gone_need_not() -> None:
    scene = crowded()
    plan = planned(scene.lists, ["a"])
    for kind in ("vmis", "pods"):
        scene.lists[kind] = [entry for entry in scene.lists[kind] if "small-1" not in entry["metadata"]["name"]]
    assert moves(repair(plan, from_plain(scene.lists))) == [("large-1", "a", "b")]


def test_the_plan_tells_for_whose_sake() -> None:
    text = "\n".join(plan_text(planned(crowded().lists, ["a"])))
    assert "VM  shop/small-1 -> c, to make room on b" in text
    assert "VM  shop/large-1 -> b, after VM shop/small-1" in text
    assert "In all: 2 migrations, 1 of which to make room on other nodes." in text


def test_the_bound_leaves_out_who_makes_room() -> None:
    plan = planned(crowded().lists, ["a"])
    assert (plan.totals.migrations, plan.totals.lower_bound, plan.totals.proof) == (2, 1, "none")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run: which actions there are, and what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._planner.scene import ZONE, Lists, Scene, apart, node


def planned(lists: Lists, *batches: list[str], **options: Any) -> Plan:
    plan = plan_run(from_plain(lists), "patch", batches, PlanOptions(**options))
    assert decode(encode(plan)) == plan  # its parts agree
    return plan


def after(plan: Plan, action: str) -> set[str]:
    return set(next(entry.after for entry in plan.actions if entry.id == action))


def ids(plan: Plan) -> list[str]:
    return [action.id for action in plan.actions]


def test_a_node_is_cordoned_emptied_maintained_and_given_back() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("db-1", "a")
    scene.pod("web-1", "a")
    plan = planned(scene.lists, ["a"])
    assert ids(plan) == ["1.cordon.a", "1.migrate.shop/db-1", "1.evict.shop/web-1", "1.maintain.a", "1.uncordon.a"]
    assert after(plan, "1.migrate.shop/db-1") >= {"1.cordon.a"}
    assert after(plan, "1.maintain.a") == {"1.cordon.a", "1.evict.shop/web-1", "1.migrate.shop/db-1"}
    assert after(plan, "1.uncordon.a") == {"1.maintain.a"}
    move = plan.actions[1]
    assert (move.source, move.target, move.object.uid) == ("a", "b", "vmi-db-1")
    assert move.selector == {"kubernetes.io/hostname": "b"}
    assert (plan.verdict, plan.totals.migrations, plan.totals.lower_bound, plan.totals.proof) == (
        Verdict.FEASIBLE,
        1,
        1,
        "optimal",
    )


def test_one_leaves_a_zone_before_the_other_enters_it() -> None:
    scene = Scene(node("a", "x"), node("b", "y"), node("c", "x"))
    scene.vm("guard-1", "a", rules={"nodeSelector": {ZONE: "x"}})
    scene.vm("guard-2", "b", rules={"affinity": apart(ZONE, "thief")})
    scene.lists["nodes"].append(node("d", "y"))
    scene.vm("thief-1", "b", rules={"affinity": apart(ZONE, "guard"), "nodeSelector": {ZONE: "y"}})
    plan = planned(scene.lists, ["a", "b"])
    assert plan.blocked == ()
    assert "1.migrate.shop/guard-2" in after(plan, "1.migrate.shop/thief-1")


def test_a_batch_waits_until_the_nodes_before_it_are_back() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("db-1", "a", rules={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    plan = planned(scene.lists, ["a"], ["b", "c"], policies=[{"policy": "stop"}])
    both = {"1.uncordon.a", "1.start.shop/db-1"}
    assert after(plan, "2.cordon.b") == after(plan, "2.cordon.c") == both
    assert after(plan, "1.start.shop/db-1") == {"1.stop.shop/db-1", "1.uncordon.a"}
    assert plan.totals.stops == 1


@pytest.mark.parametrize(("allowed", "verdict"), [((), Verdict.INFEASIBLE), (("force",), Verdict.FEASIBLE)])
def test_a_pod_that_may_not_go_is_blocked(allowed: tuple[str, ...], verdict: Verdict) -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("lone-1", "a", owner="")
    plan = planned(scene.lists, ["a"], allowed=frozenset(allowed))
    assert plan.verdict is verdict
    assert ("1.evict.shop/lone-1" in ids(plan)) is bool(allowed)
    if not allowed:
        assert plan.blocked[0].reasons == ("nothing would replace it; set force if it may go",)


def test_some_batches_can_be_done_although_others_cannot() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("db-1", "a", rules={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    plan = planned(scene.lists, ["a"], ["b"])
    assert plan.verdict is Verdict.PARTIAL
    (blocked,) = plan.blocked
    assert (blocked.object.title, blocked.node, blocked.passing) == ("shop/db-1", "a", False)
    assert blocked.reasons[0].startswith("no node can take it: ")


def test_options_come_back_from_the_plan() -> None:
    options = PlanOptions(
        policies=[{"selector": {"app": "db"}, "policy": "stop"}],
        avoid=("c",),
        targets={"shop/db-1": "b"},
        allowed=frozenset({"force"}),
        profile=Profile.NO_SCORING,
    )
    assert PlanOptions.of(options.to_json()) == options
    assert PlanOptions.of(options.to_json()).rules == options.rules != ()


def test_all_that_is_wrong_with_options_is_said_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        PlanOptions.of({"avoid": "a", "allowed": ["everything"], "profile": "Best", "polices": []})
    assert len(caught.value.problems) == 4


def test_a_plan_that_is_right_stays_as_it_is() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("db-1", "a")
    scene.pod("web-1", "a")
    plan = planned(scene.lists, ["a"])
    assert repair(plan, from_plain(scene.lists)) == plan
    assert ActionKind.MIGRATE in {action.kind for action in plan.actions}


def test_nobody_is_stopped_who_can_migrate_once_another_has_been_stopped() -> None:
    scene = Scene(node("a", "x"), node("b", "x"))
    scene.vm("afraid-1", "a", rules={"affinity": apart(ZONE, "bound")})
    scene.vm("bound-1", "a", rules={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    plan = planned(scene.lists, ["a"], policies=[{"policy": "stop"}])
    assert [action for action in ids(plan) if ".stop." in action] == ["1.stop.shop/bound-1"]
    assert "1.stop.shop/bound-1" in after(plan, "1.migrate.shop/afraid-1")

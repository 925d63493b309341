# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A replay goes on to the end of a plan, and by other plans, as a run would."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from checker.order import MuchAtOnce, OneByOne
from checker.replay import Replay
from unit.checker import clusters
from unit.plugins.module_utils._planner.scene import Scene, node

MOVE = "1.migrate.shop/web-1"


def carried_out() -> tuple[Replay, Plan]:
    scene = Scene(node("a"), node("b"))
    scene.vm("web-1", "a")
    plan = plan_run(from_plain(scene.lists), "patch", [["a"]], PlanOptions())
    replay = Replay(scene.lists, plan, OneByOne())
    replay.run()
    assert (replay.violations, MOVE in replay.ended) == ([], True)
    return replay, plan


def test_what_has_ended_is_over_although_a_plan_has_been_without_it() -> None:
    replay, plan = carried_out()
    for following in (replace(plan, actions=()), plan):
        replay.follow(following, OneByOne())
        replay.run()
    assert (replay.violations, MOVE in replay.ended) == ([], True)


def test_what_is_to_leave_another_node_has_not_ended() -> None:
    replay, plan = carried_out()
    moved = (replace(a, source="b", target="a", selector={"kubernetes.io/hostname": "a"}) for a in plan.actions)
    for following in (replace(plan, actions=()), replace(plan, actions=tuple(a for a in moved if a.id == MOVE))):
        replay.follow(following, OneByOne())
    assert MOVE not in replay.ended


def test_who_does_not_start_again_holds_up_no_later_batch() -> None:
    lists, plan = clusters.planned(58)
    assert any(
        action.kind is ActionKind.START and action.target is None and action.batch == 1 for action in plan.actions
    )
    for order in (OneByOne(), MuchAtOnce()):
        replay = Replay(lists, plan, order)
        replay.run()
        assert (replay.violations, replay.ended) == ([], {action.id for action in plan.actions})

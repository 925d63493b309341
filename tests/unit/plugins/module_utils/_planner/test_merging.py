# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a batch stays as it was, put together with what is planned anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.merging import PlannedBatch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import wholly
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._plan.plans import action, vm
from unit.plugins.module_utils._plan.plans import plan as plan_of_batch
from unit.plugins.module_utils._planner.scene import HOST, Scene, apart, node


@pytest.mark.parametrize("of", [None, "b"])
def test_who_has_left_one_node_for_another_of_the_batch_leaves_that_as_well(of: Any) -> None:
    """As a pod of a StatefulSet, which is made anew under its name where it may, before that node is cordoned."""
    scene = Scene(*(node(name) for name in "abcd"))
    scene.pod("web-0", "a", owner="StatefulSet", affinity=apart(HOST, "web"))
    scene.pod("web-1", "b", affinity=apart(HOST, "web"))
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    (pod, _other) = scene.lists["pods"]
    pod["metadata"]["uid"], pod["spec"]["nodeName"] = "pod-web-0-anew", "b"
    found = repair(plan, from_plain(scene.lists), node=of, ended={"1.cordon.a", "1.cordon.b", "1.evict.shop/web-0"})
    assert decode(encode(found)) == found
    (again,) = (action for action in found.actions if action.id == "1.evict.shop/web-0")
    assert (again.node, again.source, again.object.uid) == ("b", "b", "pod-web-0-anew")
    waits = {action.id: action.after for action in found.actions}
    assert "1.evict.shop/web-0" in waits["1.maintain.b"]
    assert "1.evict.shop/web-0" not in waits["1.maintain.a"]


def test_who_has_left_out_of_turn_waits_for_nobody_who_waits_for_it_by_way_of_another() -> None:
    """Each of two that have begun stood before the one that was planned again: nothing waits in a circle."""
    late = action(ActionKind.MIGRATE, vm("late"), "n1", "n2")
    first = action(ActionKind.MIGRATE, vm("first"), "n1", "n2", late)
    second = action(ActionKind.MIGRATE, vm("second"), "n1", "n2", first)
    batch = PlannedBatch(plan_of_batch(late, first, second), 1, ["n1"], None, frozenset())
    merged = batch.merged([replace(late, target="n3", after=(second.id,))], [], {first.id, second.id})
    waits = {each.id: each.after for each in merged.actions}
    assert waits == {first.id: (), second.id: (first.id,), late.id: (second.id,)}


def test_who_waits_in_a_circle_no_more_waits_as_it_was_found() -> None:
    """Though it goes where it was to go, and is another node's."""
    first = action(ActionKind.MIGRATE, vm("first"), "n1", "n3")
    second = action(ActionKind.MIGRATE, vm("second"), "n2", "n4", first)
    room = action(ActionKind.MIGRATE, vm("room"), "n2", "n5")
    batch = PlannedBatch(plan_of_batch(first, second, room), 1, ["n1", "n2"], "n1", frozenset())
    found = [room, replace(second, after=(room.id,)), replace(first, target="n6", after=(second.id,))]
    merged = {each.id: each.after for each in batch.merged(found, [], set()).actions}
    assert merged == {room.id: (), second.id: (room.id,), first.id: (second.id,)}


def test_who_has_begun_is_the_first_that_waits_in_a_circle_no_more() -> None:
    """Whoever else waits in it may do so by way of others, as it was found."""
    ahead = action(ActionKind.MIGRATE, vm("ahead"), "n1", "n3")
    last = action(ActionKind.MIGRATE, vm("last"), "n2", "n4", ahead)
    early = action(ActionKind.MIGRATE, vm("early"), "n2", "n5", last)
    between = action(ActionKind.MIGRATE, vm("between"), "n1", "n6", ahead)
    batch = PlannedBatch(plan_of_batch(ahead, last, early), 1, ["n1", "n2"], "n1", frozenset())
    found = [replace(ahead, target="n7", after=(early.id,)), between, replace(last, after=(between.id,))]
    merged = {each.id: each.after for each in batch.merged(found, [], {early.id}).actions}
    assert (merged[early.id], merged[ahead.id]) == ((), (early.id,))
    assert ahead.id in merged[last.id]


def test_who_has_left_out_of_turn_waits_for_nobody_who_keeps_its_wait_for_it() -> None:
    first = action(ActionKind.MIGRATE, vm("first"), "n1", "n2")
    early = action(ActionKind.MIGRATE, vm("early"), "n1", "n2", first)
    last = action(ActionKind.MIGRATE, vm("last"), "n1", "n2", early)
    batch = PlannedBatch(plan_of_batch(first, early, last), 1, ["n1"], None, frozenset())
    found = [replace(last, after=()), replace(first, target="n3", after=(last.id,))]
    merged = {each.id: each.after for each in batch.merged(found, [], {early.id}).actions}
    assert merged == {early.id: (), last.id: (early.id,), first.id: (last.id,)}


def test_who_has_to_wait_now_for_whom_it_kept_waiting_does() -> None:
    """That one is another node's, and stays as it was but for its wait: else nobody would wait for the other."""
    first = action(ActionKind.MIGRATE, vm("first"), "n2", "n4")
    later = action(ActionKind.STOP, vm("later"), "n1", None, first)
    batch = PlannedBatch(plan_of_batch(first, later), 1, ["n1", "n2"], "n2", frozenset())
    found = [replace(later, after=()), replace(first, target="n3", after=(later.id,))]
    merged = {each.id: (each.target, each.after) for each in batch.merged(found, [], set()).actions}
    assert merged == {later.id: (None, ()), first.id: ("n3", (later.id,))}


def test_of_waits_in_a_circle_those_stay_that_were_found_now() -> None:
    """Whoever stands between, and whichever of them goes elsewhere by now."""
    first = action(ActionKind.MIGRATE, vm("first"), "n2", "n4")
    middle = action(ActionKind.MIGRATE, vm("middle"), "n1", "n5", first)
    last = action(ActionKind.STOP, vm("last"), "n1", None, middle)
    batch = PlannedBatch(plan_of_batch(first, middle, last), 1, ["n1", "n2"], "n2", frozenset())
    before = [replace(middle, after=()), replace(last, after=())]
    merged = batch.merged([*before, replace(first, target="n3", after=(last.id,))], [], set())
    assert {each.id: each.after for each in merged.actions} == {
        middle.id: (),
        last.id: (middle.id,),
        first.id: (last.id,),
    }
    makes_room = replace(middle, target="n6", after=(last.id,))
    found = [replace(last, after=()), makes_room, replace(first, target="n3", after=(middle.id,))]
    merged = batch.merged(found, [], set())
    assert {each.id: each.after for each in merged.actions} == {
        last.id: (),
        middle.id: (last.id,),
        first.id: (middle.id,),
    }


def test_a_wait_as_it_was_found_closes_no_other_circle() -> None:
    """Whoever has begun keeps its wait at first, as it is in no circle until others wait as they were found."""
    first = action(ActionKind.MIGRATE, vm("first"), "n1", "n3")
    last = action(ActionKind.MIGRATE, vm("last"), "n2", "n4", first)
    early = action(ActionKind.MIGRATE, vm("early"), "n2", "n4", last)
    other = action(ActionKind.MIGRATE, vm("other"), "n2", "n5", last)
    own = action(ActionKind.MIGRATE, vm("own"), "n1", "n4")
    batch = PlannedBatch(plan_of_batch(first, last, early, other, own), 1, ["n1", "n2"], "n1", frozenset())
    moved = replace(first, target="n6", after=(other.id,))
    found = [replace(other, after=()), moved, replace(own, after=(early.id,)), replace(last, after=(own.id,))]
    assert {each.id: each.after for each in batch.merged(found, [], {early.id}).actions} == {
        early.id: (),
        own.id: (early.id,),
        last.id: (own.id,),
        other.id: (last.id,),
        first.id: (other.id,),
    }


def test_an_action_says_for_whom_it_waits_also_where_that_one_has_begun() -> None:
    """And is thus not planned again: whoever stands between them may stay as it was, without that wait."""
    first = action(ActionKind.MIGRATE, vm("first"), "a", "b")
    second = action(ActionKind.MIGRATE, vm("second"), "a", "b", first)
    third = action(ActionKind.MIGRATE, vm("third"), "a", "b", second)
    assert wholly({each.id: each for each in (second, third)}, third.id).after == (second.id, first.id)

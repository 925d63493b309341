# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits that no moment needs are found, and what may be meant by them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from checker.excess import NeedlessWait, Wish, excess
from unit.checker import clusters
from unit.plugins.module_utils._planner.scene import HOST, Lists, Scene, apart, near, node


def planned(lists: Lists, **options: Any) -> Plan:
    return plan_run(from_plain(lists), "", [["a"]], PlanOptions(**options))


def waiting(plan: Plan, later: str, earlier: str) -> Plan:
    actions = (replace(a, after=(*a.after, earlier)) if a.id == later else a for a in plan.actions)
    return replace(plan, actions=tuple(actions))


def found(lists: Lists, plan: Plan) -> list[NeedlessWait]:
    return excess(lists, plan, [random.Random(seed).randrange for seed in range(3)])


def two() -> Scene:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("web-1", "a")
    scene.vm("db-1", "a")
    return scene


def test_a_wait_that_makes_room_is_needed() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="4Gi"))
    scene.vm("large-1", "a", "6Gi")
    scene.vm("small-1", "b", "2Gi")
    plan = planned(scene.lists, room=2)
    assert any("1.migrate.shop/small-1" in action.after for action in plan.actions)
    assert found(scene.lists, plan) == []


def test_a_wait_for_no_reason() -> None:
    scene = two()
    plan = waiting(planned(scene.lists), "1.migrate.shop/web-1", "1.migrate.shop/db-1")
    assert found(scene.lists, plan) == [NeedlessWait("1.migrate.shop/web-1", "1.migrate.shop/db-1", Wish.NONE)]


def test_harm_that_is_done_last() -> None:
    scene = two()
    scene.vm("tied-1", "a", rules={"nodeSelector": {HOST: "a"}})
    plan = planned(scene.lists, policies=[{"policy": "stop"}])
    assert {entry.wish for entry in found(scene.lists, plan)} == {Wish.HARM_LAST}


def test_who_needs_company() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.pod("web-1", "a", affinity=apart(HOST, "web"))
    scene.vm("near-1", "a", rules={"affinity": near(HOST, "web")})
    scene.vm("free-1", "a")
    plan = planned(scene.lists)
    assert found(scene.lists, plan) == []
    spoilt = waiting(plan, "1.migrate.shop/near-1", "1.migrate.shop/free-1")
    assert found(scene.lists, spoilt) == [NeedlessWait("1.migrate.shop/near-1", "1.migrate.shop/free-1", Wish.COMPANY)]


def test_room_for_pods_that_come_elsewhere() -> None:
    assert {entry.wish for entry in found(*clusters.planned(23))} == {Wish.ROOM}


@pytest.mark.parametrize(
    ("seed", "later", "earlier"),
    [
        (0, "1.migrate.shop/g0-2", "1.migrate.shop/g2-4"),
        (0, "1.evict.shop/web-7", "1.migrate.shop/g0-3"),
        (23, "2.migrate.shop/g0-7", "2.migrate.shop/g2-0"),
    ],
)
def test_a_wait_for_no_reason_where_pods_are_evicted(seed: int, later: str, earlier: str) -> None:
    """In these clusters others do wait for room."""
    lists, plan = clusters.planned(seed)
    wishes = {(entry.later, entry.earlier): entry.wish for entry in found(lists, waiting(plan, later, earlier))}
    assert (wishes[later, earlier], Wish.ROOM in wishes.values()) == (Wish.NONE, True)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 100, 2))
def test_plans_of_generated_clusters_have_no_wait_for_no_reason(first: int) -> None:
    for seed in (first, first + 1):
        lists, plan = clusters.planned(seed)
        needless = excess(lists, plan, [random.Random(seed).randrange])
        assert [entry for entry in needless if entry.wish is Wish.NONE] == []

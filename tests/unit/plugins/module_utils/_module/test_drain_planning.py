# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that may not differ is held against a fresh look, and only what differs is refused.

And what is mended leaves who comes again each time.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_planning import (
    held_against,
    mended_plan,
    require_as_planned,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Scene, apart, migrating, near, node

NOBODY: Any = None  # whom a refusal would name


def after(plan: Plan, name: str) -> set[str]:
    (action,) = (action for action in plan.actions if action.id == name)
    return {other for other in action.after if ".cordon." not in other}


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_wait_that_was_one_through_a_pod_that_somebody_has_evicted_is_nothing_new(name: str) -> None:
    scene = Scene(node("a", "x", role="front"), node("b", "y"), node("c", "x"), node("d", "z", role="front"))
    scene.vm("x-1", "a", rules={"nodeSelector": {"role": "front"}})
    scene.pod("y-1", "b", affinity=apart(ZONE, "x"), nodeSelector={ZONE: "x"})
    scene.vm("tied-1", "a", rules={"nodeSelector": {HOST: "a"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions(policies=[{"policy": "stop"}]))
    assert after(plan, "1.stop.shop/tied-1") == {"1.evict.shop/y-1"}
    assert after(plan, "1.evict.shop/y-1") == {"1.migrate.shop/x-1"}
    migrating(scene.lists, "x-1", "d")
    scene.lists["vmis"][0]["status"]["nodeName"] = "d"
    scene.lists["migrations"].clear()
    scene.lists["pods"] = [pod for pod in scene.lists["pods"] if pod["metadata"]["name"] != "y-1"]
    for item in scene.lists["nodes"][:2]:
        item["spec"]["unschedulable"] = True
        item["metadata"].setdefault("annotations", {})["virtops.kubevirt/cordon"] = "patch"
    mended, changes = held_against(NOBODY, plan, name, from_plain(scene.lists), may_differ=False)
    assert (after(mended, "1.stop.shop/tied-1"), changes) == ({"1.migrate.shop/x-1"}, [])
    require_as_planned(NOBODY, plan, mended, name)


def test_who_has_come_since_as_it_tolerates_the_cordon_stands_in_nobodys_way() -> None:
    """Though it may not be evicted, as its data would be lost."""
    scene = Scene(node("a"), node("b"))
    scene.pod("api-0", "a")
    plan = plan_run(from_plain(scene.lists), "patch", [["a"]], PlanOptions())
    first = {pod["metadata"]["uid"] for pod in scene.lists["pods"]}
    scene.pod("system-0", "a", tolerations=[{"operator": "Exists"}], volumes=[{"name": "data", "emptyDir": {}}])
    scene.lists["nodes"][0]["spec"]["unschedulable"] = True
    mended = mended_plan(from_plain(scene.lists), plan, "a", {}, (), (), (), first)
    assert mended.blocked == ()
    require_as_planned(NOBODY, plan, mended, "a")


@pytest.mark.parametrize("is_new", [False, True])
def test_who_has_come_since_as_it_tolerates_the_cordon_stays_and_keeps_nobody_from_waiting(is_new: bool) -> None:
    """Whoever is harmed waits for all that leave unharmed, also for whom it would have waited through that one."""
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("moved-0", "a", "4Gi")
    scene.vm("full-0", "c", "4Gi")
    scene.pod("api-0", "a", "10Mi")
    plan = plan_run(from_plain(scene.lists), "patch", [["a"]], PlanOptions(policies=[{"policy": "restart"}]))
    scene.pod("system-0", "a", "1Gi", tolerations=[{"operator": "Exists"}], affinity=near(HOST, "moved"))
    scene.vm("tied-0", "a", "512Mi", status=FIXED)
    scene.lists["nodes"][0]["spec"]["unschedulable"] = True
    first = {pod["metadata"]["uid"] for pod in scene.lists["pods"] if pod["metadata"]["name"] != "system-0"}
    mended = mended_plan(from_plain(scene.lists), plan, "a", {}, (), (), (), first if is_new else None)
    others = {"1.migrate.shop/moved-0", "1.evict.shop/api-0"}
    if not is_new:
        assert after(mended, "1.evict.shop/system-0") == {"1.migrate.shop/moved-0"}
        assert after(mended, "1.restart.shop/tied-0") == {"1.evict.shop/system-0", "1.evict.shop/api-0"}
    else:
        assert "1.evict.shop/system-0" not in {action.id for action in mended.actions}
        assert after(mended, "1.restart.shop/tied-0") == others

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the scheduler's choice depends on more than the plan, the plan says so, and only there."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.assumptions import (
    AS_BEFORE,
    IN_ORDER,
    SAMPLED,
    compared,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import plan_rebalance
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._planner.scene import FIXED, HOST, Scene, apart, node

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def planned(scene: Scene, *batches: list[str]) -> Plan:
    return plan_run(from_plain(scene.lists), "patch", batches, PlanOptions(policies=[{"policy": "stop"}]))


def assumed(plan: Plan) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    """Where those come whose node the scheduler chooses, and what is taken for granted of it."""
    kinds = ("evict", "restart", "start")
    return {entry.id: (entry.target, entry.assumed) for entry in plan.actions if entry.kind.value in kinds}


def test_who_leaves_alone_comes_to_the_emptiest_node_for_sure() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="6Gi"))
    scene.pod("web-1", "a", "1Gi")
    scene.pod("web-2", "c", "1Gi")
    assert assumed(planned(scene, ["a"])) == {"1.evict.shop/web-1": ("b", ())}


def test_who_comes_first_takes_the_emptiest_node() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="7Gi"))
    scene.pod("api-1", "a", "2Gi")
    scene.pod("web-1", "a", "2Gi")
    found = assumed(planned(scene, ["a"]))
    assert found == {"1.evict.shop/api-1": ("b", (IN_ORDER,)), "1.evict.shop/web-1": ("c", (IN_ORDER,))}


def test_a_vm_on_its_way_to_the_emptiest_node_is_in_flight_as_well() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="7Gi"))
    scene.vm("db-1", "a", "3Gi", rules={"nodeSelector": {HOST: "b"}})
    scene.pod("web-1", "a", "1Gi")
    assert assumed(planned(scene, ["a"])) == {"1.evict.shop/web-1": ("c", (IN_ORDER,))}


def test_company_that_is_not_wanted_may_come_first() -> None:
    """The other one is expected elsewhere, and may come where it shuts the only node for who is sure of that."""
    scene = Scene(node("a"), node("b"), node("c", memory="7Gi"))
    scene.pod("api-1", "a", "2Gi")
    scene.pod("rest-1", "a", "2Gi")
    scene.pod("web-1", "a", affinity=apart(HOST, "api"), nodeSelector={HOST: "c"})
    scene.pod("zoo-1", "a", affinity=apart(HOST, "api"))
    found = assumed(planned(scene, ["a"]))
    assert found["1.evict.shop/web-1"] == ("c", ())  # it waits until it fits there
    assert found["1.evict.shop/zoo-1"] == ("c", (IN_ORDER,))


def test_who_has_one_node_only_comes_there_whoever_is_first() -> None:
    scene = Scene(node("a"), node("b"))
    for number in range(3):
        scene.pod(f"web-{number}", "a", "1Gi")
    found = assumed(planned(scene, ["a"]))
    assert set(found.values()) == {("b", ())}


def test_what_is_not_sure_makes_later_batches_unsure() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="7Gi"), node("d", memory="5Gi"))
    scene.pod("api-1", "a", "2Gi")
    scene.pod("web-1", "a", "2Gi")
    scene.pod("far-1", "d", "1Gi")
    scene.pod("own-1", "d", "1Gi", nodeSelector={HOST: "c"})
    found = assumed(planned(scene, ["a"], ["d"]))
    assert AS_BEFORE in found["2.evict.shop/far-1"][1]
    assert found["2.evict.shop/own-1"] == ("c", ())
    alone = Scene(node("a"), node("b"), node("c", memory="7Gi"), node("d", memory="5Gi"))
    alone.pod("api-1", "a", "2Gi")
    alone.pod("far-1", "d", "1Gi")
    assert assumed(planned(alone, ["a"], ["d"]))["2.evict.shop/far-1"] == ("a", ())


def test_a_vm_that_starts_again_may_rather_come_elsewhere() -> None:
    scene = Scene(node("a", memory="6Gi"), node("b"), node("c"))
    scene.vm("db-1", "a", "2Gi", status=FIXED)
    assert assumed(planned(scene, ["a"])) == {"1.start.shop/db-1": ("a", (IN_ORDER,))}
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("db-1", "a", "2Gi", status=FIXED, rules={"nodeSelector": {HOST: "a"}})
    assert assumed(planned(scene, ["a"])) == {"1.start.shop/db-1": ("a", ())}


def test_of_many_nodes_the_scheduler_looks_at_some() -> None:
    scene = Scene(node("a"), node("best", memory="16Gi"), *(node(f"n{number}") for number in range(120)))
    scene.pod("web-1", "a", "1Gi")
    assert assumed(planned(scene, ["a"])) == {"1.evict.shop/web-1": ("best", (SAMPLED,))}


@pytest.mark.parametrize(
    ("nodes", "some"), [(3, 3), (99, 99), (100, 100), (200, 100), (1000, 420), (5000, 500), (9000, 450)]
)
def test_how_many_nodes_the_scheduler_compares(nodes: int, some: int) -> None:
    assert compared(nodes) == some


def test_who_is_moved_back_may_find_others_there() -> None:
    scene = Scene(node("a", disk="slow"), node("b", disk="fast"), node("c", memory="7Gi", disk="fast"))
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    wish = {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": preference}]}}
    # Each controller has another pod that serves meanwhile.
    for app in ("api", "web"):
        owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"o-{app}", "controller": True}]
        scene.pod(f"{app}-1", "a", "2Gi", affinity=wish, metadata={"ownerReferences": owner})
        scene.pod(f"{app}-2", "a", "1Mi", metadata={"ownerReferences": owner})
    found = plan_rebalance(from_plain(scene.lists), max_moves=9).plan
    assert assumed(found) == {"1.evict.shop/api-1": ("b", (IN_ORDER,)), "1.evict.shop/web-1": ("c", (IN_ORDER,))}

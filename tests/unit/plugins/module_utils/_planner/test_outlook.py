# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a plan's migrations take, on which terms, and what becomes of the VMs without a plan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan

from unit.plugins.module_utils._kubevirt.machines import kubevirt, migration
from unit.plugins.module_utils._planner.scene import Lists, Scene, node

# Of a guest of 1 GiB: 10 s, and the copying at half of 10 Gbit/s.
SMALL = 12
# The same at 64 MiB per second.
SLOW = 26


def cluster(*names: str, memory: str = "1Gi", **settings: Any) -> Lists:
    """VMs on node a, and room for them."""
    scene = Scene(node("a", memory="64Gi"), node("b", memory="64Gi"), node("c", memory="64Gi"))
    for name in names:
        scene.vm(name, "a", memory)
    return {**scene.lists, "kubevirts": [kubevirt(migrations=settings)]}


def with_policy(lists: Lists, **changes: Any) -> Lists:
    selectors = {"virtualMachineInstanceSelector": {"app": "vm"}, "namespaceSelector": {"team": "shop"}}
    return {
        **lists,
        "namespaces": [{"metadata": {"name": "shop", "labels": {"team": "shop"}}}],
        "migrationpolicies": [{"metadata": {"name": "shop-policy"}, "spec": {"selectors": selectors, **changes}}],
    }


def pace(lists: Lists) -> tuple[str, int, str]:
    (move,) = plan_drain(lists, ["a"]).moves
    return move.migration_policy, move.seconds, move.ending.value


@pytest.mark.parametrize(
    ("lists", "found"),
    [
        (cluster("vm-1"), ("", SMALL, "in_time")),
        (cluster("vm-1", bandwidthPerMigration="64Mi"), ("", SLOW, "in_time")),
        (with_policy(cluster("vm-1"), bandwidthPerMigration="64Mi"), ("shop-policy", SLOW, "in_time")),
        (with_policy(cluster("db-1"), bandwidthPerMigration="64Mi"), ("", SMALL, "in_time")),
        (cluster("vm-1", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=10), ("", 30, "aborted")),
        (
            cluster("vm-1", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=10, allowPostCopy=True),
            ("", 1034, "post_copy"),
        ),
    ],
)
def test_each_migration_has_its_terms(lists: Lists, found: tuple[str, int, str]) -> None:
    assert pace(lists) == found


def test_a_migration_that_takes_too_long_is_named() -> None:
    lists = cluster("vm-1", "vm-2", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=10)
    assert plan_drain(lists, ["a"]).message == (
        "a can be drained in 1 wave: 2 VMs migrate. KubeVirt would abort the migration of shop/vm-1, shop/vm-2, which "
        "takes longer than its completion timeout."
    )


def elsewhere(count: int, phase: str, memory: str = "1Gi") -> Lists:
    """Migrations from other nodes, each with a VM."""
    scene = Scene()
    for number in range(count):
        scene.vm(f"other-{number}", f"n{number}", memory)
    return {**scene.lists, "migrations": [migration(f"other-{number}", phase) for number in range(count)]}


def beside(lists: Lists, more: Lists) -> Lists:
    return {key: [*lists.get(key, ()), *more.get(key, ())] for key in {*lists, *more}}


ONE = cluster("vm-1")
FOUR = cluster("vm-1", "vm-2", "vm-3", "vm-4")


@pytest.mark.parametrize(
    ("lists", "seconds"),
    [
        (cluster(), 0),
        (ONE, SMALL),
        # Two waves, as two may leave a node at a time.
        (FOUR, 2 * SMALL),
        (cluster("vm-1", "vm-2", "vm-3", "vm-4", parallelOutboundMigrationsPerNode=4), 14),
        # Others hold all places for so long; then KubeVirt looks again every 5 s.
        (beside(ONE, elsewhere(5, "Running")), 15 + SMALL),
        (beside(ONE, elsewhere(4, "Running")), SMALL),
        # They come first, and hold all places but one for both waves.
        (beside(ONE, elsewhere(5, "Pending")), 15 + SMALL),
        (beside(FOUR, elsewhere(4, "Pending", "60Gi")), 2 * (15 + SMALL)),
        (cluster("vm-1", parallelOutboundMigrationsPerNode=0), None),
    ],
)
def test_how_long_all_of_them_take(lists: Lists, seconds: int | None) -> None:
    plan = plan_drain(lists, ["a"])
    assert (plan.feasible, plan.seconds) == (True, seconds)


def test_who_holds_a_place_and_who_waits_is_named() -> None:
    lists = beside(ONE, elsewhere(3, "Running"))
    lists["migrations"][1]["status"]["phase"] = "Pending"
    assert plan_drain(lists, ["a"]).queue == {
        "running": ("shop/other-0", "shop/other-2"),
        "waiting": ("shop/other-1",),
    }


def fates(plan: DrainPlan) -> dict[str, tuple[str, str, str]]:
    return {
        vm.name: (vm.drain.outcome.value, vm.eviction.outcome.value, vm.node_failure.outcome.value) for vm in plan.fates
    }


def test_what_becomes_of_each_vm_without_the_plan() -> None:
    scene = Scene(node("a"), node("b"))
    live = {"conditions": [{"type": "LiveMigratable", "status": "True"}]}
    scene.vm("mover", "a", status=live)
    scene.vm("mortal", "a", rules={"evictionStrategy": "None"}, status=live)
    scene.vm("lonely", "a", rules={"evictionStrategy": "None"}, owner="")
    scene.vm("fixed", "a", status={"conditions": [{"type": "LiveMigratable", "status": "False"}]})
    scene.vm("away", "b", status=live)
    plan = plan_drain(scene.lists, ["a"])
    assert fates(plan) == {
        "fixed": ("block", "block", "restart"),
        "lonely": ("stay_down", "stay_down", "stay_down"),
        "mortal": ("restart", "restart", "restart"),
        "mover": ("migrate", "migrate", "restart"),
    }
    mortal = next(vm for vm in plan.fates if vm.name == "mortal")
    assert (mortal.node, mortal.drain.where.value, mortal.eviction.where.value) == ("a", "elsewhere", "anywhere")
    plain = plan.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["fates"][2]["drain"] == mortal.drain.to_json()


def test_of_a_vm_that_is_unknown_or_not_there_yet_nothing_is_told() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("arriving", "a", status={"nodeName": "b"})
    scene.vm("unknown", "a")
    scene.lists["vmis"].pop()
    assert plan_drain(scene.lists, ["a"]).fates == ()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may start together."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain

from unit.plugins.module_utils._planner.scene import (
    HOST,
    ZONE,
    Json,
    Lists,
    Scene,
    apart,
    apart_but_own,
    even,
    near,
    node,
)


def waves(lists: Lists, *nodes: str) -> list[list[str]]:
    """Names of the VMs and pods in each wave."""
    plan = plan_drain(lists, nodes)
    assert plan.feasible, plan.message
    found: dict[int, list[str]] = {}
    for wave, name in [(move.wave, move.name) for move in plan.moves] + [
        (pod.wave or 0, pod.name) for pod in plan.pods
    ]:
        found.setdefault(wave, []).append(name)
    assert sorted(found) == list(range(1, len(found) + 1))
    return [sorted(found[number]) for number in sorted(found)]


def kubevirt(**migrations: int) -> list[Json]:
    spec = {"configuration": {"migrations": migrations}}
    return [{"metadata": {"namespace": "kubevirt", "name": "kubevirt"}, "spec": spec, "status": {"phase": "Deployed"}}]


@pytest.mark.parametrize(
    ("migrations", "sizes"),
    [
        ({}, [4, 2]),
        ({"parallelMigrationsPerCluster": 3}, [3, 3]),
        ({"parallelOutboundMigrationsPerNode": 1}, [2, 2, 2]),
        ({"parallelOutboundMigrationsPerNode": 9, "parallelMigrationsPerCluster": 9}, [6]),
        ({"parallelOutboundMigrationsPerNode": 0}, [1] * 6),
    ],
)
def test_caps(migrations: dict[str, int], sizes: list[int]) -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="32Gi"), kubevirts=kubevirt(**migrations))
    for number in range(6):
        scene.vm(f"vm{number}", "ab"[number % 2])
    assert [len(wave) for wave in waves(scene.lists, "a", "b")] == sizes


def test_pods_are_not_under_the_caps() -> None:
    scene = Scene(node("a"), node("b"), kubevirts=kubevirt(parallelMigrationsPerCluster=1))
    for number in range(3):
        scene.vm(f"vm{number}", "a")
        scene.pod(f"web-{number}", "a")
    assert [len(wave) for wave in waves(scene.lists, "a")] == [4, 1, 1]


def test_one_that_keeps_away_from_another_waits_until_that_has_left() -> None:
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"))
    scene.vm("guard-1", "a")
    scene.vm("thief-1", "a", rules={"affinity": apart(ZONE, "guard"), "nodeSelector": {ZONE: "x"}})
    assert waves(scene.lists, "a") == [["guard-1"], ["thief-1"]]


def test_replicas_in_the_same_zone_do_not_pass_each_other() -> None:
    """Each has a node in its own zone, where the other's pods never are."""
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"), node("d", "y"))
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db")})
    scene.vm("db-2", "c", rules={"affinity": apart_but_own(ZONE, "db")})
    assert waves(scene.lists, "a", "c") == [["db-1", "db-2"]]


def test_both_ends_of_a_migration_count_for_the_others() -> None:
    """Two zones with two replicas each: a third one may be in a zone for a while, but not a fourth one."""
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"))
    rules = {"topologySpreadConstraints": even(ZONE, "db", nodeAffinityPolicy="Ignore")}
    for name in ("db-1", "db-2"):
        scene.vm(name, "a", rules={**rules, "nodeSelector": {ZONE: "x"}})
    for name in ("db-3", "db-4"):
        scene.vm(name, "c", rules=rules)
    assert waves(scene.lists, "a") == [["db-1"], ["db-2"]]


def test_one_that_follows_another_comes_later() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("leader-1", "a")
    scene.vm("follower-1", "a", rules={"affinity": near(HOST, "leader")})
    assert waves(scene.lists, "a") == [["leader-1"], ["follower-1"]]


def test_a_pod_that_follows_a_vm_comes_later() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("leader-1", "a")
    scene.pod("probe-1", "a", affinity=near(HOST, "leader"))
    plan = plan_drain(scene.lists, ["a"])
    (move,), (pod,) = plan.moves, plan.pods
    assert (move.wave, pod.wave, pod.target_node) == (1, 2, move.target_node)

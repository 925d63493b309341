# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of ordinary pods."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import tied
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import PodFate

from unit.plugins.module_utils._planner.scene import HOST, Json, Scene, apart, node
from unit.plugins.support.objects import kubevirt

SCRATCH = [{"name": "scratch", "emptyDir": {}}]


def fate(scene: Scene) -> PodFate:
    plan = plan_drain(scene.lists, ["a"])
    (found,) = plan.pods
    assert plan.feasible is (found.outcome.value not in ("refused", "returns"))
    return found


@pytest.mark.parametrize(
    ("fields", "outcome", "target", "needs"),
    [
        ({}, "moves", "b", ()),
        ({"owner": "StatefulSet"}, "moves", "b", ()),
        ({"owner": "StatefulSet", "affinity": apart(HOST, "web")}, "moves", "b", ()),
        ({"owner": "Job"}, "moves", "b", ()),
        ({"owner": ""}, "ends", None, ("force",)),
        ({"volumes": SCRATCH}, "moves", "b", ("delete_emptydir_data",)),
        ({"owner": "", "volumes": SCRATCH}, "ends", None, ("force", "delete_emptydir_data")),
        ({"owner": "DaemonSet"}, "stays", None, ()),
        ({"owner": "Node", "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "stays", None, ()),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "ends", None, ()),
        ({"memory": "9Gi"}, "waits", None, ()),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {HOST: "a"}}, "returns", "a", ()),
    ],
)
def test_fates(fields: dict[str, Any], outcome: str, target: str | None, needs: tuple[str, ...]) -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("web-1", "a", **fields)
    found = fate(scene)
    assert (found.outcome.value, found.target_node, found.needs) == (outcome, target, needs)
    assert (found.message != "") is (outcome == "waits")
    assert (found.wave is None) is (outcome == "stays" or found.why == "It is being deleted already.")


@pytest.mark.parametrize(
    ("namespace", "label", "kubevirts", "needs"),
    [
        ("kubevirt", "virt-api", [kubevirt()], ()),
        ("kubevirt", "virt-template-apiserver", [kubevirt()], ()),
        ("shop", "virt-api", [kubevirt()], ("delete_emptydir_data",)),
        ("kubevirt", None, [kubevirt()], ("delete_emptydir_data",)),
        ("kubevirt", "virt-api", [], ("delete_emptydir_data",)),
        ("kubevirt", "virt-api", [kubevirt(phase=None)], ("delete_emptydir_data",)),
    ],
)
def test_kubevirts_own_pods_hold_nothing_of_worth(
    namespace: str, label: str | None, kubevirts: list[Json], needs: tuple[str, ...]
) -> None:
    """They have an emptyDir for profiles. A label alone makes no pod one of them."""
    scene = Scene(node("a"), node("b"), kubevirts=kubevirts)
    metadata = {"namespace": namespace, "labels": {"kubevirt.io": label} if label else {}}
    scene.pod("virt-api-1", "a", metadata=metadata, volumes=[{"name": "profile-data", "emptyDir": {}}])
    assert fate(scene).needs == needs


def test_finished_pods_stay() -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("web-1", "a")["status"]["phase"] = "Succeeded"
    assert fate(scene).why == "It has ended."


def test_the_replacement_lands_where_the_scheduler_puts_it() -> None:
    scene = Scene(node("a"), node("b", memory="4Gi"), node("c"), node("d"))
    scene.pod("web-1", "a", memory="2Gi")
    found = fate(scene)
    assert (found.target_node, found.choices) == ("c", ("c", "d"))


def test_of_many_nodes_that_are_equally_good_a_few_are_named() -> None:
    nodes = [f"n{number}" for number in range(12)]
    words = "which are equally good for it, the scheduler takes n0"
    assert tied("n0", nodes) == (f"of {', '.join(nodes[:10])} and 2 more, {words}",)
    assert tied("n0", nodes[:10]) == (f"of {', '.join(nodes[:10])}, {words}",)


def test_the_old_pod_counts_while_it_ends() -> None:
    """Anti-affinity to the old pod leaves no node at first; the replacement waits for its end and then has one."""
    scene = Scene(node("a", rack="r"), node("b", rack="r"))
    scene.pod("web-1", "a", affinity=apart("rack", "web"))
    assert fate(scene).target_node == "b"


def test_labels_that_a_pod_got_with_its_node_do_not_bind_its_replacement() -> None:
    zone = {"topology.kubernetes.io/zone": "x"}
    scene = Scene(node("a", "x"), node("b", "x", memory="10Mi"), node("c", "y"))
    scene.pod("web-1", "a", metadata={"labels": {"app": "web", **zone}})
    scene.pod("shy-1", "c", affinity={"podAntiAffinity": _apart_from(zone)})
    assert fate(scene).target_node == "c"


def _apart_from(labels: Json) -> Json:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def budget(name: str, allowed: int, expected: int, desired: int) -> Json:
    status = {
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "currentHealthy": desired,
        "desiredHealthy": desired,
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": {"namespace": "shop", "name": name}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("budgets", "outcome", "names"),
    [
        ([budget("b", 1, 3, 2)], "moves", ()),
        ([budget("b", 0, 3, 2)], "moves", ("b",)),
        ([budget("b", 0, 2, 2)], "refused", ("b",)),
        ([budget("b", 1, 3, 2), budget("c", 1, 3, 2)], "refused", ("b", "c")),
    ],
)
def test_disruption_budgets(budgets: list[Json], outcome: str, names: tuple[str, ...]) -> None:
    scene = Scene(node("a"), node("b"), pdbs=budgets)
    scene.pod("web-1", "a")
    found = fate(scene)
    assert (found.outcome.value, found.budgets) == (outcome, names)
    assert ("PodDisruptionBudget" in found.why) is bool(names)


def spread_out(budgets: list[Json]) -> Scene:
    """A pod on each of three nodes, of which no two may share one."""
    scene = Scene(node("a"), node("b"), node("c"), pdbs=budgets)
    for number, name in enumerate("abc"):
        scene.pod(f"web-{number}", name, affinity={"podAntiAffinity": _apart_from({"app": "web"})})
    return scene


@pytest.mark.parametrize(("allowed", "expected"), [(1, 3), (0, 3)])
def test_a_budget_does_not_let_go_what_waits_for_the_same_nodes(allowed: int, expected: int) -> None:
    """The replacement of the first waits until its node is back, and with it the eviction of the second."""
    scene = spread_out([budget("b", allowed, expected, 2)])
    assert plan_drain(scene.lists, ["a"]).feasible
    found = plan_drain(scene.lists, ["a", "b"])
    assert sorted(pod.outcome.value for pod in found.pods) == ["refused", "waits"]
    (refused,) = (pod for pod in found.pods if pod.outcome.value == "refused")
    assert (refused.wave, refused.budgets) == (None, ("b",))
    assert "PodDisruptionBudget b lets only 1 of its pods be away, and that of others that leave" in refused.why
    assert (found.feasible, found.passing) == (False, False)
    assert f"pod {refused.namespace}/{refused.name}" in found.message


@pytest.mark.parametrize("budgets", [[], [budget("b", 2, 4, 2)], [budget("b", 1, 0, 0)]])
def test_a_budget_that_is_wide_enough_or_not_counted_yet_lets_all_go(budgets: list[Json]) -> None:
    found = plan_drain(spread_out(budgets).lists, ["a", "b"])
    assert [pod.outcome.value for pod in found.pods] == ["waits", "waits"]
    assert found.feasible


def test_a_hotplug_pod_goes_with_its_vm() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    attachment = scene.pod("hp-1", "a", metadata={"labels": {"kubevirt.io": "hotplug-disk"}})
    attachment["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "pod-vm", "controller": True}
    ]
    plan = plan_drain(scene.lists, ["a"])
    assert [pod.why for pod in plan.pods] == ["It holds a hotplugged volume of a VM and goes with it."]
    assert [move.target_node for move in plan.moves] == ["b"]

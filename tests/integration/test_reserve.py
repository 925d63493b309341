# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While nodes are away there is memory for the VMs of any one more node, at each moment; else nothing is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration.clusters import KUBEVIRT, MIGRATIONS, TIMEOUT, VMIS, loaded, remove
from integration.simulator.lab import new_vmi
from integration.test_planned_runs import attempt, is_fit, maintain, maintained
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled
from testbed.simulator.quantity import number
from testbed.waiting import wait_for
from testbed.watches import Watches

NODE, POD = "Node", "Pod"
LAUNCHER = "virt-launcher"
NAMESPACE, NODES = "reserve", ("spare-a", "spare-b", "spare-c", "spare-d")
GIB = 2.0**30
# Pods that are evicted come up by the scheduler's lot, which moves so much memory from one node to another.
BY_LOT = 2 * GIB


class Placements(Watches):
    """Watches nodes, and where pods are."""

    def __init__(self, kubeconfig: Path) -> None:
        self._seen: list[tuple[int, str, Object]] = []
        super().__init__(kubeconfig, {NODE: resource_path("v1", "nodes"), POD: resource_path("v1", "pods")})

    def see(self, name: str, event: Object) -> None:
        self._seen.append((int(event["object"]["metadata"]["resourceVersion"]), name, event))

    @property
    def moments(self) -> Iterator[tuple[frozenset[str], float]]:
        """After each change, in the order in which the server made them: who was cordoned, and bytes in reserve.

        Of two watches either may be ahead of the other, but the versions of all objects are of one count.
        """
        began = max(int(listed["metadata"]["resourceVersion"]) for listed in self.first.values())
        there: dict[str, dict[str, Object]] = {NODE: {}, POD: {}}
        for version, name, event in sorted(self._seen, key=lambda entry: entry[0]):
            item = event["object"]
            there[name][item["metadata"]["uid"]] = item
            if event["type"] == "DELETED":
                del there[name][item["metadata"]["uid"]]
            if version > began:
                nodes = {node["metadata"]["name"]: node for node in there[NODE].values()}
                away = frozenset(name for name, node in nodes.items() if node["spec"].get("unschedulable"))
                yield away, reserve({name: nodes[name] for name in nodes.keys() - away}, there[POD])


def reserve(serving: Mapping[str, Object], pods: Mapping[str, Object]) -> float:
    """Bytes that are free on the nodes if the worst one of them fails, less what its VMs need."""
    free = {name: number(node["status"]["allocatable"]["memory"]) for name, node in serving.items()}
    needed = dict.fromkeys(serving, 0.0)
    for pod in pods.values():
        node = pod["spec"].get("nodeName")
        if node not in serving or pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        free[node] -= requested(pod)
        if pod["metadata"].get("labels", {}).get("kubevirt.io") == LAUNCHER:
            needed[node] += requested(pod)
    return min(sum(free.values()) - free[name] - needed[name] for name in serving)


def requested(pod: Object) -> float:
    """Bytes of memory."""
    wanted = [container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"]]
    return sum(number(requests.get("memory", 0)) for requests in wanted)


@pytest.fixture
def spare(testbed: RunningTestbed) -> Iterator[Scenario]:
    """Four nodes with five VMs, which three nodes could have if one of them failed, and two could not."""
    nodes = [fake_node(name, memory="16Gi") for name in NODES]
    vmis = [new_vmi(NAMESPACE, f"vm-{count}", "4Gi") for count in range(5)]
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    empty = Scenario("spare", (own, *nodes), Settled(pods=0, vmis=0))
    scenario = replace(empty, objects=(*empty.objects, *vmis), settled=Settled(pods=0, vmis=len(vmis)))
    with loaded(testbed.api, empty):
        wait_for("fit nodes", lambda: all(is_fit(node) for node in testbed.api.items("/api/v1/nodes")))
        try:
            load(testbed.api, scenario, TIMEOUT)
            yield scenario
        finally:
            remove(testbed.api, scenario)


def where(api: Api) -> dict[str, str]:
    """The node of each VM, by uid."""
    vmis = api.items(resource_path(KUBEVIRT, VMIS, NAMESPACE))
    return {vmi["metadata"]["uid"]: vmi["status"]["nodeName"] for vmi in vmis}


def touched(api: Api) -> list[str]:
    """Nodes that somebody has cordoned or marked."""
    nodes = api.items(resource_path("v1", "nodes"))
    return [
        node["metadata"]["name"]
        for node in nodes
        if node["spec"].get("unschedulable")
        or any(key.startswith("virtops.kubevirt/") for key in node["metadata"].get("annotations", {}))
    ]


def test_a_plan_that_cannot_keep_the_reserve_touches_nothing(
    testbed: RunningTestbed, spare: Scenario, tmp_path: Path
) -> None:
    before = where(testbed.api)
    given: dict[str, Any] = {"plan_maintenance_nodes": spare.nodes, "plan_maintenance_batch": 2}
    refused = attempt(testbed, tmp_path, **given, plan_maintenance_reserve="largest_node")
    output = " ".join((refused.stdout + refused.stderr).split())
    assert refused.returncode != 0, output[-6000:]
    for words in (
        f"Run {tmp_path.name} cannot be carried out as things are now; nothing was touched.",
        "there is no memory in reserve for the VMs of any one more node",
        "plan_maintenance_order: free looks for an order in which they can",
    ):
        assert words in output, (words, output[-6000:])
    assert "maintained spare" not in output
    document = json.loads((tmp_path / "plan.json").read_text())
    # Two nodes that have all that is left of a component of KubeVirt do not go together, and then there is enough.
    pairs = [nodes for nodes in document["batches"] if len(nodes) == 2]
    held = {entry["object"]["name"] for entry in document["blocked"] if entry["object"]["kind"] == NODE}
    assert pairs, document["batches"]
    assert held == {name for nodes in pairs for name in nodes}
    reserves = zip(document["batches"], document["totals"]["batch_reserves"], strict=True)
    assert [nodes for nodes, left in reserves if left < 0] == pairs
    assert (touched(testbed.api), where(testbed.api)) == ([], before)
    assert testbed.api.items(resource_path(KUBEVIRT, MIGRATIONS, NAMESPACE)) == []
    remembered = resource_path("v1", "configmaps", "medik8s-leases")
    maps = testbed.api.items(remembered, labelSelector=f"virtops.kubevirt/run={tmp_path.name}")
    assert maps == [], "there is nothing to go on with"


def test_the_reserve_is_kept_at_each_moment_of_a_run(testbed: RunningTestbed, spare: Scenario, tmp_path: Path) -> None:
    uids = set(where(testbed.api))
    given: dict[str, Any] = {"plan_maintenance_nodes": spare.nodes, "plan_maintenance_batch": 2}
    with Placements(testbed.kubeconfig) as seen:
        maintain(testbed, tmp_path, **given, plan_maintenance_order="free", plan_maintenance_reserve="largest_node")
    assert maintained(testbed.api, tmp_path.name) == sorted(NODES)
    assert set(where(testbed.api)) == uids
    lowest: dict[frozenset[str], float] = {}
    for away, left in seen.moments:
        lowest[away] = min(left, lowest.get(away, left))
    assert lowest.keys() - {frozenset()} == {frozenset([name]) for name in NODES}, "the batches were to be smaller"
    assert min(lowest.values()) >= 0, lowest
    document = json.loads((tmp_path / "plan.json").read_text())
    for nodes, planned in zip(document["batches"], document["totals"]["batch_reserves"], strict=True):
        assert lowest[frozenset(nodes)] >= planned - BY_LOT, (nodes, planned / GIB, lowest)

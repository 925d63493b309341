# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that were stopped for a node start in the plan's order, by the API server's own count of its writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from integration.chronicle import VM, VMI, Chronicle, Event
from integration.clusters import HOST, KUBEVIRT, TIMEOUT, loaded, remove
from integration.simulator.lab import new_vmi
from integration.test_planned_runs import is_fit, maintain, maintained, planned
from testbed.api import Object
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

NAMESPACE = "order"
# Each of which needs the one before it on its node; of their names none says so.
ORDER = ("m", "a", "z")


def vm(name: str, needs: str | None) -> Object:
    """On node order-c or nowhere, beside another one if it needs that."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": needs}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] if needs else []}}
    made = new_vmi(NAMESPACE, name, "128Mi", nodeSelector={HOST: "order-c"}, affinity=affinity)
    return {
        "apiVersion": KUBEVIRT,
        "kind": VM,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "runStrategy": "Always",
            "template": {"metadata": {"labels": {"app": name}}, "spec": made["spec"]},
        },
    }


@pytest.fixture
def order(testbed: RunningTestbed) -> Iterator[Scenario]:
    """KubeVirt's own pods are on the first two nodes."""
    nodes = [fake_node(f"order-{letter}") for letter in "abc"]
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    empty = Scenario("order", (own, *nodes), Settled(pods=0, vmis=0))
    vms = tuple(vm(name, needs) for name, needs in zip(ORDER, (None, *ORDER), strict=False))
    with loaded(testbed.api, empty):
        wait_for("fit nodes", lambda: all(is_fit(node) for node in testbed.api.items("/api/v1/nodes")))
        scenario = replace(empty, objects=(*empty.objects, *vms), settled=Settled(pods=0, vmis=len(vms)))
        try:
            load(testbed.api, scenario, TIMEOUT)
            yield scenario
        finally:
            remove(testbed.api, scenario)


def test_who_needs_another_one_starts_when_that_has_its_node(
    testbed: RunningTestbed, order: Scenario, tmp_path: Path
) -> None:
    policies = [{"expression": "`true`", "policy": "stop"}]
    with Chronicle(testbed.kubeconfig, {VMI}) as chronicle:
        maintain(testbed, tmp_path, plan_maintenance_nodes=["order-c"], plan_maintenance_policies=policies)
    assert maintained(testbed.api, tmp_path.name) == ["order-c"]
    starts = {entry["object"]["name"]: entry for entry in planned(tmp_path, "start")}
    assert sorted(starts) == sorted(ORDER)
    lives = {name: again(chronicle.events, f"{NAMESPACE}/{name}") for name in ORDER}
    for first, then in pairwise(ORDER):
        assert starts[first]["id"] in starts[then]["after"]
        placed = next(event.version for event in lives[first] if event.node)
        assert placed < lives[then][0].version, f"{then} was started before {first} had its node"
    assert {life[-1].node for life in lives.values()} == {"order-c"}


def again(events: list[Event], title: str) -> list[Event]:
    """All that was written of the second VMI of a VM, in its order."""
    own = sorted(
        (event for event in events if (event.kind, event.title) == (VMI, title)), key=lambda each: each.version
    )
    lives = list(dict.fromkeys(event.uid for event in own))
    assert len(lives) == 2, f"{title} has been {len(lives)} VMIs"
    return [event for event in own if event.uid == lives[-1]]

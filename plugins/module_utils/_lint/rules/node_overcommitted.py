# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose VMs have no room on the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY, SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Problem, Rule, Severity, Subject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

_UNITS = {CPU: (1000, "cores"), MEMORY: (2**30, "GiB")}


def _check(cluster: Cluster) -> Iterator[Problem]:
    state = cluster.state
    machines: defaultdict[str, list[Occupant]] = defaultdict(list)
    for placement in state.placements():
        if CREATED_BY in placement.occupant.labels:
            machines[placement.node].append(placement.occupant)
    hosts = [name for name, labels in cluster.node_labels.items() if labels.get(SCHEDULABLE) == "true"]
    for resource in (MEMORY, CPU):
        allocatable, requested = state.nodes.allocatable(resource), state.resources.requested(resource)
        free = {name: max(0, int((allocatable - requested)[state.nodes.index[name]])) for name in hosts}
        for name in sorted(machines):
            needed = sum(occupant.requests.get(resource, 0) for occupant in machines[name])
            left = sum(free.values()) - free.get(name, 0)
            if needed > left:
                yield _problem(name, resource, needed, left)


def _problem(name: str, resource: str, needed: int, left: int) -> Problem:
    size, unit = _UNITS[resource]
    figures = f"request {needed / size:.1f} {unit}, and all other nodes together have {left / size:.1f} free"
    return Problem(
        Subject("v1", "Node", "", name),
        f"Its VMs {figures}: the node cannot be emptied without stopping some.",
        f"Add {(needed - left) / size:.1f} {unit} elsewhere, or plan which VMs to stop.",
        field=f"/status/allocatable/{resource}",
    )


RULE = Rule(
    id="node-overcommitted",
    severity=Severity.ERROR,
    title="The other nodes cannot take a node's VMs",
    explanation="What the VMs of the node request of memory or CPU is more than all other nodes that KubeVirt uses "
    "have left. A cluster that is to be maintained without stopping VMs needs room for one node more than is full. "
    "Nodes with less than that are not certain to be emptied, as rooms may be too small or not admitted: that is for "
    "a plan to tell.",
    check=_check,
)

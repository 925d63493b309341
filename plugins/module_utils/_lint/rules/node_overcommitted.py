# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose VMs have no room on the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

_UNITS = {CPU: (1000, "cores"), MEMORY: (2**30, "GiB")}


@dataclass
class _Load:
    """What the VMs of a node request, in milliCPU and bytes, and the nodes that at least one of them could go to."""

    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_UNITS, 0))
    eligible: set[str] = field(default_factory=set)
    vmis: list[str] = field(default_factory=list)


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    state = cluster.state
    for name, load in sorted(_loads(cluster).items()):
        others = state.nodes.named(load.eligible - {name})
        for resource in (MEMORY, CPU):
            free = (state.nodes.allocatable(resource) - state.resources.requested(resource))[others]
            left = int(free[free > 0].sum())
            if load.requests[resource] > left:
                yield _problem(name, resource, load, left)


def _loads(cluster: LintedCluster) -> dict[str, _Load]:
    """By node. VMs that could not leave it in any case have findings of their own."""
    stuck = {trial.attempt.title for trial in cluster.stuck}
    loads: defaultdict[str, _Load] = defaultdict(_Load)
    for workload in cluster.vms:
        for attempt in cluster.attempts(workload):
            if attempt.title in stuck:
                continue
            load = loads[attempt.node]
            load.eligible |= cluster.eligible(workload)
            load.vmis.append(attempt.title)
            for resource in _UNITS:
                load.requests[resource] += attempt.target.requests.get(resource, 0)
    return loads


def _problem(name: str, resource: str, load: _Load, left: int) -> Problem:
    size, unit = _UNITS[resource]
    needed = load.requests[resource]
    return Problem(
        LintedObject("v1", "Node", "", name),
        f"Its VMs request {needed / size:.1f} {unit} and the other nodes that they may run on have {left / size:.1f} "
        "free, so it cannot be emptied without stopping some.",
        f"Add {(needed - left) / size:.1f} {unit} elsewhere, or plan which VMs to stop.",
        field=f"/status/allocatable/{resource}",
        vmis=tuple(sorted(load.vmis)),
    )


RULE = LintRule(
    id="node-overcommitted",
    severity=Severity.ERROR,
    title="The other nodes cannot take a node's VMs",
    explanation="What the VMs of a node request of memory or CPU is more than all other nodes that any of them may "
    "run on have left. A cluster that is to be maintained without stopping VMs needs the room of one node. Without "
    "such a finding a node is not certain to be emptied, as room may be in too small pieces: that is for a plan to "
    "tell.",
    check=_check,
)

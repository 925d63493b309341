# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's VMs leave it one by one under their topology spread constraints alone.

The drained node is cordoned, but unless a constraint says `nodeTaintsPolicy: Honor` it keeps counting as a place with
fewer and fewer VMs, so that the others soon have too many. All else that could stand in the way is left out, and each
VM takes the emptiest place, so a drain that stops here stops in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import MigrationAttempt, targeted
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_affinity import NodeAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_unschedulable import (
    NodeUnschedulable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.pod_topology_spread import (
    PodTopologySpread,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.taint_toleration import (
    TaintToleration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_ELSE = (NodeUnschedulable(), TaintToleration(), NodeAffinity())
_ALL = (*_ELSE, PodTopologySpread())

Constraints = Sequence[Mapping[str, Any]]


def first_stuck(
    attempts: Sequence[MigrationAttempt], constraints: Constraints, state: ClusterState
) -> tuple[MigrationAttempt, str] | None:
    """Of the VMs of one workload on one node the first that cannot leave it, and kube-scheduler's words.

    `constraints`: topology spread constraints that count instead of theirs.
    """
    around = _cordoned(state, attempts[0])
    for attempt in attempts:
        target = _target(attempt, constraints)
        if target is None:
            continue
        verdict = evaluate(target, around, _ALL)
        if not verdict.fits.any():
            return (attempt, verdict.message) if evaluate(target, around, _ELSE).fits.any() else None
        around.remove(attempt.source_key)
        around.add(target.occupant, _emptiest([around.nodes.names[node] for node in verdict.feasible], target, around))
    return None


def _target(attempt: MigrationAttempt, constraints: Constraints) -> Pod | None:
    vmi = {**attempt.vmi, "spec": {**attempt.vmi["spec"], "topologySpreadConstraints": list(constraints)}}
    target = targeted(attempt, vmi)
    return None if target is None else pod(target)


def _cordoned(state: ClusterState, attempt: MigrationAttempt) -> ClusterState:
    """The same cluster with the VM's node cordoned, and with the pods of its namespace only: no others are counted."""
    nodes = [node.cordoned() if node.name == attempt.node else node for node in state.nodes.nodes]
    namespace = attempt.target.occupant.namespace
    placements = (placement for placement in state.placements() if placement.occupant.namespace == namespace)
    return ClusterState(
        nodes, placements, namespaces=state.namespaces, storage=state.storage, owner_selectors=state.owner_selectors
    )


def _emptiest(names: Sequence[str], target: Pod, state: ClusterState) -> str:
    """Of these nodes the one whose domains have the fewest of the pods that the target is to be spread from."""
    labels = {node.name: node.labels for node in state.nodes.nodes}
    population: Counter[tuple[str, str | None]] = Counter()
    for placement in state.placements():
        for constraint in target.spread:
            if constraint.selector.matches(placement.occupant.labels):
                key = constraint.topology_key
                population[key, labels[placement.node].get(key)] += 1
    keys = [constraint.topology_key for constraint in target.spread]
    return min(names, key=lambda name: (sum(population[key, labels[name].get(key)] for key in keys), name))

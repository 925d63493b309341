# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology spread constraints that keep a node from being emptied: its VMs leave it one by one, under these alone.

The drained node is cordoned, but unless a constraint says `nodeTaintsPolicy: Honor` it keeps counting as a place with
fewer and fewer VMs, so that the others soon have too many. All else that could stand in the way is left out, and each
VM takes the emptiest place, so a drain that stops here stops in any order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import Spread, spread_constraints
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import MigrationAttempt, targeted
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
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

_HONOR = {"nodeTaintsPolicy": "Honor"}
_ELSE = (NodeUnschedulable(), TaintToleration(), NodeAffinity())
_ALL = (*_ELSE, PodTopologySpread())


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.vms:
        hard = [entry for entry in spread_constraints(workload.spec, workload.prefix) if entry.required]
        if not hard:
            continue
        for attempts in _by_node(cluster.attempts(workload), hard, cluster):
            given: Sequence[Object] = workload.spec["topologySpreadConstraints"]
            stuck = _first_stuck(attempts, given, cluster.state)
            if stuck is None:
                continue
            honoring = [{**raw, **_HONOR} if raw["whenUnsatisfiable"] == "DoNotSchedule" else raw for raw in given]
            mends = _first_stuck(attempts, honoring, cluster.state) is None
            attempt, message = stuck
            yield Problem(
                workload.subject,
                f"A drain of {attempt.node} stops at its VM {attempt.vmi['metadata']['name']}: the cordoned node "
                f"counts as a place with too few of them, and a migration stays Pending ({message.rstrip('.')}).",
                "Set nodeTaintsPolicy to Honor, so that cordoned nodes do not count."
                if mends
                else "Allow a larger maxSkew, or prefer the spreading instead of requiring it.",
                field=hard[0].pointer if len(hard) == 1 else f"{workload.prefix}/topologySpreadConstraints",
                patch=_fix(hard) if mends and workload.editable else (),
                vmis=tuple(sorted(entry.title for entry in attempts)),
            )
            break


def _by_node(
    attempts: Sequence[MigrationAttempt], constraints: Sequence[Spread], cluster: LintedCluster
) -> Iterator[list[MigrationAttempt]]:
    """VMs that share a node; of nodes on which it will go alike only the first."""
    nodes: defaultdict[str, list[MigrationAttempt]] = defaultdict(list)
    for attempt in attempts:
        nodes[attempt.node].append(attempt)
    seen = set()
    for node, group in sorted(nodes.items()):
        populations = tuple(
            sum(_domain(other.node, entry, cluster) == _domain(node, entry, cluster) for other in attempts)
            for entry in constraints
        )
        if (len(group), populations) not in seen:
            seen.add((len(group), populations))
            yield group


def _domain(node: str, constraint: Spread, cluster: LintedCluster) -> str | None:
    return cluster.node_labels[node].get(constraint.topology_key)


def _fix(hard: Sequence[Spread]) -> tuple[Operation, ...]:
    return tuple(
        {"op": "add", "path": f"{entry.pointer}/nodeTaintsPolicy", "value": _HONOR["nodeTaintsPolicy"]}
        for entry in hard
    )


def _first_stuck(
    attempts: Sequence[MigrationAttempt], constraints: Sequence[Object], state: ClusterState
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


def _target(attempt: MigrationAttempt, constraints: Sequence[Object]) -> Pod | None:
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


RULE = LintRule(
    id="spread-stops-drain",
    severity=Severity.WARNING,
    title="A spread constraint stops the drain of a node",
    explanation="A node that is being drained counts as a place that gets emptier with each VM that leaves, so the "
    "others soon have more than ``maxSkew`` above it, and the last VMs stay. With ``nodeTaintsPolicy: Honor`` a "
    "cordoned node does not count; the patch sets it where that is enough.",
    check=_check,
    mends=True,
)

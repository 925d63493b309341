# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology spread constraints that keep a node from being emptied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.emptying import first_stuck
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import Spread, spread_constraints
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import MigrationAttempt

_HONOR = {"nodeTaintsPolicy": "Honor"}


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.vms:
        hard = [entry for entry in spread_constraints(workload.spec, workload.prefix) if entry.required]
        if not hard:
            continue
        for attempts in _by_node(cluster.attempts(workload), hard, cluster):
            given: Sequence[Mapping[str, Any]] = workload.spec["topologySpreadConstraints"]
            stuck = first_stuck(attempts, given, cluster.state)
            if stuck is None:
                continue
            honoring = [{**raw, **_HONOR} if raw["whenUnsatisfiable"] == "DoNotSchedule" else raw for raw in given]
            mends = first_stuck(attempts, honoring, cluster.state) is None
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

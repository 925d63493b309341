# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology keys that no node has."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.domains import (
    DEPRECATED_LABELS,
    has_no_domain,
    holders,
    meant,
    nobody,
    without_domain,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import domain_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    nodes = cluster.node_labels
    for workload in cluster.workloads:
        for term in domain_rules(workload.spec, workload.prefix):
            key = term.topology_key
            if key in DEPRECATED_LABELS or not has_no_domain(key, workload, cluster):
                continue
            elsewhere, field = bool(holders(key, nodes)), f"{term.pointer}/topologyKey"
            # A label that some node has may be meant as it is.
            right = None if elsewhere else meant(key, nodes)
            fixes = right and workload.editable
            yield Problem(
                workload.subject,
                f"{nobody(key, cluster).capitalize()} has the label {key}, so {without_domain(term)}.",
                f"Use {right} instead." if right else _remedy(key, elsewhere),
                field=field,
                patch=({"op": "replace", "path": field, "value": right},) if fixes else (),
                vmis=workload.running,
                severity=Severity.ERROR if term.required else Severity.WARNING,
            )


def _remedy(key: str, elsewhere: bool) -> str:
    if elsewhere:
        return f"Use a label that these nodes have, or label them with {key}."
    return f"Use a label that the nodes have, or label the nodes with {key}."


RULE = LintRule(
    id="topology-key-unknown",
    severity=Severity.ERROR,
    title="A topology key is the label of no node",
    explanation="Required anti-affinity over such a key separates nothing, and required affinity or a spread "
    "constraint can be met by no node at all. Only nodes count that the pods may run on by node selector, node "
    "affinity and taints. ``topology.kubernetes.io/hostname`` is often seen and exists nowhere, the label of hosts is "
    "``kubernetes.io/hostname``. Preferences over such a key are warnings.",
    check=_check,
    mends=True,
)

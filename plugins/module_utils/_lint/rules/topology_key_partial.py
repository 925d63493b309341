# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology keys that only some of the nodes have."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.domains import holders
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import PodTerm, domain_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.workloads:
        required = (term for term in domain_rules(workload.spec, workload.prefix) if term.required)
        for term in required:
            having = holders(term.topology_key, cluster.node_labels)
            eligible = cluster.eligible(workload)
            lacking = eligible - having
            if not lacking or not eligible & having:
                continue
            place = f"{len(lacking)} of the {len(eligible)} nodes that its pods may run on ({names(lacking)})"
            effect = (
                "there the required anti-affinity keeps nothing apart"
                if isinstance(term, PodTerm) and term.apart
                else "its pods can never come there"
            )
            yield Problem(
                workload.subject,
                f"The label {term.topology_key} is missing on {place}, so {effect}.",
                f"Label these nodes with {term.topology_key}, or exclude them by node affinity.",
                field=f"{term.pointer}/topologyKey",
                vmis=workload.running,
            )


RULE = LintRule(
    id="topology-key-partial",
    severity=Severity.WARNING,
    title="A topology key is missing on some of the nodes",
    explanation="Nodes without the label take any number of pods that required anti-affinity is to keep apart, and "
    "none that ask for required affinity or spreading over it. Only nodes count that the pods may run on by node "
    "selector, node affinity and taints. The module :ansplugin:`virtops.kubevirt.node_topology#module` sets such "
    "labels.",
    check=_check,
)

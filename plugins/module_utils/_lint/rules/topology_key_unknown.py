# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology keys that no node has."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Problem, Rule, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.node_keys import DEPRECATED, holders, meant
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import DomainRule, PodTerm, domain_rules


def _check(cluster: Cluster) -> Iterator[Problem]:
    nodes = cluster.node_labels
    for workload in cluster.workloads:
        for term in domain_rules(workload.spec, workload.prefix):
            key = term.topology_key
            if not nodes or key in DEPRECATED or holders(key, nodes):
                continue
            right, field = meant(key, nodes), f"{term.pointer}/topologyKey"
            fixes = right and workload.editable
            yield Problem(
                workload.subject,
                f"No node has the label {key}, so {_effect(term)}.",
                f"Use {right} instead."
                if right
                else f"Use a label that the nodes have, or label the nodes with {key}.",
                field=field,
                patch=({"op": "replace", "path": field, "value": right},) if fixes else (),
                vmis=workload.running,
                severity=Severity.ERROR if term.required else Severity.WARNING,
            )


def _effect(term: DomainRule) -> str:
    if not term.required:
        return "the preference has no effect"
    if isinstance(term, PodTerm) and term.apart:
        return "the required anti-affinity keeps nothing apart: all of its pods may come to one node"
    if isinstance(term, PodTerm):
        return "the required affinity can be met nowhere: a pod that starts or migrates stays Pending"
    return "the spread constraint can be met nowhere: a pod that starts or migrates stays Pending"


RULE = Rule(
    id="topology-key-unknown",
    severity=Severity.ERROR,
    title="A topology key is the label of no node",
    explanation="Required anti-affinity over such a key separates nothing, and required affinity or a spread "
    "constraint can be met by no node at all. ``topology.kubernetes.io/hostname`` is often seen and exists nowhere, "
    "the label of hosts is ``kubernetes.io/hostname``. Preferences over such a key are warnings.",
    check=_check,
    mends=True,
)

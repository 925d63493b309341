# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Domains of nodes: the labels that make them, and rules for which there is no domain, or only one.

Of the keys of labels some are outdated and some often mistaken; what stands in their place is told, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import counts_own_kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import DomainRule, PodTerm, pod_terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import Trial
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, MISTAKEN_HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

# Kubernetes' labels of the time before their names were settled, with today's.
DEPRECATED_LABELS: Mapping[str, str] = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
# Keys that never existed, with what was meant.
MISTAKEN: Mapping[str, str] = {
    MISTAKEN_HOSTNAME: HOSTNAME,
    "topology.kubernetes.io/host": HOSTNAME,
    "kubernetes.io/host": HOSTNAME,
    "hostname": HOSTNAME,
    "kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "zone": "topology.kubernetes.io/zone",
    "kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.kubernetes.io/region": "topology.kubernetes.io/region",
    "region": "topology.kubernetes.io/region",
}


def holders(key: str, nodes: Mapping[str, Labels]) -> frozenset[str]:
    """Names of the nodes that have a label."""
    return frozenset(name for name, labels in nodes.items() if key in labels)


def meant(key: str, nodes: Mapping[str, Labels]) -> str | None:
    """The key that was meant by one that no node has, if all nodes have that one."""
    right = MISTAKEN.get(key) or DEPRECATED_LABELS.get(key)
    return right if right and nodes and len(holders(right, nodes)) == len(nodes) else None


def says_the_same(old: str, new: str, nodes: Iterable[Labels]) -> bool:
    """Whether the new key has the old one's value on each node that has the old one."""
    return all(labels.get(new) == labels[old] for labels in nodes if old in labels)


def has_no_domain(key: str, workload: Workload, cluster: LintedCluster) -> bool:
    """Whether a topology key is the label of no node that the workload's pods may run on.

    Where they may run on none, which has rules of its own, all nodes matter.
    """
    nodes = cluster.node_labels
    having = holders(key, nodes)
    if not having:
        return bool(nodes)
    eligible = cluster.eligible(workload)
    return bool(eligible) and not eligible & having


def nobody(key: str, cluster: LintedCluster) -> str:
    """Which nodes lack the label, of a key for which `has_no_domain` holds, as the beginning of a clause."""
    return "none of the nodes that its pods may run on" if holders(key, cluster.node_labels) else "no node"


def without_domain(rule: DomainRule) -> str:
    """What follows, as the end of a sentence."""
    if not rule.required:
        return "the preference has no effect"
    if isinstance(rule, PodTerm) and rule.apart:
        return "the required anti-affinity keeps nothing apart: all of its pods may come to one node"
    if isinstance(rule, PodTerm):
        return "the required affinity can be met nowhere: a pod that starts or migrates stays Pending"
    return "the spread constraint can be met nowhere: a pod that starts or migrates stays Pending"


def lone_domain(trial: Trial, cluster: LintedCluster) -> tuple[str, str] | None:
    """The topology key and the domain that a VM has to stay in though no other node of it takes the VM.

    None unless the other domains are taken by VMs that it has to keep apart from.
    """
    attempt, workload, pod = trial.attempt, trial.attempt.workload, trial.attempt.target.occupant
    eligible = cluster.eligible(workload)
    for term in pod_terms(workload.spec, workload.prefix):
        key = term.topology_key
        if not term.apart or not term.required or key == HOSTNAME:
            continue
        if not counts_own_kind(term.raw, pod.labels, pod.namespace):
            continue
        domain = cluster.node_labels.get(attempt.node, {}).get(key)
        here = {name for name in eligible if cluster.node_labels[name].get(key) == domain}
        if domain is not None and here == {attempt.node}:
            return key, domain
    return None

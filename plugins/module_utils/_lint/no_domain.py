# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about domains of nodes where none of the nodes that matter is in any domain."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.node_keys import holders
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import DomainRule, PodTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload


def has_no_domain(key: str, workload: Workload, cluster: Cluster) -> bool:
    """Whether a topology key is the label of no node that the workload's pods may run on.

    Where they may run on none, which has rules of its own, all nodes matter.
    """
    nodes = cluster.node_labels
    having = holders(key, nodes)
    if not having:
        return bool(nodes)
    eligible = cluster.eligible(workload)
    return bool(eligible) and not eligible & having


def nobody(key: str, cluster: Cluster) -> str:
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

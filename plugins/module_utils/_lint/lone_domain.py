# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A zone, or another domain, that a VM has to stay in and that has no other node for it."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.own_pod import counts_own_kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import pod_terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import Trial


def lone_domain(trial: Trial, cluster: Cluster) -> tuple[str, str] | None:
    """The topology key and the domain, if the other domains are taken by VMs that the VM has to keep apart from."""
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

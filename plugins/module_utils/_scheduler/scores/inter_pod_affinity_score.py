# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferred company. Follows pkg/scheduler/framework/plugins/interpodaffinity/scoring.go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import FloatArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import domains_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import PodQuery, match_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.term_owners import Owners, TermKind


class InterPodAffinityScore:
    name = "InterPodAffinity"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        """The wishes of the pod, and those of others about it; a required affinity of another counts 1."""
        total = own_wishes(pod, state) + _wishes_of_others(pod, state)
        scores = total[nodes]
        least, most = int(scores.min()), int(scores.max())
        if least == most:
            return None
        scaled: FloatArray = MAX_SCORE * ((scores - least).astype(np.float64) / float(most - least))
        result: IntArray = scaled.astype(np.int64)
        return result


def own_wishes(pod: Pod, state: ClusterState) -> IntArray:
    total = np.zeros(len(state.nodes), dtype=np.int64)
    for sign, wishes in ((1, pod.occupant.affinity), (-1, pod.occupant.anti_affinity)):
        for wish in wishes.preferred:
            counts = state.counts.of(PodQuery((match_of(wish.term, state.namespaces),)))
            domains = domains_of(state.nodes, wish.term.topology_key)
            total += sign * wish.weight * domains.add_up(counts)[domains.ids]
    return total


def _wishes_of_others(pod: Pod, state: ClusterState) -> IntArray:
    total = np.zeros(len(state.nodes), dtype=np.int64)
    namespace_labels = state.namespaces.get(pod.occupant.namespace, {})
    for owners in state.terms.concerning(pod.occupant, namespace_labels):
        if owners.owned.kind is not TermKind.REQUIRED_ANTI_AFFINITY:
            total += owners.owned.weight * _owners_by_domain(owners, state)
    return total


def _owners_by_domain(owners: Owners, state: ClusterState) -> IntArray:
    """For each node, the pods in its domain that have the term."""
    counts = np.zeros(len(state.nodes), dtype=np.int64)
    counts[list(owners.nodes)] = list(owners.nodes.values())
    domains = domains_of(state.nodes, owners.owned.term.topology_key)
    result: IntArray = domains.add_up(counts)[domains.ids]
    return result

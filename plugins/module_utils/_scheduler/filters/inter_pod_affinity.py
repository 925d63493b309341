# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that want others near, or far. Follows pkg/scheduler/framework/plugins/interpodaffinity/filtering.go."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import domains_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import PodQuery, match_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.term_owners import Owners, TermKind

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity:
    name = "InterPodAffinity"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        if errors := (*pod.occupant.affinity.errors, *pod.occupant.anti_affinity.errors):
            return Rejection(f"parsing pod: {'; '.join(errors)}")
        wanted, unwanted = pod.occupant.affinity.required, pod.occupant.anti_affinity.required
        namespace_labels = state.namespaces.get(pod.occupant.namespace, {})
        against = [
            owners
            for owners in state.terms.concerning(pod.occupant, namespace_labels)
            if owners.owned.kind is TermKind.REQUIRED_ANTI_AFFINITY and _has_domain(owners, state)
        ]
        if not wanted and not unwanted and not against:
            return None
        return Prepared(lambda: _failures(pod, against, state))


def _failures(pod: Pod, against: Sequence[Owners], state: ClusterState) -> list[FilterFailure]:
    near = _has_company(pod, state)
    apart = _is_free_of(pod.occupant.anti_affinity.required, state)
    admitted = _is_admitted(against, state)
    return [
        FilterFailure(~near, AFFINITY),
        FilterFailure(near & ~apart, ANTI_AFFINITY),
        FilterFailure(near & apart & ~admitted, EXISTING_ANTI_AFFINITY),
    ]


def _has_company(pod: Pod, state: ClusterState) -> BoolArray:
    """Nodes in whose domains, for each term, there is a pod that matches all terms.

    Where no such pod is in any domain, one that matches its own terms may be the first, on a node with all labels.
    """
    terms = pod.occupant.affinity.required
    labelled, accompanied = state.nodes.all(), state.nodes.all()
    if not terms:
        return labelled
    query = PodQuery(tuple(match_of(term, state.namespaces) for term in terms))
    counts = state.counts.of(query)
    anywhere = False
    for term in terms:
        domains = domains_of(state.nodes, term.topology_key)
        sums = domains.add_up(counts)
        anywhere = anywhere or bool(sums.any())
        labelled &= domains.exists()
        accompanied &= (sums > 0)[domains.ids]
    if not anywhere and query.includes(pod.occupant):
        return labelled
    return labelled & accompanied


def _is_free_of(terms: Sequence[AffinityTerm], state: ClusterState) -> BoolArray:
    """Nodes in whose domains no pod matches any term. A node without a domain is free."""
    result = state.nodes.all()
    for term in terms:
        domains = domains_of(state.nodes, term.topology_key)
        counts = state.counts.of(PodQuery((match_of(term, state.namespaces),)))
        result &= (domains.add_up(counts) == 0)[domains.ids]
    return result


def _has_domain(owners: Owners, state: ClusterState) -> bool:
    """Whether any of the pods with a term is in a domain; if none is, the term is about nothing."""
    return bool((state.nodes.domains(owners.owned.term.topology_key)[list(owners.nodes)] >= 0).any())


def _is_admitted(against: Sequence[Owners], state: ClusterState) -> BoolArray:
    """Nodes outside the domains of pods that do not want this one near."""
    result = state.nodes.all()
    for owners in against:
        domains = domains_of(state.nodes, owners.owned.term.topology_key)
        taken = np.zeros(domains.size + 1, dtype=np.bool_)
        taken[domains.ids[list(owners.nodes)]] = True
        taken[-1] = False
        result &= ~taken[domains.ids]
    return result

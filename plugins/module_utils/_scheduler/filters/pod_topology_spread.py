# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spreading over domains. Follows pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering}.go."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, SpreadConstraint
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import domains_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import PodMatch, PodQuery

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{REASON} (missing required label)"


class PodTopologySpread:
    name = "PodTopologySpread"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        constraints = [constraint for constraint in pod.spread if constraint.hard]
        if not constraints:
            return None
        return Prepared(lambda: _failures(pod, constraints, state))


def _failures(pod: Pod, constraints: Sequence[SpreadConstraint], state: ClusterState) -> list[FilterFailure]:
    """Constraints are checked in their order, so one that is not met hides a label missing for the next."""
    failures = []
    left = state.nodes.all()
    labelled = nodes_with_all_keys(constraints, state)
    for constraint in constraints:
        domains = domains_of(state.nodes, constraint.topology_key)
        too_many = _skewed_domains(pod, constraint, labelled, state)[domains.ids]
        missing = left & ~domains.exists()
        skewed = left & domains.exists() & too_many
        failures += [FilterFailure(missing, MISSING_LABEL), FilterFailure(skewed, REASON)]
        left = left & ~missing & ~skewed
    return failures


def _skewed_domains(pod: Pod, constraint: SpreadConstraint, labelled: BoolArray, state: ClusterState) -> BoolArray:
    """Domains that would be too far above the emptiest one with the pod in them."""
    domains = domains_of(state.nodes, constraint.topology_key)
    counted = labelled & admitted_by_policies(pod, constraint, state)
    counts = count_matching(pod.occupant, constraint, state) + _count_promised(pod.occupant, constraint, state)
    sums = domains.add_up(counts, counted)
    present = domains.present(counted)
    enough = int(present.sum()) >= constraint.min_domains
    least = int(sums[present].min()) if enough else 0
    own = int(constraint.selector.matches(pod.occupant.labels))
    result: BoolArray = sums + own - least > constraint.max_skew
    return result


def nodes_with_all_keys(constraints: Sequence[SpreadConstraint], state: ClusterState) -> BoolArray:
    result = state.nodes.all()
    for constraint in constraints:
        result &= state.nodes.domains(constraint.topology_key) >= 0
    return result


def admitted_by_policies(pod: Pod, constraint: SpreadConstraint, state: ClusterState) -> BoolArray:
    """Nodes whose pods are counted."""
    result = state.nodes.all()
    if constraint.honors_affinity:
        result &= state.nodes.admitted_by_affinity(pod.node_affinity)
    if constraint.honors_taints:
        result &= state.nodes.tolerable(pod.tolerations)
    return result


def count_matching(occupant: Occupant, constraint: SpreadConstraint, state: ClusterState) -> IntArray:
    """Pods of the constraint on each node: of the pod's own namespace, without terminating ones.

    A selector of everything counts nothing, although it matches the pod itself.
    """
    if constraint.selector.everything:
        return np.zeros(len(state.nodes), dtype=np.int64)
    match = PodMatch(constraint.selector, frozenset({occupant.namespace}))
    return state.counts.of(PodQuery((match,), staying=True))


def _count_promised(occupant: Occupant, constraint: SpreadConstraint, state: ClusterState) -> IntArray:
    """Promised pods that `count_matching` leaves out: upstream adds them one by one, by the selector alone."""
    counts: IntArray = np.zeros(len(state.nodes), dtype=np.int64)
    for placement in state.promised:
        other = placement.occupant
        left_out = constraint.selector.everything or other.terminating
        if left_out and other.namespace == occupant.namespace and constraint.selector.matches(other.labels):
            counts[state.nodes.index[placement.node]] += 1
    return counts

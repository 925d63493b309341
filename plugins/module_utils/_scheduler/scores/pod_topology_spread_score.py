# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emptier domains first. Follows pkg/scheduler/framework/plugins/podtopologyspread/scoring.go."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, FloatArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, SpreadConstraint
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import LabelSelector
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.pod_topology_spread import (
    admitted_by_policies,
    count_matching,
    nodes_with_all_keys,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import domains_with_blank

_ZONE = "topology.kubernetes.io/zone"


class PodTopologySpreadScore:
    name = "PodTopologySpread"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        """Pods without constraints of their own are spread over hosts and zones with those of their owner."""
        constraints, eligible = _constraints(pod, state)
        if not constraints:
            return None
        feasible = state.nodes.numbered(nodes)
        total: FloatArray = np.zeros(len(state.nodes), dtype=np.float64)
        for constraint in constraints:
            total = total + _crowding(pod, constraint, eligible, feasible & eligible, state)
        # Rounded half up, as upstream does; NumPy would round half to even. Crowding is never negative.
        crowding = np.floor(total + 0.5).astype(np.int64)
        return _emptier_first(crowding[nodes], eligible[nodes])


def _constraints(pod: Pod, state: ClusterState) -> tuple[Sequence[SpreadConstraint], BoolArray]:
    """The soft constraints, and the nodes that count: those with all labels, but for the default constraints all."""
    if pod.spread:
        own = [constraint for constraint in pod.spread if not constraint.hard]
        return own, nodes_with_all_keys(own, state)
    selector = state.owner_selectors.selector_for(pod)
    return () if selector.everything else _defaults(selector), state.nodes.all()


def _defaults(selector: LabelSelector) -> tuple[SpreadConstraint, ...]:
    return (SpreadConstraint(HOSTNAME, 3, hard=False, selector=selector), SpreadConstraint(_ZONE, 5, False, selector))


def _crowding(
    pod: Pod, constraint: SpreadConstraint, eligible: BoolArray, feasible: BoolArray, state: ClusterState
) -> FloatArray:
    """For each node the weighted number of matching pods in its domain; 0 without a domain."""
    counts = count_matching(pod.occupant, constraint, state)
    if constraint.topology_key == HOSTNAME:
        here, size = counts, int(feasible.sum())
    else:
        domains = domains_with_blank(state.nodes, constraint.topology_key)
        counted = eligible & admitted_by_policies(pod, constraint, state)
        here, size = domains.add_up(counts, counted)[domains.ids], int(domains.present(feasible).sum())
    # Domains of a label with many values hold fewer pods each, so each of their pods weighs more.
    weight = math.log(size + 2)
    result: FloatArray = here.astype(np.float64) * weight + float(constraint.max_skew - 1)
    result[state.nodes.domains(constraint.topology_key) < 0] = 0
    return result


def _emptier_first(crowding: IntArray, eligible: BoolArray) -> IntArray:
    """All points for the emptiest, in proportion; none for nodes that do not count."""
    result = np.zeros(len(crowding), dtype=np.int64)
    counted = crowding[eligible]
    if counted.size:
        most, least = int(counted.max()), int(counted.min())
        result[eligible] = MAX_SCORE if most == 0 else MAX_SCORE * (most + least - counted) // most
    return result

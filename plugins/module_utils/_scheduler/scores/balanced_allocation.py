# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cpu and memory used alike. Follows pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_HALF = MAX_SCORE // 2


class BalancedAllocation:
    name = "NodeResourcesBalancedAllocation"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        """How much the pod improves the balance. Pods without requests do not change it, so it says nothing of them."""
        if not any(pod.balanced_requests):
            return None
        after = _balance(pod.balanced_requests, state, nodes)
        before = _balance((0, 0), state, nodes)
        return _HALF + (_HALF + after - before) // 2


def _balance(wanted: tuple[int, int], state: ClusterState, nodes: IntArray) -> IntArray:
    """`MAX_SCORE` for equal fractions of cpu and memory, less by half of what they differ by."""
    capacities = [state.nodes.allocatable(resource)[nodes] for resource in (CPU, MEMORY)]
    fractions = [
        np.minimum((state.resources.requested(resource)[nodes] + amount) / np.maximum(capacity, 1), 1.0)
        for resource, amount, capacity in zip((CPU, MEMORY), wanted, capacities, strict=True)
    ]
    deviation = np.abs((fractions[0] - fractions[1]) / 2)
    deviation[(capacities[0] == 0) | (capacities[1] == 0)] = 0
    result: IntArray = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return result

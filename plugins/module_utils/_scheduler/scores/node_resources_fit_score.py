# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emptier, or fuller, nodes first. Follows noderesources/{resource_allocation,least_allocated,most_allocated}.go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


class NodeResourcesFitScore:
    """`most`: fill nodes up (MostAllocated) instead of spreading over them (LeastAllocated)."""

    name = "NodeResourcesFit"

    def __init__(self, *, most: bool = False) -> None:
        self._most = most

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray:
        """The mean over cpu and memory, of those that a node has."""
        usage = (state.resources.assumed_cpu, state.resources.assumed_memory)
        total, weights = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64)
        for resource, used, wanted in zip((CPU, MEMORY), usage, pod.assumed_requests, strict=True):
            capacity = state.nodes.allocatable(resource)[nodes]
            taken = np.minimum(used[nodes] + wanted, capacity)
            counted = taken if self._most else capacity - taken
            total += counted * MAX_SCORE // np.maximum(capacity, 1)
            weights += capacity != 0
        return total // np.maximum(weights, 1)

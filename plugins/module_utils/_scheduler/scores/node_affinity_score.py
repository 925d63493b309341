# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferred node affinity. Follows pkg/scheduler/framework/plugins/nodeaffinity."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import PluginError, normalize
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


class NodeAffinityScore:
    name = "NodeAffinity"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        """Raises `PluginError` for a preferred term with an operand that cannot be parsed."""
        preferred = [(weight, term) for weight, term in pod.node_affinity.preferred if weight and not term.empty]
        if not pod.node_affinity.preferred:
            return None
        if any(term.invalid for _weight, term in preferred):
            raise PluginError("A preferred node affinity term has an operand that kube-scheduler cannot parse.")
        total = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in preferred:
            total += weight * state.nodes.meeting(term)[nodes]
        return normalize(total)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rank the nodes that fit. Follows RunScorePlugins in pkg/scheduler/framework/runtime/framework.go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Scorers
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


def total_scores(pod: Pod, state: ClusterState, nodes: IntArray, scorers: Scorers) -> IntArray:
    """The weighted sum of all scores for the feasible nodes of these numbers; 1 for each without any scorer.

    Raises `PluginError`.
    """
    if not scorers or not len(nodes):
        return np.ones(len(nodes), dtype=np.int64)
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, scorer in scorers:
        points = scorer.score(pod, state, nodes)
        if points is not None:
            total += weight * points
    return total

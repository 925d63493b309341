# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How well nodes meet what a pod itself would rather have, in the points and weights of kube-scheduler's scores.

Its preferred node labels, preferred neighbours and soft spread constraints count, and taints that are to be avoided.
How full nodes are, and what other pods wish about this one, does not: nobody is moved for that.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.inter_pod_affinity_score import (
    own_wishes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_affinity_score import (
    NodeAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.pod_topology_spread_score import (
    PodTopologySpreadScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Scorers
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.taint_toleration_score import (
    TaintTolerationScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


class OwnWishes:
    """The part of InterPodAffinity that is the pod's own."""

    name = "OwnWishes"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        wishes = own_wishes(pod, state)[nodes]
        least, most = int(wishes.min()), int(wishes.max())
        if least == most:
            return None
        points: IntArray = MAX_SCORE * (wishes - least) // (most - least)
        return points


def points(pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray:
    """The points of each of the nodes, by their numbers; they compare with each other only. Raises `PluginError`."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, scorer in _scorers(pod):
        found = scorer.score(pod, state, nodes)
        if found is not None:
            total += weight * found
    return total


def _scorers(pod: Pod) -> Scorers:
    """Weights as in scores/registry.py. Without a soft constraint of its own, a pod is spread by the scheduler's."""
    spread = ((2, PodTopologySpreadScore()),) if any(not entry.hard for entry in pod.spread) else ()
    return (3, TaintTolerationScore()), (2, NodeAffinityScore()), (2, OwnWishes()), *spread

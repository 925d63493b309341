# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Features a kubelet must have for a pod. Follows pkg/scheduler/framework/plugins/nodedeclaredfeatures."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        if not pod.features:
            return None
        return Prepared(lambda: [FilterFailure(_lacking(pod.features, state), REASON)])


def _lacking(features: frozenset[str], state: ClusterState) -> BoolArray:
    return np.fromiter((not features <= node.features for node in state.nodes.nodes), dtype=np.bool_)

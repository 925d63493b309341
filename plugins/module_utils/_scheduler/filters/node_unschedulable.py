# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordoned nodes. Follows pkg/scheduler/framework/plugins/nodeunschedulable."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON, tolerated
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) were unschedulable"


class NodeUnschedulable:
    name = "NodeUnschedulable"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        """A pod that tolerates the cordon's taint tolerates the cordon too."""
        if tolerated(CORDON, pod.tolerations):
            return None
        return Prepared(lambda: [FilterFailure(state.nodes.unschedulable, REASON)])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that name their node. Follows pkg/scheduler/framework/plugins/nodename."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) didn't match the requested node name"


class NodeName:
    name = "NodeName"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        if not pod.node_name:
            return None
        return Prepared(lambda: [FilterFailure(~state.nodes.named([pod.node_name]), REASON)])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host ports. Follows pkg/scheduler/framework/plugins/nodeports."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    name = "NodePorts"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        ports = pod.occupant.ports
        if not ports:
            return None
        return Prepared(lambda: [FilterFailure(state.nodes.numbered(state.ports.conflicting(ports)), REASON)])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints that keep a pod out. Follows pkg/scheduler/framework/plugins/tainttoleration."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) had untolerated taint(s)"


class TaintToleration:
    name = "TaintToleration"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared:
        return Prepared(lambda: [FilterFailure(~state.nodes.tolerable(pod.tolerations), REASON)])

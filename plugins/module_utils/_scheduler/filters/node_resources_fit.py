# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Free resources and the number of pods. Follows pkg/scheduler/framework/plugins/noderesources/fit.go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import PODS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

TOO_MANY_PODS = "Too many pods"


class NodeResourcesFit:
    name = "NodeResourcesFit"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared:
        return Prepared(lambda: _failures(pod, state))


def _failures(pod: Pod, state: ClusterState) -> list[FilterFailure]:
    """All that is short on a node. What a pod does not ask for is not looked at, overcommitted or not."""
    nodes, usage = state.nodes, state.resources
    failures = [FilterFailure(usage.pods >= nodes.allocatable(PODS), TOO_MANY_PODS)]
    for resource, wanted in pod.requests.items():
        if wanted > 0 and resource != PODS:
            free = nodes.allocatable(resource) - usage.requested(resource)
            failures.append(FilterFailure(wanted > free, f"Insufficient {resource}"))
    return failures

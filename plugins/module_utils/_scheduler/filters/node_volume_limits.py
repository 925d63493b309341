# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of volumes a CSI driver can attach to a node. Follows pkg/scheduler/framework/plugins/nodevolumelimits."""

from __future__ import annotations

from collections import defaultdict

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import CsiVolume
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterFailure, Prepared
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) exceed max volume count"


class NodeVolumeLimits:
    name = "NodeVolumeLimits"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | None:
        volumes = list(state.attached.of(pod.occupant))
        if not volumes:
            return None
        return Prepared(lambda: [*_uncountable(state), FilterFailure(_over_limit(volumes, state), REASON)])


def _uncountable(state: ClusterState) -> list[FilterFailure]:
    """Nodes with limits whose volumes cannot be counted, as a pod there uses an ephemeral claim that is not its own."""
    limited = state.nodes.named(name for name, most in state.storage.limits.items() if most)
    return [
        FilterFailure(
            limited & state.nodes.numbered(nodes), f"PVC {claim} was not created for the pod that uses it", fatal=True
        )
        for claim, nodes in state.attached.strangers().items()
    ]


def _over_limit(volumes: list[CsiVolume], state: ClusterState) -> BoolArray:
    """Nodes where a driver would exceed its limit. Volumes that pods of the node use already are no addition."""
    by_driver: defaultdict[str, list[CsiVolume]] = defaultdict(list)
    for volume in volumes:
        by_driver[volume.driver].append(volume)
    result = state.nodes.none()
    for driver, wanted in by_driver.items():
        limits = {name: most[driver] for name, most in state.storage.limits.items() if driver in most}
        limited = [state.nodes.index[name] for name in limits if name in state.nodes.index]
        added = np.full(len(state.nodes), len(wanted), dtype=np.int64)
        for volume in wanted:
            added[state.attached.users(volume)] -= 1
        most = np.array([limits[state.nodes.names[node]] for node in limited], dtype=np.int64)
        over = (added > 0)[limited] & ((state.attached.count(driver) + added)[limited] > most)
        result[limited] |= over
    return result

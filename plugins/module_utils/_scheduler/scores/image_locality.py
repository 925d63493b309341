# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that have the pod's images. Follows pkg/scheduler/framework/plugins/imagelocality."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_LEAST = 23 * 2**20
_MOST = 1000 * 2**20


class ImageLocality:
    name = "ImageLocality"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray:
        """Bytes that need no pulling; an image counts in proportion to how many nodes have it, so as not to herd."""
        total = np.zeros(len(state.nodes), dtype=np.int64)
        for image in pod.images:
            holders, size = state.nodes.image(_normal_name(image))
            total[holders] += int(size * (len(holders) / len(state.nodes)))
        most = _MOST * pod.containers
        result: IntArray = MAX_SCORE * (np.clip(total[nodes], _LEAST, most) - _LEAST) // (most - _LEAST)
        return result


def _normal_name(image: str) -> str:
    """With the tag that is meant if none is given."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fewer taints that one would rather avoid. Follows pkg/scheduler/framework/plugins/tainttoleration."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import MAX_SCORE, normalize
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_EFFECT = "PreferNoSchedule"


class TaintTolerationScore:
    name = "TaintToleration"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray:
        tolerations = tuple(entry for entry in pod.tolerations if entry.effect in ("", _EFFECT))
        return MAX_SCORE - normalize(state.nodes.count_taints(tolerations, _EFFECT)[nodes])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scores of each profile with their weights. A new one is a file and a line here.

Follows pkg/scheduler/apis/config/v1/default_plugins.go, and for the other profiles the settings that OpenShift's
scheduler has under these names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import ScorePlugin
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.balanced_allocation import (
    BalancedAllocation,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.image_locality import ImageLocality
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.inter_pod_affinity_score import (
    InterPodAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_affinity_score import (
    NodeAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_resources_fit_score import (
    NodeResourcesFitScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.pod_topology_spread_score import (
    PodTopologySpreadScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.taint_toleration_score import (
    TaintTolerationScore,
)


class Profile(Enum):
    """How nodes that fit are ranked: emptier ones first, fuller ones first, or not at all."""

    LOW_NODE_UTILIZATION = "LowNodeUtilization"
    HIGH_NODE_UTILIZATION = "HighNodeUtilization"
    NO_SCORING = "NoScoring"


# Plugins with the weights of their scores.
Scorers = Sequence[tuple[int, ScorePlugin]]

_COMMON: Scorers = (
    (3, TaintTolerationScore()),
    (2, NodeAffinityScore()),
    (2, PodTopologySpreadScore()),
    (2, InterPodAffinityScore()),
    (1, ImageLocality()),
)

SCORERS: Mapping[Profile, Scorers] = {
    Profile.LOW_NODE_UTILIZATION: (*_COMMON, (1, NodeResourcesFitScore()), (1, BalancedAllocation())),
    Profile.HIGH_NODE_UTILIZATION: (*_COMMON, (5, NodeResourcesFitScore(most=True))),
    Profile.NO_SCORING: (),
}

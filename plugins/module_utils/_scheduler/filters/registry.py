# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that run, in kube-scheduler's order. A new one is a file and a line here.

Follows pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterPlugin
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.inter_pod_affinity import (
    InterPodAffinity,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_affinity import NodeAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_declared_features import (
    NodeDeclaredFeatures,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_name import NodeName
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_ports import NodePorts
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_resources_fit import (
    NodeResourcesFit,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_unschedulable import (
    NodeUnschedulable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_volume_limits import (
    NodeVolumeLimits,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.pod_topology_spread import (
    PodTopologySpread,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.taint_toleration import (
    TaintToleration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.volume_binding import VolumeBinding
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.volume_restrictions import (
    VolumeRestrictions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.volume_zone import VolumeZone

FILTERS: tuple[FilterPlugin, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
    NodeDeclaredFeatures(),
)

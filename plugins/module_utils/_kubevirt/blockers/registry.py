# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules, in the order in which KubeVirt would stumble over what they find. A new one is a file and a line here."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.added_selector import added_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.backup import backup
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.claims import claims
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import BlockerRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.descheduler import prefer_no_eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.evacuation import evacuation
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.hotplug import hotplug
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.in_flight import in_flight
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.launcher_pods import (
    several_pods,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.limit_range import limit_range
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.live_migratable import live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.quota import quota
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.state import state
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.target_pod import no_target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.utility_volumes import utility_volumes

BLOCKER_RULES: tuple[BlockerRule, ...] = (
    state,
    live_migratable,
    claims,
    in_flight,
    evacuation,
    backup,
    utility_volumes,
    several_pods,
    no_target_pod,
    limit_range,
    quota,
    hotplug,
    added_selector,
    prefer_no_eviction,
)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI that KubeVirt itself is about to migrate, because somebody evicted its pod.

KubeVirt repeats that migration until it succeeds; one of our own would be refused, or make its next one be refused.
Follows vmisToMigrate and filterRunningNonMigratingVMIs in pkg/virt-controller/watch/drain/evacuation/evacuation.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import MIGRATING_STRATEGIES, strategy


def evacuation(candidate: Candidate) -> Iterator[Blocker]:
    node = candidate.status.get("evacuationNodeName")
    if not node or node != candidate.status.get("nodeName") or not candidate.running:
        return
    if strategy(candidate.vmi, candidate.configuration) not in MIGRATING_STRATEGIES:
        return
    yield Blocker(
        "evacuation-in-progress",
        Effect.REFUSED,
        candidate.title,
        f"KubeVirt is evacuating the VMI from node {node}, as its pod was evicted, and migrates it itself",
        "wait until it has left, or cancel the evacuation with virtctl evacuate-cancel",
        passing=True,
    )

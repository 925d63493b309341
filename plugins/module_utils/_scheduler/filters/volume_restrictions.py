# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks and claims that pods cannot share. Follows pkg/scheduler/framework/plugins/volumerestrictions."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

DISK_CONFLICT = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions:
    name = "VolumeRestrictions"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        occupant = pod.occupant
        for reference in occupant.volumes.claims:
            if not reference.ephemeral and (occupant.namespace, reference.name) not in state.storage.claims:
                return Rejection(f'persistentvolumeclaim "{reference.name}" not found')
        taken = _is_exclusive_claim_taken(occupant, state)
        if not occupant.volumes.disks and not taken:
            return None
        return Prepared(lambda: _failures(occupant, state, taken=taken))


def _is_exclusive_claim_taken(occupant: Occupant, state: ClusterState) -> bool:
    return any(
        "ReadWriteOncePod" in state.storage.claims[occupant.namespace, reference.name].access_modes
        and state.volumes.is_claim_used(occupant.namespace, reference.name)
        for reference in occupant.volumes.claims
        if not reference.ephemeral
    )


def _failures(occupant: Occupant, state: ClusterState, *, taken: bool) -> list[FilterFailure]:
    """A claim in use anywhere closes every node; a disk in use, which is looked at first, only its own."""
    conflicting = state.nodes.numbered(state.volumes.conflicting(occupant.volumes.disks))
    failures = [FilterFailure(conflicting, DISK_CONFLICT)]
    if taken:
        failures.append(FilterFailure(~conflicting, IN_USE))
    return failures

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The claim that keeps a guest's own state, such as its vTPM or EFI variables, and what a migration does with it.

Follows handleBackendStorage in pkg/virt-controller/watch/migration/migration.go and CreatePVCForMigrationTarget in
pkg/storage/backend-storage/backend-storage.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod

Object = Mapping[str, Any]

_PREFIX = "persistent-state-for"
_SHARED = "ReadWriteMany"


def volumes_of_target(vmi: Object, volumes: Sequence[Object]) -> Sequence[Object] | NoTargetPod:
    """Of a running pod's volumes those that the target pod of a migration has, too.

    Unless both pods can mount the claim of the state at once, the target gets a new one, whose name is drawn by lot and
    which does not exist yet: it is left out.
    """
    if not traits.needs_state(vmi):
        return volumes
    for status in (vmi.get("status") or {}).get("volumeStatus") or ():
        claim = status.get("persistentVolumeClaimInfo") or {}
        if status["name"].startswith(_PREFIX) and claim.get("claimName"):
            shared = (claim.get("accessModes") or [""])[0] == _SHARED
            return volumes if shared else [volume for volume in volumes if _claim(volume) != claim["claimName"]]
    return NoTargetPod(
        "state-claim-unknown",
        "its status names no PersistentVolumeClaim with the state (vTPM, EFI variables) that is to go with it",
        "check that the claim is bound",
    )


def _claim(volume: Object) -> str | None:
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims that no second node can use, told before KubeVirt has looked at them itself.

Once a VMI runs, its condition LiveMigratable says the same with more authority. Follows checkVolumesForMigration in
pkg/virt-handler/vm.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import condition_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_SHARED = "ReadWriteMany"


def claims(candidate: Candidate) -> Iterator[Blocker]:
    if condition_of(candidate.vmi) is not None or candidate.claims is None:
        return
    moving = {volume["volumeName"] for volume in candidate.status.get("migratedVolumes") or ()}
    for volume in candidate.vmi["spec"].get("volumes") or ():
        name = claim_name(volume)
        claim = candidate.claims.get(name or "")
        if claim is None or volume["name"] in moving:
            continue
        modes = (claim.get("spec") or {}).get("accessModes") or ()
        if _SHARED not in modes:
            yield Blocker(
                "claim-not-shared",
                Effect.REFUSED,
                candidate.in_namespace("PersistentVolumeClaim", str(name)),
                f"disk {volume['name']} is on PersistentVolumeClaim {name}, whose access is {', '.join(modes)} and not "
                f"{_SHARED}",
                f"move the disk to a claim with access mode {_SHARED}, or restart or stop the VM instead",
            )


def claim_name(volume: Object) -> str | None:
    """Of a VMI's volume that is a claim or comes from a DataVolume, whose claim has its name."""
    for kind, field in (("persistentVolumeClaim", "claimName"), ("dataVolume", "name")):
        if volume.get(kind):
            return str(volume[kind][field])
    return None

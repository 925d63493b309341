# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of pods, as far as they decide where a pod can run.

Follows pkg/scheduler/framework/plugins/volumerestrictions (disks that pods cannot share) and
k8s.io/component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import CsiVolume, inline_volume
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """`ephemeral`: the claim is made for this pod, which must own it."""

    name: str
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A network disk named in a pod itself. Same `identity`: same disk, given a common monitor if it has monitors.

    `sharable`: pods that all mount it read-only may share it.
    """

    identity: tuple[str, ...]
    sharable: bool
    monitors: frozenset[str] = frozenset()

    def conflicts(self, other: Disk) -> bool:
        if self.identity != other.identity or (self.sharable and other.sharable):
            return False
        return not self.monitors or bool(self.monitors & other.monitors)


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """`inline`: volumes of built-in types, by the names that their CSI drivers have for them."""

    claims: tuple[ClaimRef, ...] = ()
    disks: tuple[Disk, ...] = ()
    inline: tuple[CsiVolume, ...] = ()


NONE = PodVolumes()


def pod_volumes(pod: Object) -> PodVolumes:
    """Parse spec.volumes of a v1.Pod."""
    volumes = pod["spec"].get("volumes") or ()
    if not volumes:
        return NONE
    return PodVolumes(
        claims=tuple(_claims(pod, volumes)),
        disks=tuple(disk for volume in volumes for disk in _disks(volume)),
        inline=tuple(csi for volume in volumes if (csi := inline_volume(volume))),
    )


def _claims(pod: Object, volumes: list[Object]) -> Iterator[ClaimRef]:
    for volume in volumes:
        if claim := volume.get("persistentVolumeClaim"):
            yield ClaimRef(claim["claimName"])
        elif volume.get("ephemeral") is not None:
            yield ClaimRef(f"{pod['metadata']['name']}-{volume['name']}", ephemeral=True)


def _disks(volume: Object) -> Iterator[Disk]:
    if disk := volume.get("gcePersistentDisk"):
        yield Disk(("gce", disk["pdName"]), bool(disk.get("readOnly")))
    if disk := volume.get("awsElasticBlockStore"):
        yield Disk(("aws", disk["volumeID"]), sharable=False)
    if disk := volume.get("iscsi"):
        yield Disk(("iscsi", disk["iqn"]), bool(disk.get("readOnly")))
    if disk := volume.get("rbd"):
        identity = ("rbd", disk.get("pool") or "", disk["image"])
        yield Disk(identity, bool(disk.get("readOnly")), frozenset(disk.get("monitors") or ()))

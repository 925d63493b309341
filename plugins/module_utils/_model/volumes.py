# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of pods, as far as they decide where a pod can run.

Follows pkg/scheduler/framework/plugins/volumerestrictions (disks that pods cannot share) and the translators of
k8s.io/csi-translation-lib (which CSI driver serves a volume of a built-in type).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_AWS_VOLUME = re.compile(r"vol-[^/]*")


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
class CsiVolume:
    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class PodVolumes:
    claims: tuple[ClaimRef, ...] = ()
    disks: tuple[Disk, ...] = ()
    inline: tuple[CsiVolume, ...] = ()


NONE = PodVolumes()

# Volume types that CSI drivers have taken over. Provisioner of storage classes, and the driver that acts for it.
MIGRATED_PROVISIONERS: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
# These have a translator too, but their limits are not counted.
UNCOUNTED_PROVISIONERS = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})


def pod_volumes(pod: Mapping[str, Any]) -> PodVolumes:
    """Parse spec.volumes of a v1.Pod."""
    volumes = pod["spec"].get("volumes") or ()
    if not volumes:
        return NONE
    return PodVolumes(
        claims=tuple(_claims(pod, volumes)),
        disks=tuple(disk for volume in volumes for disk in _disks(volume)),
        inline=tuple(csi for volume in volumes if (csi := migrated(volume))),
    )


def migrated(source: Mapping[str, Any], zone: str = "UNSPECIFIED") -> CsiVolume | None:
    """What a volume source of a built-in type is called by the CSI driver that has taken it over."""
    if disk := source.get("awsElasticBlockStore"):
        handle = disk["volumeID"]
        return CsiVolume("ebs.csi.aws.com", _aws_handle(handle) if handle.startswith("aws://") else handle)
    if disk := source.get("gcePersistentDisk"):
        return CsiVolume("pd.csi.storage.gke.io", f"projects/UNSPECIFIED/zones/{zone}/disks/{disk['pdName']}")
    if disk := source.get("azureDisk"):
        return CsiVolume("disk.csi.azure.com", disk["diskURI"])
    if disk := source.get("cinder"):
        return CsiVolume("cinder.csi.openstack.org", disk["volumeID"])
    if disk := source.get("portworxVolume"):
        return CsiVolume("pxd.portworx.com", disk["volumeID"])
    return None


def _claims(pod: Mapping[str, Any], volumes: list[Mapping[str, Any]]) -> Iterator[ClaimRef]:
    for volume in volumes:
        if claim := volume.get("persistentVolumeClaim"):
            yield ClaimRef(claim["claimName"])
        elif volume.get("ephemeral") is not None:
            yield ClaimRef(f"{pod['metadata']['name']}-{volume['name']}", ephemeral=True)


def _disks(volume: Mapping[str, Any]) -> Iterator[Disk]:
    if disk := volume.get("gcePersistentDisk"):
        yield Disk(("gce", disk["pdName"]), bool(disk.get("readOnly")))
    if disk := volume.get("awsElasticBlockStore"):
        yield Disk(("aws", disk["volumeID"]), sharable=False)
    if disk := volume.get("iscsi"):
        yield Disk(("iscsi", disk["iqn"]), bool(disk.get("readOnly")))
    if disk := volume.get("rbd"):
        identity = ("rbd", disk.get("pool") or "", disk["image"])
        yield Disk(identity, bool(disk.get("readOnly")), frozenset(disk.get("monitors") or ()))


def _aws_handle(volume_id: str) -> str:
    """The bare id in aws://<zone>/<id>."""
    found = _AWS_VOLUME.search(volume_id)
    return found[0] if found else volume_id

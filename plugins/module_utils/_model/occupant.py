# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod means to the others: what it takes of its node, and which pods it does not want near.

Of its volumes, what decides where a pod can run. They follow pkg/scheduler/framework/plugins/volumerestrictions (disks
that pods cannot share) and k8s.io/component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import affinity, resources
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import PodAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import CsiVolume, inline_volume
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 # a wildcard to compare with, nothing is bound


@dataclass(frozen=True, slots=True)
class HostPort:
    protocol: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod that is, or would be, on a node.

    `requests`: what it takes, `assumed_cpu` and `assumed_memory`: the same with assumptions for containers that name
    no request (only scores use them). `terminating` pods count for everything but topology spread.
    """

    namespace: str
    name: str
    uid: str
    labels: Labels
    terminating: bool
    requests: Amounts
    assumed_cpu: int
    assumed_memory: int
    ports: tuple[HostPort, ...]
    volumes: PodVolumes
    affinity: PodAffinity
    anti_affinity: PodAffinity

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def occupant(raw: Object) -> Occupant:
    """Parse a v1.Pod. Raises `QuantityError`."""
    metadata, spec = raw["metadata"], raw["spec"]
    namespace = metadata.get("namespace") or "default"
    requests = resources.pod_requests(raw, as_running=True)
    assumed = resources.assumed_for_scores(raw, requests)
    scored = resources.pod_requests(raw, as_running=True, assumed=assumed) if assumed else requests
    scored_amounts = resources.amounts(scored)
    wishes = spec.get("affinity") or {}
    return Occupant(
        namespace=namespace,
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        labels=metadata.get("labels") or {},
        terminating=metadata.get("deletionTimestamp") is not None,
        requests=resources.amounts(requests),
        assumed_cpu=scored_amounts.get(resources.CPU, 0),
        assumed_memory=scored_amounts.get(resources.MEMORY, 0),
        ports=tuple(_host_ports(spec)),
        volumes=pod_volumes(raw),
        affinity=affinity.pod_affinity(wishes.get("podAffinity"), namespace),
        anti_affinity=affinity.pod_affinity(wishes.get("podAntiAffinity"), namespace),
    )


def _host_ports(spec: Object) -> Iterator[HostPort]:
    """Ports of containers and sidecars; init containers are gone before the ports matter."""
    sidecars = (container for container in spec.get("initContainers") or () if resources.is_sidecar(container))
    for container in (*sidecars, *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if (number := port.get("hostPort") or 0) > 0:
                yield HostPort(port.get("protocol") or "TCP", number, port.get("hostIP") or ANY_ADDRESS)


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


_NO_VOLUMES = PodVolumes()


def pod_volumes(pod: Object) -> PodVolumes:
    """Parse spec.volumes of a v1.Pod."""
    volumes = pod["spec"].get("volumes") or ()
    if not volumes:
        return _NO_VOLUMES
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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of a generated cluster as Kubernetes objects."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from testbed.api import Object
from testbed.scenarios.generator.placement import affinity, selector, spread, tolerations
from testbed.scenarios.generator.profiles import Flavor, Obstacle, Owner, Profile
from testbed.scenarios.generator.storage import disk_claim
from testbed.scenarios.generator.topology import GPU_DEVICE

MIB = 2**20
# Fixed part of a launcher pod beside its guest, rounded up: launcher, QEMU, video memory, console log, container disk.
LAUNCHER_OVERHEAD_MIB = 320
OVERHEAD_PER_CORE_MIB = 8
PASSTHROUGH_OVERHEAD_MIB = 1024


@dataclass(frozen=True)
class Group:
    """VMs of one kind that know each other by the label `group`."""

    profile: Profile
    name: str
    namespace: str
    size: int
    flavor: Flavor
    container_disk: bool

    @property
    def memory(self) -> int:
        """Bytes that each launcher pod requests, rounded up."""
        mib = self.flavor.memory_gib * 1024 + LAUNCHER_OVERHEAD_MIB + OVERHEAD_PER_CORE_MIB * self.flavor.cores
        return MIB * (mib + (PASSTHROUGH_OVERHEAD_MIB if self.profile.obstacle is Obstacle.GPU else 0))


def build_group(group: Group) -> list[Object]:
    """A VMI ReplicaSet, or VMs with the volumes that are theirs alone."""
    if group.profile.owner is Owner.REPLICA_SET:
        return [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": Owner.REPLICA_SET.value,
                "metadata": {"name": group.name, "namespace": group.namespace},
                "spec": {
                    "replicas": group.size,
                    "selector": {"matchLabels": {"group": group.name}},
                    "template": template(group, group.name),
                },
            }
        ]
    objects: list[Object] = []
    for number in range(1, group.size + 1):
        name = f"{group.name}-{number}"
        objects += disk_claim(group.namespace, name, shared=group.profile.shared_disk) if has_claim(group) else []
        objects.append(
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": Owner.VM.value,
                "metadata": {"name": name, "namespace": group.namespace, "labels": {"group": group.name}},
                "spec": {"runStrategy": "Always", "template": template(group, name)},
            }
        )
    return objects


def has_claim(group: Group) -> bool:
    return group.profile.shared_disk or group.profile.obstacle is Obstacle.DISK


def template(group: Group, name: str) -> Object:
    """Metadata and spec of the VMIs."""
    profile = group.profile
    spec: dict[str, Any] = {
        "evictionStrategy": profile.eviction,
        "terminationGracePeriodSeconds": 1,
        "domain": {
            "cpu": {"cores": group.flavor.cores},
            "memory": {"guest": f"{group.flavor.memory_gib}Gi"},
            "devices": {
                "disks": [{"name": disk, "disk": {"bus": "virtio"}} for disk in ("system", "seed")],
                "interfaces": [
                    {"name": "default", ("bridge" if profile.obstacle is Obstacle.BRIDGE else "masquerade"): {}}
                ],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "system", **system_volume(group, name)},
            {"name": "seed", "cloudInitNoCloud": {"userData": f"#cloud-config\nhostname: {name}\n"}},
        ],
    }
    if profile.obstacle is Obstacle.GPU:
        spec["domain"]["devices"]["gpus"] = [{"name": "gpu1", "deviceName": GPU_DEVICE}]
    rules = {
        "nodeSelector": selector(profile),
        "affinity": affinity(profile, group.name),
        "tolerations": tolerations(profile),
        "topologySpreadConstraints": spread(profile, group.name),
        "priorityClassName": profile.priority,
    }
    spec |= {key: value for key, value in rules.items() if value}
    return {"metadata": {"labels": {"group": group.name, "profile": profile.name}}, "spec": spec}


def system_volume(group: Group, name: str) -> Object:
    if has_claim(group):
        return {"persistentVolumeClaim": {"claimName": name}}
    if group.container_disk:
        return {"containerDisk": {"image": f"registry.example/{group.profile.name}:1"}}
    return {"emptyDisk": {"capacity": "2Gi"}}


def choose_group(profile: Profile, name: str, size: int, namespaces: list[str], rng: random.Random) -> Group:
    return Group(
        profile, name, rng.choice(namespaces), size, rng.choice(profile.flavors), container_disk=rng.random() < 0.25
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of VM groups that generated clusters are made of: one row per kind, everything else follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


class Owner(StrEnum):
    VM = "VirtualMachine"
    REPLICA_SET = "VirtualMachineInstanceReplicaSet"


class Pool(StrEnum):
    """Nodes for one purpose.

    The dedicated and GPU nodes are tainted; the high-performance ones are general nodes with a label.
    """

    GENERAL = "general"
    HIGH = "high"
    DEDICATED = "dedicated"
    GPU = "gpu"


class Obstacle(StrEnum):
    """What in a VM's spec keeps it from being live-migrated."""

    BRIDGE = "bridge interface on the pod network"
    DISK = "ReadWriteOnce disk"
    GPU = "PCI device of the host"


@dataclass(frozen=True)
class Apart:
    """Anti-affinity of a group with itself; with `ignore_own_pods` a VM's own pod never blocks its migration."""

    topology_key: str
    required: bool = True
    ignore_own_pods: bool = False


@dataclass(frozen=True)
class Flavor:
    cores: int
    memory_gib: int


SMALL = (Flavor(1, 1), Flavor(1, 2), Flavor(2, 2), Flavor(2, 4))
MIXED = (*SMALL, *SMALL, Flavor(2, 8), Flavor(4, 8), Flavor(4, 16))
LARGEST = max(flavor.memory_gib for flavor in MIXED)


@dataclass(frozen=True)
class Profile:
    """`percent` of the cluster's VMs; `sizes`: fewest and most VMs of one group, where zones or nodes allow as many."""

    name: str
    percent: int
    owner: Owner
    sizes: tuple[int, int]
    flavors: tuple[Flavor, ...] = SMALL
    pool: Pool = Pool.GENERAL
    apart: Apart | None = None
    even_zones: bool = False
    eviction: str = "LiveMigrate"
    obstacle: Obstacle | None = None
    shared_disk: bool = False
    priority: str = ""


PROFILES = (
    Profile("web", 10, Owner.REPLICA_SET, (2, 6), apart=Apart(HOST, ignore_own_pods=True)),
    Profile("queue", 8, Owner.VM, (2, 5), apart=Apart(HOST)),
    Profile("quorum", 8, Owner.REPLICA_SET, (2, 5), apart=Apart(ZONE, ignore_own_pods=True)),
    Profile("ledger", 6, Owner.REPLICA_SET, (2, 5), apart=Apart(ZONE)),
    Profile("worker", 10, Owner.VM, (2, 8), flavors=MIXED, apart=Apart(HOST, required=False)),
    Profile("edge", 5, Owner.REPLICA_SET, (3, 9), even_zones=True),
    Profile("analytics", 6, Owner.VM, (1, 4), flavors=MIXED, pool=Pool.HIGH),
    Profile("billing", 8, Owner.VM, (1, 6), pool=Pool.DEDICATED, priority="important"),
    Profile("files", 8, Owner.VM, (1, 4), shared_disk=True),
    Profile("batch", 5, Owner.REPLICA_SET, (1, 6), eviction="None"),
    Profile("legacy", 3, Owner.VM, (1, 3), eviction="LiveMigrateIfPossible", obstacle=Obstacle.BRIDGE),
    Profile("store", 4, Owner.VM, (1, 3), obstacle=Obstacle.DISK),
    Profile("render", 2, Owner.VM, (1, 2), eviction="LiveMigrateIfPossible", pool=Pool.GPU, obstacle=Obstacle.GPU),
)
# Takes the VMs that are left over, also those of profiles for which the cluster is too small.
PLAIN = (
    Profile("office", 0, Owner.VM, (1, 10), flavors=MIXED),
    Profile("lab", 0, Owner.REPLICA_SET, (1, 10), flavors=MIXED),
)

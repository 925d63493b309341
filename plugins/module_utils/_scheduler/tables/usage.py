# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pods on the nodes take of them: resources, host ports, disks, claims and CSI volumes.

Follows pkg/scheduler/framework/types.go (NodeInfo). Everything sparse is kept by what is used, not by node, so that a
question about one port or one claim does not look at the nodes that do not have it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import CsiVolume
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import (
    ANY_ADDRESS,
    Disk,
    HostPort,
    Occupant,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.storage_table import StorageTable


class ResourceUsage:
    """Arrays over nodes, and how many pods each has."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._requested: dict[str, IntArray] = {}
        self.pods: IntArray = self._zeros()
        self.assumed_cpu: IntArray = self._zeros()
        self.assumed_memory: IntArray = self._zeros()

    def requested(self, resource: str) -> IntArray:
        amounts = self._requested.get(resource)
        if amounts is None:
            amounts = self._requested[resource] = self._zeros()
        return amounts

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        for resource, amount in occupant.requests.items():
            self.requested(resource)[node] += change * amount
        self.assumed_cpu[node] += change * occupant.assumed_cpu
        self.assumed_memory[node] += change * occupant.assumed_memory
        self.pods[node] += change

    def _zeros(self) -> IntArray:
        return np.zeros(self._nodes, dtype=np.int64)


class PortUsage:
    """Host ports in use: by protocol and number, the nodes, and on them the addresses."""

    def __init__(self) -> None:
        self._used: defaultdict[tuple[str, int], dict[int, Counter[str]]] = defaultdict(dict)

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        for port in occupant.ports:
            nodes = self._used[port.protocol, port.port]
            addresses = nodes.setdefault(node, Counter())
            addresses[port.address] += change
            if not addresses[port.address]:
                del addresses[port.address]
            if not addresses:
                del nodes[node]

    def conflicting(self, wanted: Iterable[HostPort]) -> set[int]:
        """Nodes where one of the ports is taken, on the same address or by someone who listens on all."""
        return {
            node
            for port in wanted
            for node, addresses in self._used.get((port.protocol, port.port), {}).items()
            if port.address == ANY_ADDRESS or port.address in addresses or ANY_ADDRESS in addresses
        }


class VolumeUsage:
    """Which disks named in pods, and which claims, are in use, and on which nodes."""

    def __init__(self) -> None:
        self._disks: defaultdict[tuple[str, ...], Counter[tuple[int, Disk]]] = defaultdict(Counter)
        self._claims: Counter[tuple[str, str]] = Counter()

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        for disk in occupant.volumes.disks:
            self._disks[disk.identity][node, disk] += change
        for claim in occupant.volumes.claims:
            if not claim.ephemeral:
                self._claims[occupant.namespace, claim.name] += change

    def conflicting(self, wanted: Iterable[Disk]) -> set[int]:
        """Nodes with a pod that does not share one of the disks."""
        return {
            node
            for disk in wanted
            for (node, used), count in self._disks.get(disk.identity, Counter()).items()
            if count and disk.conflicts(used)
        }

    def is_claim_used(self, namespace: str, name: str) -> bool:
        return self._claims[namespace, name] > 0


class AttachedVolumes:
    """The CSI volumes on each node: those of its pods, and those still attached to it.

    A volume counts once for a node, however many pods use it there, and whether or not it is attached too.
    """

    def __init__(self, nodes: NodeTable, storage: StorageTable) -> None:
        self._size = len(nodes)
        self._storage = storage
        self._counts: dict[str, IntArray] = {}
        self._users: defaultdict[CsiVolume, Counter[int]] = defaultdict(Counter)
        self._strangers: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._attached = {
            (nodes.index[attachment.node], attachment.volume)
            for attachment in storage.attachments
            if attachment.node in nodes.index
        }
        for node, volume in self._attached:
            self.count(volume.driver)[node] += 1

    def count(self, driver: str) -> IntArray:
        """Volumes of a driver on each node."""
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = np.zeros(self._size, dtype=np.int64)
        return counts

    def users(self, volume: CsiVolume) -> list[int]:
        """Nodes with a pod that uses a volume."""
        return [node for node, pods in self._users.get(volume, Counter()).items() if pods]

    def of(self, occupant: Occupant) -> Iterator[CsiVolume]:
        """The CSI volumes a pod uses, each once. Claims that do not exist are left out."""
        found = set(occupant.volumes.inline)
        for reference in occupant.volumes.claims:
            claim = self._storage.claims.get((occupant.namespace, reference.name))
            volume = None if claim is None else self._storage.csi_volume(claim)
            if volume is not None:
                found.add(volume)
        yield from found

    def strangers(self) -> dict[str, list[int]]:
        """Generic ephemeral claims that pods use but do not own, with the nodes of these pods."""
        found = {claim: [node for node, pods in nodes.items() if pods] for claim, nodes in self._strangers.items()}
        return {claim: nodes for claim, nodes in found.items() if nodes}

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        for volume in self.of(occupant):
            users = self._users[volume]
            before = users[node]
            users[node] += change
            if (before > 0) != (users[node] > 0) and (node, volume) not in self._attached:
                self.count(volume.driver)[node] += change
        for reference in occupant.volumes.claims:
            claim = self._storage.claims.get((occupant.namespace, reference.name))
            if claim is not None and reference.ephemeral and not claim.is_owned_by(occupant.uid):
                self._strangers[f"{claim.namespace}/{claim.name}"][node] += change

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pods on the nodes take of them: amounts of resources, host ports, disks and claims.

Follows pkg/scheduler/framework/types.go (NodeInfo). Everything sparse is kept by what is used, not by node, so that a
question about one port or one claim does not look at the nodes that do not have it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import ANY_ADDRESS, HostPort, Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.volumes import Disk


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

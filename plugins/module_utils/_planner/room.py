# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of what VMs need there is room for where they can go, as an estimate: memory, and no rules among VMs.

What is possible in truth, only a plan tells. The estimate costs next to nothing, so that every node can be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VMI, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, FloatArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Object, controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as pod_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.bound import Region, regions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground

_MEBIBYTE = 2.0**20


class Room:
    """What the VMs of some nodes need, in MiB of memory; VMs that can go to the same nodes are of one kind."""

    def __init__(self, ground: Ground, nodes: Sequence[str], bound: frozenset[str] = frozenset()) -> None:
        """bound: VMs, as namespace/name, that need no room as they migrate nowhere."""
        self._ground, self._nodes, self._bound = ground, nodes, bound
        self._index = {name: number for number, name in enumerate(nodes)}
        self._kinds: dict[bytes, int] = {}
        self._reaches: BoolArray = np.zeros((0, len(ground.state.nodes)), dtype=np.bool_)
        # From here on arrays over the nodes and kinds of VMs, or kinds alone.
        self._needs: FloatArray = np.zeros((len(nodes), 0))
        self._within: FloatArray = np.zeros((0, 0))
        self._counts: FloatArray = np.zeros(len(nodes))
        self._vms: dict[str, list[tuple[str, int]]] = {}
        # Of pods that were looked at, by namespace/name: the kind, and the bytes of memory.
        self._read: dict[str, tuple[Object, int, int]] = {}
        for name in nodes:
            self.look(name)

    def look(self, name: str) -> None:
        """Take a node as it is now."""
        number = self._index[name]
        machines = [raw for raw in self._ground.pods_on([name]) if self._needs_room(raw)]
        needs: Counter[int] = Counter()
        self._vms[name] = []
        for raw in machines:
            kind, memory = self._look_at(raw)
            needs[kind] += memory
            self._vms[name].append((_vm_of(raw), kind))
        self._needs[number] = 0
        for kind, amount in needs.items():
            self._needs[number, kind] = amount / _MEBIBYTE
        self._counts[number] = len(machines)

    def _look_at(self, raw: Object) -> tuple[int, int]:
        known = self._read.get(title(raw))
        if known is None or known[0] is not raw:
            found, table = pod_of(_unpinned(raw)), self._ground.state.nodes
            reach = table.admitted_by_affinity(found.node_affinity) & table.tolerable(found.tolerations)
            known = self._read[title(raw)] = raw, self._kind(reach), found.occupant.requests.get(MEMORY, 0)
        return known[1:]

    def estimate(self, left: Collection[str]) -> Estimate:
        """left: nodes that are still to be maintained, which are not to be counted on."""
        state = self._ground.state
        capacity = state.nodes.allocatable(MEMORY) / _MEBIBYTE
        free: FloatArray = np.maximum(capacity - state.resources.requested(MEMORY) / _MEBIBYTE, 0)
        numbers = [state.nodes.index[name] for name in self._nodes]
        own = self._reaches[:, numbers].T.astype(np.float64)
        reaches = self._reaches.astype(np.float64)
        lasting: FloatArray = np.where(state.nodes.named(left), 0, free)
        return Estimate(
            needs=self._needs @ self._within,
            lasting=reaches @ lasting,
            free=reaches @ free,
            frees=own * free[numbers][:, None],
            gives=own * capacity[numbers][:, None],
            counts=self._counts,
        )

    def _needs_room(self, raw: Object) -> bool:
        return (controller(raw) or {}).get("kind") == VMI and _vm_of(raw) not in self._bound

    def regions(self) -> list[Region]:
        """Nodes that VMs cannot leave, all of which are to be looked at here."""
        return regions(self._ground.state.nodes.names, list(self._reaches), self._vms)

    def _kind(self, reach: BoolArray) -> int:
        """Its number. Whoever can go to some of the nodes only takes room from those who can go to all of them."""
        key = reach.tobytes()
        if key not in self._kinds:
            self._kinds[key] = len(self._kinds)
            self._reaches = np.vstack([self._reaches, reach])
            self._needs = np.hstack([self._needs, np.zeros((len(self._nodes), 1))])
            beyond = [[(mine & ~other).any() for other in self._reaches] for mine in self._reaches]
            self._within = 1.0 - np.array(beyond, dtype=np.float64)
        return self._kinds[key]


@dataclass(frozen=True, slots=True)
class Choice:
    """A node to take next. `place`: its place among those that were asked about.

    short: there is not room enough anywhere. regret: how much would find room for good if it were left to the next
    batch, and does not now.
    """

    place: int
    short: bool
    regret: float


class Estimate:
    """How much finds room if nodes are drained together, as more and more are taken. Arrays are by kinds of VMs."""

    def __init__(
        self,
        *,
        needs: FloatArray,
        lasting: FloatArray,
        free: FloatArray,
        frees: FloatArray,
        gives: FloatArray,
        counts: FloatArray,
    ) -> None:
        """needs: of each node. free: what is free in all, of which what is lasting is on nodes that are not drained.

        Of each node: frees, what it has of that; gives, what it has once it is back; counts, of VMs.
        """
        self._needs, self._lasting, self._free = needs, lasting, free
        self._frees, self._gives, self._counts = frees, gives, counts
        self._taken: FloatArray = np.zeros(len(lasting))
        self._back: FloatArray = np.zeros(len(lasting))

    def best(self, numbers: Sequence[int]) -> Choice:
        """Which of these nodes to take: with room enough, the least regret, most room for good, fewest VMs."""
        chosen = list(numbers)
        needs = self._needs[chosen]
        beyond: BoolArray = (needs > 0) & (self._taken + needs > self._free - self._frees[chosen])
        short: BoolArray = np.any(beyond, axis=1)
        lasting = np.maximum(self._lasting - self._taken, 0)
        now: FloatArray = np.maximum(needs - lasting, 0).sum(axis=1).round()
        then: FloatArray = np.maximum(needs - lasting - self._back, 0).sum(axis=1).round()
        first = int(np.lexsort((np.array(numbers), self._counts[chosen], now, now - then, short))[0])
        return Choice(first, bool(short[first]), float((now - then)[first]))

    def take(self, number: int) -> None:
        self._taken = self._taken + self._needs[number]
        self._free = self._free - self._frees[number]
        self._back = self._back + self._gives[number]


def _vm_of(raw: Object) -> str:
    """namespace/name of the VMI of a launcher pod."""
    return f"{raw['metadata'].get('namespace') or 'default'}/{(controller(raw) or {}).get('name')}"


def _unpinned(raw: Object) -> Object:
    """A launcher pod without the host name by which its migration was pinned."""
    selector = raw["spec"].get("nodeSelector") or {}
    left = {key: value for key, value in selector.items() if key != HOSTNAME}
    return {**raw, "spec": {**raw["spec"], "nodeSelector": left}} if len(left) < len(selector) else raw

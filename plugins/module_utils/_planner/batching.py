# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes of a run had best be out of service together next, before it is tried whether that is possible.

A VM is moved once if there is room for it on a node that is maintained already, or is not to be; otherwise it is moved
again later. So nodes come first whose VMs find such room; where there is none yet, the one with the fewest VMs opens it
for the others. Nodes whose VMs would find it only after the batch are left to the next one.

How much room there is of what VMs need, where they can go, is an estimate: of memory, and without rules among VMs. What
is possible in truth, only a plan tells. The estimate costs next to nothing, so that every node can be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, FloatArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    HOSTNAME,
    VMI,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as pod_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.bound import Region, regions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules

# Of each of these KubeVirt needs one that runs.
_COMPONENTS = ("virt-api", "virt-controller")
_MEBIBYTE = 2.0**20


class Batching:
    """`left`: names of the nodes that are still to be maintained, in the order in which they were given.

    `regions`: nodes that VMs cannot leave, as it is before the run. bound: VMs, as namespace/name, that migrate nowhere
    in any case.
    """

    def __init__(
        self, ground: Ground, nodes: Sequence[str], rules: BatchRules, bound: frozenset[str] = frozenset()
    ) -> None:
        self._ground, self._rules = ground, rules
        self.left = list(nodes)
        self._position = {name: number for number, name in enumerate(nodes)}
        self._room = Room(ground, nodes, bound)
        self.regions = self._room.regions()
        self._components = {name: Counter(_component(ground, name)) for name in ground.nodes}
        caps = ground.cluster.configuration.migrations
        # More nodes would only share the migrations that KubeVirt lets run at once.
        self._most = rules.size or max(1, -(-caps.parallel_per_cluster // max(1, caps.parallel_outbound_per_node)))
        self._group = ""

    def proposal(self, put_off: Collection[str] = (), most: int | None = None) -> list[str]:
        """The nodes of the next batch, in the order in which they were given; none if all are put off.

        most: how many nodes, if fewer than otherwise.
        """
        chosen: list[str] = []
        open_nodes = self._in_turn()
        if put_off:
            open_nodes = [name for name in open_nodes if name not in put_off]
        estimate = self._room.estimate(self.left) if self._rules.free else None
        while len(chosen) < min(self._most, most or self._most):
            joining = (name for name in open_nodes if self._may_join(name, chosen))
            # In a given order the next one is enough: not all that are left, each time.
            candidates = list(joining) if estimate else list(islice(joining, 1))
            if not candidates:
                break
            if not estimate:
                chosen += candidates
                continue
            best = estimate.best([self._position[name] for name in candidates])
            if chosen and (best.short or (self._rules.size is None and best.regret > 0)):
                break
            chosen.append(candidates[best.place])
            estimate.take(self._position[chosen[-1]])
        return sorted(chosen, key=self._position.__getitem__)

    def opening(self, begun: Sequence[str]) -> list[str]:
        """A batch of nodes that are out of service already, as far as they may be in one; in a given order filled up.

        In a free one nobody has tried whether others can be emptied with them.
        """
        most, chosen = self._rules.size or len(begun), list[str]()
        for name in begun:
            if len(chosen) < most and self._may_join(name, chosen):
                chosen.append(name)
        if not self._rules.free and len(chosen) == len(begun):
            for name in self._in_turn():
                if len(chosen) < self._most and self._may_join(name, chosen):
                    chosen.append(name)
        return sorted(chosen, key=self._position.__getitem__)

    def done(self, nodes: Collection[str], touched: Iterable[str]) -> None:
        """Nodes are maintained. touched: those, and all that something has come to."""
        if self._rules.together:
            self._group = self._value(next(iter(nodes)), self._rules.together)
        self.left = [name for name in self.left if name not in nodes]
        for name in touched:
            self._components[name] = Counter(_component(self._ground, name))
            if name in self._position:
                self._room.look(name)

    def _in_turn(self) -> list[str]:
        """Those that may come next."""
        rules, found = self._rules, self.left
        if rules.first or rules.last:
            early = [name for name in found if name in rules.first]
            found = early or [name for name in found if name not in rules.last] or found
        same = [name for name in found if self._value(name, rules.together) == self._group] if rules.together else []
        return same or found

    def _may_join(self, name: str, chosen: Sequence[str]) -> bool:
        if name in chosen:
            return False
        if any(self._value(name, key) and self._value(name, key) == self._value(other, key)
               for key in self._rules.apart for other in chosen):  # fmt: skip
            return False
        together = self._rules.together
        if together and any(self._value(name, together) != self._value(other, together) for other in chosen):
            return False
        return not chosen or not any(self._would_end(component, {*chosen, name}) for component in _COMPONENTS)

    def _would_end(self, component: str, nodes: Collection[str]) -> bool:
        return any(self._components[name][component] for name in nodes) and not any(
            found[component] for name, found in self._components.items() if name not in nodes
        )

    def _value(self, name: str, key: str) -> str:
        table = self._ground.state.nodes
        return table.nodes[table.index[name]].labels.get(key, "")


def _component(ground: Ground, node: str) -> list[str]:
    """Of KubeVirt's own components, those that a node has, once for each of their pods."""
    namespace = ground.cluster.configuration.namespace
    metadata = (raw["metadata"] for raw in ground.pods_on([node]))
    names = ((entry.get("labels") or {}).get("kubevirt.io") for entry in metadata if entry["namespace"] == namespace)
    return [name for name in names if name in _COMPONENTS]


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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would be left if something failed while a batch is away: memory for the VMs of one more node, or zone.

It is an estimate: memory alone, wherever it is free, and no rules among VMs. Only nodes count that VMs can come to.
While a batch is emptied ever more of the memory of other nodes is taken, so that the least is left when it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, FloatArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    NO_RESERVE,
    Blocked,
    ObjectReference,
    Obstacle,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Solution
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import Failing
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import residents

_ZONE = "topology.kubernetes.io/zone"
_GIBIBYTE = 2**30


@dataclass(frozen=True, slots=True)
class Reserve:
    """`bytes`: of memory, free when the VMs of `lost` run elsewhere, a node or zone; negative if they do not all."""

    bytes: int
    lost: str


class MachineMemory:
    """Bytes of memory that VMs take of each node, by the nodes' numbers."""

    def __init__(self, ground: Ground) -> None:
        """In proportion to all pods."""
        self._ground = ground
        nodes = ground.state.nodes
        self._serving: BoolArray = np.array(
            [node.labels.get(SCHEDULABLE) == "true" for node in nodes.nodes], dtype=np.bool_
        )
        self._taken: IntArray = np.zeros(len(nodes), dtype=np.int64)
        self._failing: dict[Failing, tuple[IntArray, list[str]]] = {}
        self.look(nodes.names)

    def look(self, nodes: Iterable[str]) -> None:
        """Take these nodes as they are on the ground now. Who is on its way is where it comes from.

        Who only starts comes from nowhere: it is where its pod is.
        """
        state, workloads = self._ground.state, self._ground.cluster.workloads
        for name in nodes:
            machines = residents(self._ground.pods_on([name]), workloads).machines
            here = (machine.id for machine in machines if not machine.migrating_in and machine.id in state)
            self._taken[state.nodes.index[name]] = sum(_memory(state.placement(key).occupant) for key in here)

    def reserve(self, solution: Solution, failing: Failing) -> Reserve | None:
        """The least there is once a batch is empty; None if no node is left. Its board is at the end of its waves."""
        state, nodes = self._ground.state, self._ground.state.nodes
        serving = self._serving & ~nodes.unschedulable
        if not serving.any():
            return None
        capacity, requested = nodes.allocatable(MEMORY), state.resources.requested(MEMORY)
        free: FloatArray = np.where(serving, np.maximum(capacity - requested, 0), 0).astype(np.float64)
        taken: FloatArray = np.where(serving, self._after(solution), 0).astype(np.float64)
        if failing not in self._failing:
            self._failing[failing] = self._groups(failing)
        groups, names = self._failing[failing]
        left = free.sum() - np.bincount(groups, free) - np.bincount(groups, taken)
        left = np.where(np.bincount(groups, serving) > 0, left, np.inf)
        worst = int(np.argmin(left))
        return Reserve(int(left[worst]), names[worst])

    def _after(self, solution: Solution) -> IntArray:
        """When all that leaves has left, and runs where it goes to."""
        index, taken = self._ground.state.nodes.index, self._taken.copy()
        machines = {machine.id for machine in solution.scene.residents.machines}
        for step in solution.steps:
            mover = step.mover
            if mover.id in machines:
                taken[index[mover.source]] -= sum(map(_memory, mover.leaving[:1]))
                if step.node is not None and mover.newcomer is not None:
                    taken[index[step.node]] += _memory(mover.newcomer.occupant)
        return taken

    def _groups(self, failing: Failing) -> tuple[IntArray, list[str]]:
        """The number of what each node fails with, and what these are called; a node without a zone fails alone."""
        nodes = self._ground.state.nodes.nodes
        names = [node.labels.get(_ZONE) if failing is Failing.ZONE else None for node in nodes]
        called = [f"zone {name}" if name else f"node {node.name}" for name, node in zip(names, nodes, strict=True)]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(called))}
        return np.array([numbers[name] for name in called], dtype=np.int64), list(numbers)


def unreserved(solution: Solution, reserve: Reserve | None, failing: Failing) -> Iterator[Blocked]:
    """That the nodes of a batch cannot be away together, if so much is not left then as is to be."""
    if failing is Failing.NONE or (reserve is not None and reserve.bytes >= 0):
        return
    missing = "no other node takes VMs"
    if reserve is not None:
        missing = (
            f"if {reserve.lost} fails then, {-reserve.bytes / _GIBIBYTE:.1f} GiB of memory are missing for its VMs"
        )
    what = "the VMs of one more zone" if failing is Failing.ZONE else "the VMs of any one more node"
    obstacle = Obstacle(NO_RESERVE, f"while its batch is away there is no memory in reserve for {what}")
    for name in solution.scene.nodes:
        node = solution.scene.cluster.workloads.node(name)
        uid = str((node or {"metadata": {}})["metadata"].get("uid") or "")
        yield Blocked(ObjectReference("Node", "", name, uid), name, (missing,), obstacle=obstacle)


def _memory(occupant: Occupant) -> int:
    return occupant.requests.get(MEMORY, 0)

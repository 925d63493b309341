# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for VMs that find no node: others, on nodes that stay in service, move out of their way, as few as will do.

Who that is, is guessed on the board as it is when all have left who can. Whether it is right the drain tells, which is
solved anew with them. Nobody makes room for who makes room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.course import Course
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    Scene,
    Solution,
    course_of,
    finish,
    movers,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import residents
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

# Of each VM that finds no node so many nodes are looked at, and of each node so many VMs that could leave it alone.
_MOST_NODES, _MOST_ALONE = 16, 12

# A drain made ready with VMs that make room, by namespace/name, and the drained nodes for whose sake.
_Prepared = Callable[[Mapping[str, str]], Scene]


def solved(prepared: _Prepared, ground: Ground, profile: Profile, most: int) -> Solution:
    """How everything leaves that can, if so many VMs at most make room for others. It raises as `plan_drain` does."""
    scene = prepared({})
    course = _moved(scene, profile)
    stuck = [mover for mover in course.stuck if mover.chosen]
    helping = _Search(scene, ground, profile).helping(stuck, most) if stuck and most > 0 else {}
    if not helping:
        return finish(scene, course)
    scene.board.clear()
    scene = prepared(helping)
    course = _moved(scene, profile)
    left = {mover.key for mover in course.stuck if mover.chosen}
    if len(left) >= len(stuck) or not left.isdisjoint(helping):
        scene.board.clear()
        scene = prepared({})
        course = _moved(scene, profile)
    return finish(scene, course)


def _moved(scene: Scene, profile: Profile) -> Course:
    course = course_of(scene, profile)
    course.move(movers(scene))
    return course


class _Search:
    """The board of the scene is at the end of what can leave, and is so again when this is over."""

    def __init__(self, scene: Scene, ground: Ground, profile: Profile) -> None:
        self._scene, self._board, self._ground, self._profile = scene, scene.board, ground, profile
        self._gone: set[str] = set()
        self._neighbours: dict[str, list[Mover]] = {}

    def helping(self, stuck: Sequence[Mover], most: int) -> dict[str, str]:
        """By namespace/name who makes room, and the drained node for whose sake. stuck: who finds no node."""
        found: dict[str, str] = {}
        moved: list[Mover] = []
        for mover in sorted(stuck, key=lambda mover: (-_memory(mover), mover.key)):
            chosen = self._makers_of_room(mover, most - len(found))
            found |= {other.key: mover.source for other in chosen}
            moved += [*chosen, mover] if chosen else []
            self._gone.update(other.id for other in chosen)
        self._board.reset(moved)
        return found

    def _makers_of_room(self, mover: Mover, most: int) -> list[Mover]:
        """On the node that takes the fewest, who leaves it so that somebody fits; all of them are moved then."""
        for count in range(1, most + 1):
            for node in self._nodes(mover):
                for group in self._groups(mover, node, count):
                    if self._fits_without(mover, node, group):
                        return group
        return []

    def _nodes(self, mover: Mover) -> list[str]:
        """Where it could go but for who is there; those that lack the least memory first, avoided ones last."""
        state = self._board.state
        places = np.flatnonzero(self._board.reach(mover.newcomer) & self._board.pinnable)
        lacking = np.maximum(_memory(mover) - self._free(), 0)[places]
        order = np.lexsort((places, lacking, self._board.avoid[places]))[:_MOST_NODES]
        return [state.nodes.names[places[index]] for index in order]

    def _groups(self, mover: Mover, node: str, count: int) -> Iterator[list[Mover]]:
        """Who could leave a node: the smallest that do, each alone; of several together the largest."""
        there = [other for other in self._on(node) if other.id not in self._gone]
        lacking = _memory(mover) - int(self._free()[self._board.state.nodes.index[node]])
        if count == 1:
            yield from ([other] for other in [each for each in there if _memory(each) >= lacking][:_MOST_ALONE])
        elif len(there) >= count:
            yield there[-count:]

    def _fits_without(self, mover: Mover, node: str, group: Sequence[Mover]) -> bool:
        """Whether somebody fits a node that others leave, and they fit elsewhere then. If so, they are moved."""
        board = self._board
        for other in group:
            board.put(other, Stage.AFTER)
        if board.legal(mover, node):
            board.put(mover, Stage.AFTER, node)
            if all(self._go(other) for other in group):
                return True
        board.reset([mover, *group])
        return False

    def _go(self, mover: Mover) -> bool:
        options = self._board.options(mover, self._profile)
        if options:
            self._board.put(mover, Stage.AFTER, options[0].node)
        return bool(options)

    def _on(self, node: str) -> list[Mover]:
        """The VMs of a node that can be migrated and are not on their way, the smallest first."""
        if node not in self._neighbours:
            cluster, state = self._scene.cluster, self._board.state
            there = residents(self._ground.pods_on([node]), cluster.workloads).machines
            ways = (migration(replace(machine, helps=node), cluster, state, None) for machine in there)
            found = [way for way in ways if isinstance(way, Mover)]
            self._neighbours[node] = sorted(found, key=lambda mover: (_memory(mover), mover.key))
        return self._neighbours[node]

    def _free(self) -> IntArray:
        """Memory of each node, in bytes; less than nothing where more is asked for than there is."""
        state = self._board.state
        return state.nodes.allocatable(MEMORY) - state.resources.requested(MEMORY)


def _memory(mover: Mover) -> int:
    return mover.newcomer.occupant.requests.get(MEMORY, 0) if mover.newcomer is not None else 0

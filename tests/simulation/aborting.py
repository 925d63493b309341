# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of the model is given up as `Undoing` of `_cluster` does it, while its drain goes on until it hears of that."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.run_traces import RunTraces
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.undoing import Undoing
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

from simulation import controllers, requests
from simulation.chances import Died
from simulation.process import ModelClock
from simulation.returning import Return
from simulation.sight import see_migration
from simulation.world import NAMESPACE, OURS, RUN, Moving, World

# Seconds that it waits, and steps that it takes for what was stopped for a node.
_PATIENCE, _STEPS = 8.0, 12


class Abort(Undoing):
    """dies: before so many of its deeds; None if it does not. `between`: goes on with everything else for a while."""

    def __init__(self, world: World, between: Callable[[], None], dies: int | None) -> None:
        client: Any = _Cancelling(world)
        super().__init__(client, RUN, NAMESPACE, _PATIENCE, self._may, _Waiting(world, between))
        self._world = world
        self._between = between
        self._dies = dies
        self._first: list[str] | None = None

    def carry_out(self) -> None:
        """Raises Died. At its end nothing of the run is left; or what it has found is named, as far as that is left."""
        undone = self.undo()
        left = self._traces().lines()
        if undone.problems:
            left = [line for line in left if line in (self._first or ()) and not line.startswith("VMs stopped")]
            names = " ".join(undone.problems)
            left = [line for line in left if line.partition(" ")[2] not in names]
        assert not left, f"{left} is left of the run, but not named by {undone.problems}"

    def _may(self) -> None:
        if self._dies is not None:
            self._dies -= 1
            if self._dies < 0:
                raise Died

    def _find(self) -> RunTraces:
        """What comes after that, of a drain that has not heard yet, it can only find by another look."""
        traces = self._traces()
        self._first = self._first or traces.lines()
        self._found = {migration.uid for migration in traces.migrations}
        if traces.lines():
            self._between()
        return traces

    def _traces(self) -> RunTraces:
        world = self._world
        unfinished = (entry for entry in world.migrations.values() if entry.ours and entry.unfinished)
        return RunTraces(
            migrations=tuple(map(see_migration, unfinished)),
            nodes=tuple(node for node, whose in world.cordons.items() if whose == OURS),
            kept=(),
            leases=(),
            stopped_for=tuple(sorted({node for owner in world.owners.values() for node in owner.stopped_for})),
            done=(),
        )

    def _node_of(self, migration: Migration) -> str:
        vmi = self._world.vmi(migration.vmi)
        return vmi.node if vmi is not None else ""

    def _is_under_way(self, migration: Migration) -> bool:
        moving = self._world.migrations.get(migration.uid)
        return moving is not None and moving.unfinished

    def _give_back(self, node: str) -> None:
        """Nothing moves any more of what was found, so that nothing comes to a node that is about to be free."""
        self._require()
        moving = [self._world.migrations.get(uid) for uid in self._found]
        names = " ".join(self.undone.problems)
        still = [entry for entry in moving if entry is not None and entry.unfinished and entry.name not in names]
        assert not still, f"{node} is given back while {still} is under way"
        assert self._world.cordons[node] == OURS, f"{node} is somebody else's"
        del self._world.cordons[node]
        self._world.uncordoned_at[node] = self._world.now
        self.undone.given_back.append(node)

    def _start(self, nodes: Collection[str], seconds: float) -> None:
        """In turn, as often as there is time for."""
        if not nodes:
            return
        self._require()
        tasks = [Return(self._world, node) for node in nodes]
        for _step in range(_STEPS):
            for task in tasks:
                task.tick()
            self._between()
        waiting = [
            owner.name for owner in self._world.owners.values() if not owner.stopped_for.keys().isdisjoint(nodes)
        ]
        self.undone.problems += [f"{name} does not run again" for name in waiting]


class _Cancelling:
    """Of a client what cancels migrations."""

    def __init__(self, world: World) -> None:
        self._world = world

    def guarded(self, _may: Callable[[], None]) -> _Cancelling:
        return self

    def setting_aside(self) -> _Cancelling:
        return self

    def delete(self, _path: str, _attempted: str, uid: str, *, dry_run: bool) -> None:
        moving: Moving | None = self._world.migrations.get(uid)
        if moving is not None and not dry_run:
            assert moving.ours, f"{moving} is somebody else's"
            requests.delete(self._world, moving)


class _Waiting(ModelClock):
    """Who waits lets everything else go on."""

    def __init__(self, world: World, between: Callable[[], None]) -> None:
        super().__init__(world)
        self._between = between

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._between()


def abort(world: World, between: Callable[[], None], dies: int | None, choices: bytes) -> None:
    """Once more where it dies, as whoever wants a run to be given up does. choices: of what happens meanwhile."""
    course = iter(choices)

    def goes_on() -> None:
        choice = next(course, 0)
        for _step in range(choice & 3):
            controllers.take(world, choice >> 3)
        if choice & 4:
            between()

    try:
        Abort(world, goes_on, dies).carry_out()
    except Died:
        world.happened["an abort dies"] += 1
        Abort(world, goes_on, None).carry_out()

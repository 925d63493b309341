# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process that empties a node leaves in the cluster for the next one, as the `DrainMemory` of `_module` does.

That one writes through a run's Lease and a thread of its own, which would not stand still where the model wants it to;
what is remembered, its text, and what is made of it are of `memory`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import Remembered
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record

from simulation.world import World

# Seconds after which what can wait is written again.
_PAUSE = 5.0


@dataclass
class Notes:
    """known: what is, or is to be, remembered of the node."""

    world: World
    node: str
    invocation: int
    known: Remembered
    _next: float = 0.0

    @classmethod
    def begin(cls, world: World, node: str, invocation: int) -> Notes:
        return cls(world, node, invocation, _read(world, node))

    def epochs(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: f"{self.world.epochs[node]}/{_read(self.world, node).reported}" for node in nodes}

    def recall(self, record: Record, now: float) -> Record:
        return record if self.known.is_empty else memory.recall(record, self.known, now)

    def keep(self, record: Record) -> None:
        """What was interrupted never waits."""
        found = memory.remembered(record, self.node, self.known.epoch)
        begun = {entry.uid for entry in found.interruptions} - {entry.uid for entry in self.known.interruptions}
        self.known = replace(found, reported=self.known.reported)
        if begun or self.world.now >= self._next:
            self.write()

    def write(self) -> None:
        """Unless another invocation has the run."""
        if self.world.holder == self.invocation:
            self.world.saved[self.node] = self.known
            self._next = self.world.now + _PAUSE

    def end(self, record: Record, *, is_done: bool) -> None:
        """Of a drain that is done nothing has to be remembered; else its failures are told, and count no more."""
        known = self.known
        if is_done:
            self.known = Remembered(self.node, known.epoch)
        else:
            found = memory.remembered(record, self.node, known.epoch)
            self.known = replace(found, migrations=(), reported=known.reported + 1)
        self.write()


def forget(world: World, node: str) -> None:
    """What has happened so far; how often it has failed to be emptied is in the names of migrations."""
    if (known := world.saved.get(node)) is not None:
        world.saved[node] = Remembered(node, known.epoch, reported=known.reported)


def _read(world: World, node: str) -> Remembered:
    """Of this maintenance of the node."""
    epoch, saved = world.epochs[node], world.saved.get(node)
    known = memory.decode(memory.encode(saved)) if saved and not saved.is_empty else saved
    return known if known and known.epoch == epoch else Remembered(node, epoch)

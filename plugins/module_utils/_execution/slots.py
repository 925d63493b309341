# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migrations may begin now: KubeVirt's caps, shared by the processes that empty the nodes of a batch.

KubeVirt queues what is above its caps, but looks at its queue only every few seconds, and the caps' places stay empty
that long. So no migration is begun above them, and who begins the next one is settled by the plan's order: each process
sees all migrations of the batch, and leaves a place to another node's VM that comes before its own. A process may be
busy, or gone; a place that nobody takes for a while is anybody's, and who has not taken it is not waited for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan

# Seconds for which a place is kept for another process.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class MigrationCaps:
    """Migrations in flight at most: in the cluster, and away from one node."""

    cluster: int
    outbound: int


@dataclass(frozen=True, slots=True)
class Courtesy:
    """since: when a place was first left to others that they have not taken yet, in seconds since the epoch; 0: none.

    absent: titles of VMs of others that have not taken theirs.
    """

    since: float = 0.0
    absent: frozenset[str] = frozenset()


class Slots:
    """Counts migrations in flight: those of the run, and those about to be begun.

    entries: of this process, by action. `courtesy`: after all have asked.
    """

    def __init__(
        self,
        plan: Plan,
        entries: Mapping[str, Entry],
        look: Observation,
        caps: MigrationCaps | None,
        courtesy: Courtesy,
    ) -> None:
        self._caps = caps
        self._courtesy = courtesy
        self._left_to: set[str] = set()
        self._closed_from = len(plan.actions)
        own = [entry for entry in entries.values() if isinstance(entry, Migrating)]
        migrations = [action for action in plan.actions if action.kind is ActionKind.MIGRATE]
        homes = {action.object.title: action.source or action.node for action in migrations}
        homes |= {entry.title: entry.source_node for entry in own}
        flying = {title for title, found in look.migrations.items() if any(each.unfinished for each in found)}
        flying |= {entry.title for entry in own if _takes_a_place(entry)}
        self._total = len(flying)
        self._sources = Counter(homes[title] for title in flying if title in homes)
        # The record was lost, and the plan has forgotten them since: they may have left any node.
        self._from_anywhere = sum(title not in homes for title in flying)
        self._turns = {action.id: turn for turn, action in enumerate(migrations)}
        self._rivals = _rivals(migrations, entries, look, courtesy.absent) if caps else []

    def admits(self, entry: Migrating) -> bool:
        """Whether it may begin, as far as others are concerned."""
        caps = self._caps
        if caps is None:
            return True
        kept = int(_takes_a_place(entry))
        free = caps.cluster - self._total + kept
        if free <= 0 or self._sources[entry.source_node] - kept + self._from_anywhere >= caps.outbound:
            return False
        turn = self._turns.get(entry.action, -1)
        if turn >= self._closed_from:
            return False
        ahead = self._ahead(turn, caps)
        if len(ahead) < free:
            return True
        # Who comes later has as many ahead, and need not ask.
        self._closed_from = turn
        self._left_to.update(ahead)
        return False

    def add(self, entry: Migrating) -> None:
        if _takes_a_place(entry):
            return
        self._total += 1
        self._sources[entry.source_node] += 1

    def courtesy(self, now: float) -> Courtesy:
        known = self._courtesy
        if not self._left_to:
            return replace(known, since=0.0)
        if not known.since:
            return replace(known, since=now)
        return Courtesy(0.0, known.absent | self._left_to) if now - known.since >= PATIENCE else known

    def _ahead(self, turn: int, caps: MigrationCaps) -> list[str]:
        """VMs of other nodes that come before a turn and could begin now, by title."""
        taken = Counter(self._sources)
        found = []
        for rival in self._rivals:
            if self._turns[rival.id] >= turn:
                break
            source = rival.source or rival.node
            if taken[source] < caps.outbound:
                taken[source] += 1
                found.append(rival.object.title)
        return found


def _takes_a_place(entry: Migrating) -> bool:
    """Whether its migration is in flight, or may be, as no answer tells whether it was created."""
    return entry.in_flight or (entry.is_unsure and entry.unfinished)


def _rivals(
    migrations: Sequence[Action], entries: Mapping[str, Entry], look: Observation, absent: Collection[str]
) -> list[Action]:
    """Migrations of other processes that have not begun, and need not wait for anything that is known to go on.

    In the plan's order, as `migrations` are.
    """
    held = {name for name, entry in entries.items() if entry.unfinished}
    begun = {action.id for action in migrations if action.object.title in look.migrations}
    coming = {action.id for action in migrations if action.id not in entries} - begun
    present = (action for action in migrations if action.id in coming and action.object.title not in absent)
    return [action for action in present if not any(name in held or name in coming for name in action.after)]

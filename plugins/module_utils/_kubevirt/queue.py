# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migrations are under way and which wait for a place, and how long a set of migrations takes under the caps.

Follows findRunningMigrations, outboundMigrationsOnNode and handleTargetPodCreation in
pkg/virt-controller/watch/migration/migration.go, and the priorities in pkg/util/migrations/migrations.go, which count
only with the feature gate MigrationPriorityQueue.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

PRIORITIES: Mapping[str, int] = {"system-critical": 100, "user-triggered": 50, "system-maintenance": 20, "": 0}
# Seconds after which a migration looks again for a place: from which priority on, and how many.
_PERIODS = ((PRIORITIES["system-critical"], 1.0), (PRIORITIES["user-triggered"], 3.0), (PRIORITIES[""], 5.0))
# Phases of a migration that has no target pod yet, as a rule.
_WAITING = frozenset({"", "Pending", "WaitingForSync", "Synchronizing"})


@dataclass(frozen=True, slots=True)
class Queue:
    """running: migrations that hold a place. waiting: the others, those that KubeVirt prefers first.

    outbound: how many of the running ones count against each node. Among equals KubeVirt has no order of its own; here
    the oldest comes first.
    """

    caps: Migrations
    running: tuple[Migration, ...]
    waiting: tuple[Migration, ...]
    outbound: Mapping[str, int]

    @property
    def free(self) -> int:
        """Places in the cluster."""
        return max(0, self.caps.parallel_per_cluster - len(self.running))

    def free_on(self, node: str) -> int:
        """Places for migrations that leave a node."""
        return min(self.free, max(0, self.caps.parallel_outbound_per_node - self.outbound.get(node, 0)))

    def machines(self) -> dict[str, tuple[str, ...]]:
        """namespace/name of the VMIs of those that are `running`, and `waiting`."""
        parts = {"running": self.running, "waiting": self.waiting}
        return {part: tuple(f"{entry.namespace}/{entry.vmi}" for entry in parts[part]) for part in parts}


def queue(around: Surroundings) -> Queue:
    """The queue of a cluster at this moment."""
    running: list[Migration] = []
    waiting: list[Migration] = []
    outbound: Counter[str] = Counter()
    for migration in around.migrations.values():
        if not _holds_a_place(migration, around):
            waiting.append(migration)
            continue
        running.append(migration)
        outbound.update(_sources(migration, around))
    caps = around.configuration.migrations
    waiting.sort(key=lambda entry: (-_priority(entry, caps), entry.created, entry.namespace, entry.name))
    return Queue(caps, tuple(running), tuple(waiting), outbound)


def _priority(entry: Migration | Job, caps: Migrations) -> int:
    return PRIORITIES.get(entry.priority, 0) if caps.by_priority else 0


def _holds_a_place(migration: Migration, around: Surroundings) -> bool:
    if migration.phase not in _WAITING:
        return True
    vmi = around.workloads.vmi(f"{migration.namespace}/{migration.vmi}")
    pods = around.workloads.pods(vmi) if vmi else ()
    return any((pod["metadata"].get("labels") or {}).get(MIGRATION_JOB) == migration.uid for pod in pods)


def _sources(migration: Migration, around: Surroundings) -> set[str]:
    """Nodes that it counts against: the VMI's own and, until the hand-over, also that of the VMI's last migration."""
    vmi = around.workloads.vmi(f"{migration.namespace}/{migration.vmi}") or {}
    status = vmi.get("status") or {}
    named = (status.get("nodeName"), (status.get("migrationState") or {}).get("sourceNode"))
    return {str(node) for node in named if node}


@dataclass(frozen=True, slots=True)
class Job:
    """A migration that is to be: which node it leaves, how many seconds it takes, and its priority."""

    node: str
    seconds: float
    priority: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds after the migrations were asked for."""

    start: float
    end: float


def timetable(jobs: Sequence[Job], caps: Migrations, taken: Sequence[Job] = ()) -> list[Span]:
    """When each of the jobs, all asked for at once, starts and ends, in their order.

    taken: migrations under way, with the seconds they still need. What finds no place looks again after 5 s, or where
    priorities count after 1 s, 3 s or 5 s. A cap of 0 lets nothing start: such jobs start and end at infinity.
    """
    ends = [(job.seconds, job.node) for job in taken]
    heapq.heapify(ends)
    outbound = Counter(job.node for job in taken)
    spans = [Span(math.inf, math.inf)] * len(jobs)
    waiting = sorted(range(len(jobs)), key=lambda index: -_priority(jobs[index], caps))
    now = 0.0
    while waiting:
        for index in list(_startable(waiting, jobs, caps, ends, outbound)):
            start = _next_look(now, _priority(jobs[index], caps))
            spans[index] = Span(start, start + jobs[index].seconds)
            heapq.heappush(ends, (spans[index].end, jobs[index].node))
            waiting.remove(index)
        if not ends:
            break
        now, node = heapq.heappop(ends)
        outbound[node] -= 1
    return spans


def _startable(
    waiting: Sequence[int], jobs: Sequence[Job], caps: Migrations, ends: Sequence[object], outbound: Counter[str]
) -> Iterator[int]:
    """Those that find a place now; each takes it."""
    free = caps.parallel_per_cluster - len(ends)
    for index in waiting:
        node = jobs[index].node
        if free > 0 and outbound[node] < caps.parallel_outbound_per_node:
            free -= 1
            outbound[node] += 1
            yield index


def _next_look(now: float, priority: int) -> float:
    period = next(seconds for least, seconds in _PERIODS if priority >= least)
    return math.ceil(now / period) * period

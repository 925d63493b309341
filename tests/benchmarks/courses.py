# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each migration of a run began and ended, as a watch tells it, and what these could have taken at least."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from testbed.api import Object, resource_path
from testbed.watches import Watches

KUBEVIRT, MIGRATIONS = "kubevirt.io/v1", "virtualmachineinstancemigrations"
# KubeVirt's defaults: parallelMigrationsPerCluster and parallelOutboundMigrationsPerNode.
PER_CLUSTER, PER_NODE = 5, 2
SUCCEEDED, QUEUED = "Succeeded", ("", "Pending")


@dataclass(frozen=True)
class Course:
    """Of a migration: where from, and when it was created, when its turn came, and when it ended, in seconds."""

    source: str
    created: float
    started: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


def bound(courses: Sequence[Course]) -> float:
    """Seconds that the migrations of a batch take when KubeVirt's caps are always made full use of."""
    per_node = Counter(course.source for course in courses)
    turns = max(math.ceil(len(courses) / PER_CLUSTER), *(math.ceil(count / PER_NODE) for count in per_node.values()))
    return turns * mean(course.seconds for course in courses)


class Courses:
    """Of migrations, by what is told of them and when."""

    def __init__(self) -> None:
        self._moments: dict[str, dict[str, float]] = {}
        self._last: dict[str, Object] = {}

    def note(self, migration: Object, now: float) -> None:
        """What a migration is like at a moment, in seconds of the clock."""
        uid = migration["metadata"]["uid"]
        self._last[uid] = migration
        self._moments.setdefault(uid, {}).setdefault(_phase(migration), now)

    @property
    def found(self) -> list[Course]:
        """In the order of their creation. Raises RuntimeError if one has not succeeded."""
        return [_course(migration, self._moments[uid]) for uid, migration in self._last.items()]


class WatchedCourses(Watches):
    """Watches the migrations of a namespace, and takes the moments at which their events arrive here.

    They come some hundredths of a second after what they tell of, more if the machine is busy; what the API server
    itself notes down has whole seconds only.
    """

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.courses = Courses()
        super().__init__(kubeconfig, {MIGRATIONS: resource_path(KUBEVIRT, MIGRATIONS, namespace)})

    def see(self, _name: str, event: Object) -> None:
        self.courses.note(event["object"], time.time())


def _phase(migration: Object) -> str:
    return str((migration.get("status") or {}).get("phase") or "")


def _course(migration: Object, moments: dict[str, float]) -> Course:
    name, phase = migration["metadata"]["name"], _phase(migration)
    if phase != SUCCEEDED:
        raise RuntimeError(f"Migration {name} is {phase or 'not begun'}: what is measured has to go well.")
    # Of the phases as they come: it is in the queue as long as it has none or is pending.
    started = min(moment for passed, moment in moments.items() if passed not in QUEUED)
    return Course(
        migration["status"]["migrationState"]["sourceNode"], min(moments.values()), started, moments[SUCCEEDED]
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a plan's migrations take, under KubeVirt's caps and beside those that are under way.

Only migrations count: how long guests take to shut down and pods to end, nothing tells. Waves follow one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending, Link, course
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import Job, Queue, timetable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import PlannedMove

_LINK = Link()


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one migration. policy: the MigrationPolicy by which it goes, empty for none."""

    policy: str
    seconds: int
    ending: Ending


def pace(vmi: Object, cluster: Surroundings) -> Pace:
    """Raises `QuantityError`."""
    terms = cluster.terms(vmi)
    expected = course(vmi, terms.migrations, _LINK)
    return Pace(terms.policy, math.ceil(expected.seconds), expected.ending)


def seconds(moves: Iterable[PlannedMove], queue: Queue, cluster: Surroundings) -> int | None:
    """Until the last of the moves, which are in the order of their waves, has ended; None if one never starts.

    When the others began is not asked: they are taken to begin now, and those that wait to come before the plan's.
    Raises `QuantityError`.
    """
    taken, ahead = (list(_jobs(others, cluster)) for others in (queue.running, queue.waiting))
    now = 0.0
    for _number, wave in groupby(moves, key=lambda move: move.wave):
        jobs = [Job(move.source_node, move.seconds) for move in wave]
        spans = timetable([*ahead, *jobs], queue.caps, taken)
        took = max(span.end for span in spans[len(ahead) :])
        if math.isinf(took):
            return None
        started = [replace(job, seconds=span.end) for job, span in zip(ahead, spans[: len(ahead)], strict=True)]
        taken = [replace(job, seconds=job.seconds - took) for job in (*taken, *started) if job.seconds > took]
        ahead, now = [], now + took
    return math.ceil(now)


def _jobs(migrations: Iterable[Migration], cluster: Surroundings) -> Iterable[Job]:
    for migration in migrations:
        vmi = cluster.workloads.vmi(f"{migration.namespace}/{migration.vmi}")
        if vmi is not None:
            node = str((vmi.get("status") or {}).get("nodeName") or "")
            yield Job(node, pace(vmi, cluster).seconds, migration.priority)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to tell of records: news and counts in words, and where a drain stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import MIGRATED, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING, Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan


@dataclass(frozen=True, slots=True)
class News:
    """detail: for who wants to know each step. The others hear when something has come to an end or is held up."""

    line: str
    detail: bool = False


def news(before: Record, after: Record, others: Collection[str] = ()) -> Iterator[News]:
    """What has changed between two records. others: ids of what somebody else tells of, too."""
    for name, entry in after.entries.items():
        for told in _news(before.entries.get(name), entry):
            yield replace(told, detail=True) if name in others else told


def brought_back(entry: Entry, node: str = "") -> str:
    """A line on what had left, and has to leave again. node: where it is by now, if that may be another one."""
    if node in ("", entry.source_node):
        return f"{entry.title}: somebody has brought it back to {entry.source_node}; it is to leave again"
    return f"{entry.title}: it has come to {node}; it is to leave that as well"


def to_do(record: Record) -> str:
    """What there is to do, as in `2 migrations, 1 eviction to do`."""
    kinds = (("migration", Migrating), ("eviction", Evicting), ("interruption", Interrupting))
    counts = ((noun, sum(isinstance(entry, kind) for entry in record.unfinished)) for noun, kind in kinds)
    parts = [f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts if count]
    return f"{', '.join(parts) or 'nothing'} to do"


def counts(record: Record, later: int = 0) -> str:
    """Where something stands that stands by itself, as in `2 of 5 done, 2 in flight, 1 waiting`.

    later: how many actions are not in the record yet.
    """
    entries = record.entries.values()
    done = sum(not entry.unfinished for entry in entries)
    waiting = sum(entry.outcome == WAITING or (isinstance(entry, Migrating) and entry.queued) for entry in entries)
    others = {"in flight": len(entries) - done - waiting, "waiting": waiting + later}
    known = [f"{count} {how}" for how, count in others.items() if count]
    return ", ".join([f"{done} of {len(entries) + later} done", *known])


def of_others(plan: Plan, node: str, record: Record) -> frozenset[str]:
    """Ids of what leaves for the sake of other nodes, because this one waits for it: their own drains tell of it."""
    return frozenset(name for name, sake in draining.sakes(record, plan).items() if sake != node)


def standing(plan: Plan, node: str, record: Record, done: int | None) -> Standing:
    """Where the drain of a node stands, beside its batch and the whole run. done: nodes that the run is done with."""
    number = plan.batch_of(node) or 0
    others = of_others(plan, node, record)
    own = [entry for name, entry in record.entries.items() if name not in others]
    # Who could not be migrated and is restarted has two entries, and leaves once.
    gone = {_object_of(entry) for entry in own if not (entry.unfinished or entry.has_failed)}
    gone -= {_object_of(entry) for entry in own if entry.unfinished}
    migrations = [entry for entry in own if isinstance(entry, Migrating)]
    spans = plan.totals.batch_seconds if 0 < number <= len(plan.totals.batch_seconds) else ()
    later = [seconds for seconds in spans[number:] if seconds is not None]
    return Standing(
        run=_identity(plan),
        node=node,
        batch=number,
        batches=len(plan.batches),
        nodes=sum(map(len, plan.batches)),
        done=done,
        leaving=len(set(map(_object_of, own))),
        gone=len(gone),
        flying=sum(entry.in_flight for entry in migrations),
        migrations=len(migrations),
        settled=sum(not entry.unfinished for entry in migrations),
        migrated=sum(entry.outcome == MIGRATED for entry in migrations),
        planned=sum(action.kind is ActionKind.MIGRATE and action.batch == number for action in plan.actions),
        span=spans[number - 1] if spans else None,
        later=sum(later) if spans and len(later) == len(spans[number:]) else None,
    )


def _object_of(entry: Entry) -> str:
    """What was only foretold has no uid."""
    return entry.uid or entry.action


def _identity(plan: Plan) -> str:
    """The same for all drains of a run by a plan, however it is mended; empty for one that belongs to no run."""
    about = json.dumps([plan.run, plan.cluster.uid, plan.batches])
    return hashlib.sha256(about.encode()).hexdigest()[:12] if plan.run else ""


def _news(before: Entry | None, entry: Entry) -> Iterator[News]:
    if before == entry:
        return
    status = entry.status()
    if isinstance(entry, Migrating) and entry.suspect:
        return  # what it says is not sure before the next look
    if isinstance(entry, Migrating) and entry.unfinished:
        known = len(before.failed) if isinstance(before, Migrating) else 0
        for number, attempt in enumerate(entry.failed[known:], start=known + 1):
            yield News(_line(entry, f"attempt {number} failed, {attempt.reason.rstrip('.')}; trying again"))
        if isinstance(before, Migrating) and len(entry.past) > len(before.past):
            yield News(brought_back(entry))
    if before is None or before.status() != status:
        if entry.worth_telling:
            yield News(_line(entry, status))
        elif before is not None or entry.has_acted:
            yield News(_line(entry, status), detail=True)


def _line(entry: Entry, status: str) -> str:
    if isinstance(entry, Migrating):
        return f"{entry.title}: {entry.source_node} -> {entry.destination}: {status}"
    return f"{'pod ' if isinstance(entry, Evicting) else ''}{entry.title}: {status}"

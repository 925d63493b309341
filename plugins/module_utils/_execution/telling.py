# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""News and totals in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING, Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan


@dataclass(frozen=True, slots=True)
class News:
    """detail: for who wants to know each step. The others hear when something has come to an end or is held up."""

    line: str
    detail: bool = False


def news(before: Record, after: Record) -> Iterator[News]:
    """What has changed between two records."""
    for name, entry in after.entries.items():
        yield from _news(before.entries.get(name), entry)


def outlook(record: Record) -> str:
    """What there is to do, as in `2 migrations, 1 eviction to do`."""
    kinds = (("migration", Migrating), ("eviction", Evicting), ("interruption", Interrupting))
    counts = ((noun, sum(isinstance(entry, kind) for entry in record.unfinished)) for noun, kind in kinds)
    parts = [f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts if count]
    return f"{', '.join(parts) or 'nothing'} to do"


def counts(record: Record) -> str:
    """Where something stands that stands by itself, as in `2 of 5 done, 2 in flight, 1 waiting`."""
    entries = record.entries.values()
    done = sum(not entry.unfinished for entry in entries)
    waiting = sum(entry.outcome == WAITING or (isinstance(entry, Migrating) and entry.queued) for entry in entries)
    others = {"in flight": len(entries) - done - waiting, "waiting": waiting}
    return ", ".join([f"{done} of {len(entries)} done", *(f"{count} {how}" for how, count in others.items() if count)])


def totals(plan: Plan, node: str, record: Record) -> str:
    """Where a drain stands, beside its batch and the whole run.

    As in `batch 3/20, nodes 7-9 of 60 · 4/9 moved, 2 in flight · migrations for about 41 min left`.
    """
    entries = list(record.entries.values())
    gone = sum(not (entry.unfinished or entry.has_failed) for entry in entries)
    flying = sum(isinstance(entry, Migrating) and entry.in_flight for entry in entries)
    parts = [f"{gone}/{len(entries)} moved" + (f", {flying} in flight" if flying else "")]
    number = plan.batch_of(node)
    if number is not None and len(plan.batches) > 1:
        parts = [_place(plan, number), *parts]
    left = _seconds_left(plan, number, entries)
    if left:
        parts.append(f"migrations for about {_span(left)} left")
    return " · ".join(parts)


def _place(plan: Plan, number: int) -> str:
    """Of a batch in its run."""
    sizes = [len(nodes) for nodes in plan.batches]
    first, size = sum(sizes[: number - 1]) + 1, sizes[number - 1]
    nodes = f"node {first}" if size == 1 else f"nodes {first}-{first + size - 1}"
    return f"batch {number}/{len(sizes)}, {nodes} of {sum(sizes)}"


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
    if before is None or before.status() != status:
        if entry.worth_telling:
            yield News(_line(entry, status))
        elif before is not None or entry.has_acted:
            yield News(_line(entry, status), detail=True)


def _line(entry: Entry, status: str) -> str:
    if isinstance(entry, Migrating):
        return f"{entry.title}: {entry.source_node} -> {entry.destination}: {status}"
    return f"{'pod ' if isinstance(entry, Evicting) else ''}{entry.title}: {status}"


def _seconds_left(plan: Plan, number: int | None, entries: Sequence[Entry]) -> int:
    """Of the migrations that are still to come: the batch's as far as this node's own are, and those of later ones."""
    spans = [seconds or 0 for seconds in plan.totals.batch_seconds]
    own = [entry for entry in entries if isinstance(entry, Migrating)]
    if number is None or number > len(spans):
        return 0
    share = sum(entry.unfinished for entry in own) / len(own) if own else 0.0
    return round(spans[number - 1] * share + sum(spans[number:]))


def _span(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The batches of a plan as a table that fits a screen: of many batches several that follow each other have one row.

Counts and times of a row are those of its batches together, the reserve is the least of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import unable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import some
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import Batch, duration

# Rows that leave room on a screen for what stands against a plan.
MOST_ROWS = 24
_GIBIBYTE = 2**30
_FAILING = {"zone": "zone"}


@dataclass(frozen=True, slots=True)
class _Row:
    """`batches`: that follow each other. `spans`: seconds, `reserves`: bytes of memory, of those where it is told."""

    batches: Sequence[Batch]
    spans: Sequence[int | None]
    reserves: Sequence[int | None]

    @property
    def number(self) -> str:
        first, last = self.batches[0].number, self.batches[-1].number
        return f"{first}" if first == last else f"{first}-{last}"

    def count(self, kind: ActionKind) -> str:
        """How many there are of a kind; a dash stands out less than a zero."""
        return str(sum(action.kind is kind for batch in self.batches for action in batch.leaving) or "-")

    @property
    def time(self) -> str:
        if None in self.spans:
            return "never"
        seconds = sum(span or 0 for span in self.spans)
        return duration(seconds) if seconds else "-"

    @property
    def reserve(self) -> str:
        return least(self.reserves)

    @property
    def nodes(self) -> str:
        """With what stands against them."""
        blocked = [entry for batch in self.batches for entry in batch.blocked]
        counts = Counter("to be waited for" if entry.passing else unable(entry) for entry in blocked)
        names = some(name for batch in self.batches for name in batch.nodes)
        return "; ".join([names, *(f"{count} {what}" for what, count in sorted(counts.items()))])


_COLUMNS: Sequence[tuple[str, Callable[[_Row], str]]] = (
    ("batch", lambda row: row.number),
    ("migrations", lambda row: row.count(ActionKind.MIGRATE)),
    ("evictions", lambda row: row.count(ActionKind.EVICT)),
    ("restarts", lambda row: row.count(ActionKind.RESTART)),
    ("stops", lambda row: row.count(ActionKind.STOP)),
    ("time", lambda row: row.time),
    ("reserve", lambda row: row.reserve),
)


def batch_table(plan: Plan, batches: Sequence[Batch]) -> Iterator[str]:
    """The lines, the first of which names the columns; none without batches."""
    if not batches:
        return
    rows = list(_rows(plan, batches))
    columns = [[name, *map(value, rows)] for name, value in _COLUMNS]
    kept = [cells for cells in columns if cells[0] == "batch" or any(cell != "-" for cell in cells[1:])]
    widths = [max(map(len, cells)) for cells in kept]
    for cells, nodes in zip(zip(*kept, strict=True), ["nodes", *(row.nodes for row in rows)], strict=True):
        told = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        yield "  ".join([*told, nodes])


def reserve_line(plan: Plan, batches: Sequence[Batch]) -> Iterator[str]:
    """What the reserve is, and where it is the least."""
    told = [(reserve, batch.number) for batch in batches for reserve in _of([batch], plan.totals.batch_reserves)]
    if not told:
        return
    amount, number = min(told, key=lambda entry: (entry[0] is not None, entry[0] or 0))
    failing = _FAILING.get(str(plan.options.get("reserve")), "node")
    yield (
        f"Reserve is the memory that is left by estimate when one more {failing} fails while a batch is away: "
        f"at the least {least([amount])}, in batch {number}."
    )


def least(reserves: Iterable[int | None]) -> str:
    """The least of some reserves, such as 12.5 GiB; a dash if none is told."""
    told = list(reserves)
    if None in told:
        return "none"
    return f"{min(reserve for reserve in told if reserve is not None) / _GIBIBYTE:.1f} GiB" if told else "-"


def _rows(plan: Plan, batches: Sequence[Batch]) -> Iterator[_Row]:
    size = -(-len(batches) // MOST_ROWS)
    for begin in range(0, len(batches), size):
        part = batches[begin : begin + size]
        yield _Row(part, _of(part, plan.totals.batch_seconds), _of(part, plan.totals.batch_reserves))


def _of(batches: Sequence[Batch], values: Sequence[int | None]) -> list[int | None]:
    """What is told of these batches, by their numbers."""
    return [values[batch.number - 1] for batch in batches if batch.number <= len(values)]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan on one screen: what stands against it, who is interrupted, a table of its batches; and in one sentence.

Where the screen has room for it, each action comes after that. Of many batches several that follow each other have one
row of the table: counts and times of a row are those of its batches together, the reserve is the least of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import unable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import (
    Kept,
    clearing_lines,
    counted,
    kept,
    obstacle_lines,
    some,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import (
    Batch,
    batch_lines,
    batches_left,
    duration,
    heading,
    interrupted_again,
    summary,
)

# More lines are not read before a run; they stand in the text beside the plan.
MOST_LINES = 40
_MOST_NAMED = 20
_INTERRUPTED = (
    (ActionKind.STOP, "VM is off until its node is back", "VMs are off until their node is back"),
    (ActionKind.RESTART, "VM is shut down, and starts anew elsewhere", "VMs are shut down, and start anew elsewhere"),
)
# Rows that leave room on a screen for what stands against a plan; and those that there are also beside much of that.
_MOST_ROWS, _FEWEST_ROWS = 24, 6
_GIBIBYTE = 2**30
_FAILING = {"zone": "zone"}


def told(plan: Plan, done: Collection[str] = (), *, prefix: str = "", text: str = "") -> list[str]:
    """The plan for the terminal: what decides, and each action if that fits the same screen, or stands nowhere else.

    prefix: of the names that the options of a plan have there. text: where all stands.
    """
    batches = batches_left(plan, done)
    lines = list(_overview(plan, batches, frozenset(done), prefix))
    room = MOST_LINES - len(lines) if text else MOST_LINES
    details = list(islice(batch_lines(plan, batches), MOST_LINES + 1))
    if len(details) <= room:
        lines += details
    elif text:
        lines.append(f"Each virtual machine and pod, its node and the reasons: {text}")
    return [printable(line) for line in lines]


def _overview(plan: Plan, batches: Sequence[Batch], done: frozenset[str], prefix: str) -> Iterator[str]:
    before = list(_before_the_table(plan, batches, done, prefix))
    after = [*summary(plan, batches, done), *_span(plan, batches), *reserve_line(plan, batches)]
    # Beside its own heading, and a line on where all stands.
    rows = MOST_LINES - len(before) - len(after) - 2
    yield from before
    yield from batch_table(plan, batches, min(max(rows, _FEWEST_ROWS), _MOST_ROWS))
    yield from after


def _before_the_table(plan: Plan, batches: Sequence[Batch], done: frozenset[str], prefix: str) -> Iterator[str]:
    yield heading(plan, batches, done)
    if done:
        yield f"Done already: {some(sorted(done))}"
    if batches:
        yield from _standing(plan, kept(plan, done), prefix)
    yield from _interrupted([action for batch in batches for action in batch.leaving])
    yield from interrupted_again(batches)


def _standing(plan: Plan, groups: Sequence[Kept], prefix: str) -> Iterator[str]:
    if groups:
        kinds = [entry.object.kind for group in groups for entry in group.blocked if not group.passing]
        leaving, nodes = (counted(kind for kind in kinds if (kind == "Node") is is_node) for is_node in (False, True))
        words = [f"{leaving} cannot leave"] * bool(leaving) + [f"{nodes} cannot be out of service"] * bool(nodes)
        words += _awaited([entry.object.kind for group in groups for entry in group.blocked if group.passing])
        yield f"As things are, {', and '.join(words)}:"
        yield from (f"  {line}" for line in obstacle_lines(plan, groups, prefix))
        yield from (f"  {line}" for line in clearing_lines(plan, groups, prefix))
    else:
        yield "Nothing stands against it."


def _awaited(kinds: Sequence[str]) -> list[str]:
    """A clause on what passes by itself, if there is something."""
    return [f"{counted(kinds)} {'has' if len(kinds) == 1 else 'have'} to be waited for"] if kinds else []


def _interrupted(leaving: Sequence[Action]) -> Iterator[str]:
    for kind, single, several in _INTERRUPTED:
        names = list(dict.fromkeys(action.object.title for action in leaving if action.kind is kind))
        if names:
            yield f"{_number(len(names), single, several)}: {some(names)}"


def _span(plan: Plan, batches: Sequence[Batch]) -> Iterator[str]:
    spans = plan.totals.batch_seconds
    seconds = sum(spans[batch.number - 1] or 0 for batch in batches if batch.number <= len(spans))
    if seconds:
        yield f"By KubeVirt's limits the migrations take about {duration(seconds)} if the guests are idle."


def unblocked(plan: Plan, done: Collection[str] = ()) -> list[str]:
    """Nodes that nothing keeps from being emptied by this plan that does not pass by itself.

    done: those that are maintained.
    """
    closed = {entry.node for entry in plan.blocked if not entry.passing}
    return [name for name in _left(plan, done) if name not in closed]


def judgement(plan: Plan, done: Collection[str], possible: Sequence[str]) -> str:
    """Whether the plan can be carried out, and what to do if not. possible: nodes that could be maintained alone."""
    title = f"Run {plan.run}" if plan.run else "The plan"
    left, free = _left(plan, done), frozenset(unblocked(plan, done))
    closed = [name for name in left if name not in free]
    if not left:
        told = f"{title} is done with all of its nodes"
    elif closed:
        others = f", or maintain only {_listed(possible)}" if possible else ""
        told = (
            f"{title} cannot be carried out as things are, as {_listed(closed)} cannot be emptied: clear what stands "
            f"against it{others}"
        )
    else:
        batches = sum(not frozenset(done).issuperset(nodes) for nodes in plan.batches)
        told = f"{title} can be carried out: {_number(len(left), 'node')} in {_number(batches, 'batch', 'batches')}"
        told = "; ".join([told, *_awaited([entry.object.kind for entry in plan.blocked if entry.node not in done])])
    return printable(f"{told}.")


def _left(plan: Plan, done: Collection[str]) -> list[str]:
    return [name for nodes in plan.batches for name in nodes if name not in done]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, single: str, several: str = "") -> str:
    return f"{count} {single if count == 1 else several or f'{single}s'}"


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


def batch_table(plan: Plan, batches: Sequence[Batch], most: int = _MOST_ROWS) -> Iterator[str]:
    """The lines, the first of which names the columns; none without batches. most: rows."""
    if not batches:
        return
    rows = list(_rows(plan, batches, most))
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


def _rows(plan: Plan, batches: Sequence[Batch], most: int) -> Iterator[_Row]:
    size = -(-len(batches) // most)
    for begin in range(0, len(batches), size):
        part = batches[begin : begin + size]
        yield _Row(part, _of(part, plan.totals.batch_seconds), _of(part, plan.totals.batch_reserves))


def _of(batches: Sequence[Batch], values: Sequence[int | None]) -> list[int | None]:
    """What is told of these batches, by their numbers."""
    return [values[batch.number - 1] for batch in batches if batch.number <= len(values)]

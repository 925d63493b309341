# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as lines of text: for each batch who leaves, for where and after whom, who cannot and why, and for how long.

Of a plan by which things only move: one after the other what moves, to where, and why.

Names and reasons come from the cluster, and anybody may have written them: whatever could steer a terminal is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import named, room, unable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Blocked, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING, stages
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import some

# In a batch with more, it is not worked out whom somebody waits for only because others do.
_MOST_WAITING = 1000
_MOST_NAMED = 3
_MOST_ASSUMED = 5
_INDENT = "     "
_INTERRUPTING = frozenset({ActionKind.RESTART, ActionKind.STOP})
_NOUNS = {"VirtualMachineInstance": "VM ", "Pod": "pod", "Node": "node"}
_COUNTED = (
    (ActionKind.MIGRATE, "migration", "migrations"),
    (ActionKind.EVICT, "eviction", "evictions"),
    (ActionKind.RESTART, "restart", "restarts"),
    (ActionKind.STOP, "stop", "stops"),
)


_CHOSEN = ", in the order in which each batch can be emptied with the fewest migrations that were found"


def plan_text(plan: Plan, done: Collection[str] = ()) -> list[str]:
    """The lines. done: nodes that are maintained already, of which nothing is told but their names."""
    return [printable(line) for line in _lines(plan, frozenset(done))]


def blocked_text(entry: Blocked) -> str:
    """A sentence on what cannot leave."""
    verb = "has to be waited for" if entry.passing else unable(entry)
    place = "" if entry.object.kind == "Node" else f" on {entry.node}"
    return printable(f"{named(entry.object)}{place} {verb}{_reasons(entry)}.")


@dataclass(frozen=True, slots=True)
class Batch:
    """What of a batch is still to be done. leaving: the actions that empty its nodes."""

    number: int
    nodes: list[str]
    leaving: list[Action]
    blocked: list[Blocked]


def batches_left(plan: Plan, done: Collection[str]) -> list[Batch]:
    """In what grows with the plan. done: nodes that are maintained already."""
    found = [
        Batch(number, [name for name in nodes if name not in done], [], [])
        for number, nodes in enumerate(plan.batches, start=1)
    ]
    number_of = {name: batch.number for batch in found for name in batch.nodes}
    for action in plan.actions:
        if action.kind in LEAVING and action.node not in done:
            found[action.batch - 1].leaving.append(action)
    for entry in plan.blocked:
        if entry.node in number_of:
            found[number_of[entry.node] - 1].blocked.append(entry)
    return [batch for batch in found if batch.nodes]


def _lines(plan: Plan, done: frozenset[str]) -> Iterator[str]:
    batches = batches_left(plan, done)
    yield heading(plan, batches, done)
    if done:
        yield f"Done already: {', '.join(sorted(done))}"
    yield from batch_lines(plan, batches)
    yield from summary(plan, batches, done)
    yield from interrupted_again(batches)


def batch_lines(plan: Plan, batches: Sequence[Batch]) -> Iterator[str]:
    """Of each batch who leaves and who cannot, in the cluster's own words, which may not be printable."""
    for batch in batches:
        yield f"{batch.number}. {', '.join(batch.nodes)}{_state(batch.blocked)}"
        yield from _expected(plan, batch)
        yield from _moves(batch.leaving, _waits(batch.leaving))
        yield from _kept(batch.blocked)


def heading(plan: Plan, batches: Sequence[Batch], done: Collection[str]) -> str:
    left = [name for batch in batches for name in batch.nodes]
    together = max((len(batch.nodes) for batch in batches), default=0)
    pace = f", {together} at a time" if together else ""
    title = f"Run {plan.run}: " if plan.run else ""
    batching = plan.options.get("batching")
    free = isinstance(batching, Mapping) and batching.get("order") == "free"
    chosen = _CHOSEN if free and len(left) > 1 else ""
    return f"{title}{len(left)} of {len(left) + len(done)} nodes to maintain{pace}{chosen}."


def _state(blocked: Collection[Blocked]) -> str:
    if any(not entry.passing for entry in blocked):
        return ": cannot be emptied now"
    return ": has to wait a while" if blocked else ""


def _expected(plan: Plan, batch: Batch) -> Iterator[str]:
    spans = plan.totals.batch_seconds
    if len(spans) < batch.number or not any(action.kind is ActionKind.MIGRATE for action in batch.leaving):
        return
    span = spans[batch.number - 1]
    if span is None:
        yield f"{_INDENT}migrations never start, as KubeVirt's caps allow none"
    else:
        yield f"{_INDENT}migrations take about {duration(span)} if the guests are idle"


def _moves(actions: Sequence[Action], waits: Mapping[str, Sequence[Action]]) -> Iterator[str]:
    for action in actions:
        noun = _NOUNS.get(action.object.kind, action.object.kind)
        yield f"{_INDENT}{noun} {action.object.title} {_outlook(action)}{_after(waits[action.id])}"
        if action.kind in (ActionKind.RESTART, ActionKind.STOP) and action.why:
            yield f"{_INDENT}    {action.why}"
    yield from _assumptions(actions)


def _assumptions(actions: Sequence[Action]) -> Iterator[str]:
    """Each once, those of most actions first."""
    assumed: dict[str, list[Action]] = {}
    for action in actions:
        for phrase in action.assumed:
            assumed.setdefault(phrase, []).append(action)
    by_count = sorted(assumed.items(), key=lambda entry: -len(entry[1]))
    for phrase, concerned in by_count[:_MOST_ASSUMED]:
        whom = named(concerned[0].object) if len(concerned) == 1 else str(len(concerned))
        yield f"{_INDENT}assumed of {whom}: {phrase}"
    if len(assumed) > _MOST_ASSUMED:
        yield f"{_INDENT}and {len(assumed) - _MOST_ASSUMED} more assumptions, which are in the plan's file"


def _outlook(action: Action) -> str:
    if action.kind is ActionKind.STOP:
        return "is off until the node is back"
    if action.kind is ActionKind.RESTART:
        return f"starts anew on {action.target}" if action.target else "starts anew elsewhere"
    if action.target:
        return f"-> {action.target}{room(action)}"
    if action.kind is ActionKind.MIGRATE:
        return f"-> {','.join(f'{key}={value}' for key, value in sorted(action.selector.items())) or 'another node'}"
    return f"goes. {action.why}" if action.why else "goes"


def _after(waits: Sequence[Action]) -> str:
    """Only with those that something has to wait for is there an order; the cordon comes first for everything."""
    names = [named(action.object) for action in waits[:_MOST_NAMED]]
    more = f" and {len(waits) - _MOST_NAMED} more" if len(waits) > _MOST_NAMED else ""
    return f", after {', '.join(names)}{more}" if names else ""


def _waits(batch: Sequence[Action]) -> dict[str, list[Action]]:
    """For each action of a batch those of it that it waits for, but for what these wait for themselves."""
    known = {action.id: action for action in batch}
    reached: dict[str, frozenset[str]] = {}
    found = {}
    for action in batch:  # whoever waits comes later than what it waits for
        ahead = [name for name in action.after if name in known]
        behind = frozenset().union(*(reached[name] for name in ahead)) if len(batch) <= _MOST_WAITING else frozenset()
        reached[action.id] = behind.union(ahead)
        found[action.id] = [known[name] for name in ahead if name not in behind]
    return found


def _kept(blocked: Sequence[Blocked]) -> Iterator[str]:
    for entry in blocked:
        verb = "has to be waited for" if entry.passing else unable(entry)
        noun = _NOUNS.get(entry.object.kind, entry.object.kind)
        yield f"{_INDENT}{noun} {entry.object.title} {verb}{_reasons(entry)}"


def _reasons(entry: Blocked) -> str:
    return f": {'; '.join(reason.rstrip('.') for reason in entry.reasons)}" if entry.reasons else ""


def summary(plan: Plan, batches: Sequence[Batch], done: Collection[str]) -> Iterator[str]:
    """The bound is of the whole plan, and says nothing of what is left of it."""
    leaving = [action for batch in batches for action in batch.leaving]
    if not leaving:
        return
    totals, whole = plan.totals, not any(name in done for nodes in plan.batches for name in nodes)
    bound = ""
    if whole and totals.migrations and totals.lower_bound is not None:
        least = "" if totals.proof == "optimal" else f"than {totals.lower_bound} "
        bound = f" No plan of these batches has fewer {least}migrations."
    helping = sum(action.makes_room for action in leaving)
    room = f", {helping} of which to make room on other nodes" if helping else ""
    yield f"In all: {counts(leaving)}{room}.{bound}"


def interrupted_again(batches: Sequence[Batch]) -> Iterator[str]:
    """Who comes, started anew, to a node of a later batch. A replica set's VM has the name of its first one here."""
    places: dict[str, list[str]] = {}
    for batch in batches:
        for action in batch.leaving:
            if action.kind in _INTERRUPTING:
                places.setdefault(action.object.title, []).append(f"{action.node} in batch {batch.number}")
    yield from more_than_once("is", "are", places.items())


def more_than_once(single: str, several: str, places: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """A line at most. single, several: the verb. places: what each VM is called, and where it is interrupted."""
    names = [f"{title} ({some(found)})" for title, found in places if len(found) > 1]
    if names:
        verb = f"VM {single}" if len(names) == 1 else f"VMs {several}"
        yield f"{len(names)} {verb} interrupted more than once: {some(names)}"


def counts(actions: Collection[Action]) -> str:
    counts = Counter(action.kind for action in actions)
    parts = [
        f"{counts[kind]} {single if counts[kind] == 1 else several}"
        for kind, single, several in _COUNTED
        if counts[kind]
    ]
    return ", ".join(parts)


def duration(seconds: int) -> str:
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def moves_text(plan: Plan, message: str) -> list[str]:
    """A plan by which things only move: one after the other what moves, to where, and why.

    message: the plan in a sentence, which comes first. What has the same number may move at the same time.
    """
    return [printable(line) for line in (message, *_move_lines(plan))]


def _move_lines(plan: Plan) -> Iterator[str]:
    for number, actions in enumerate(stages(plan), start=1):
        for action in actions:
            where = f"{action.source} -> {action.target or 'another node'}"
            yield f"{number}. {named(action.object)}: {where}. {action.why}"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against a plan: each obstacle once, with whom it keeps, what to do, and which options would clear it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import unable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    NO_RESERVE,
    NO_ROOM,
    POLICIES,
    Blocked,
    Obstacle,
    Plan,
)

_MOST_NAMED = 3
_NOUNS = {"VirtualMachineInstance": ("VM", "VMs"), "Pod": ("pod", "pods"), "Node": ("node", "nodes")}
# Of all VMs that KubeVirt itself calls not migratable, whatever its reason: is_refused of _model in words
# that a user may paste, and that a test holds against it.
_NOT_MIGRATABLE = {"expression": "status.conditions[?type=='LiveMigratable' && status=='False']", "policy": "stop"}


@dataclass(frozen=True, slots=True)
class Kept:
    """All that one obstacle keeps from leaving. batches: their numbers, ascending."""

    obstacle: Obstacle
    passing: bool
    blocked: tuple[Blocked, ...]
    batches: tuple[int, ...]

    @property
    def whom(self) -> str:
        return counted(entry.object.kind for entry in self.blocked)

    @property
    def names(self) -> str:
        return some(entry.object.title for entry in self.blocked)

    @property
    def problem(self) -> str:
        return self.obstacle.problem or "; ".join(reason.rstrip(".") for reason in self.blocked[0].reasons)


def kept(plan: Plan, done: Collection[str] = ()) -> list[Kept]:
    """First what lasts, then what passes by itself, and of each the most first. done: nodes that are maintained."""
    batch_of = {name: number for number, nodes in enumerate(plan.batches, start=1) for name in nodes}
    groups: dict[tuple[bool, object], list[Blocked]] = {}
    for entry in plan.blocked:
        if entry.node not in done:
            groups.setdefault((entry.passing, entry.obstacle.id or entry.reasons), []).append(entry)
    found = [
        Kept(
            obstacle=entries[0].obstacle,
            passing=passing,
            blocked=tuple(entries),
            batches=tuple(sorted({batch_of[entry.node] for entry in entries if entry.node in batch_of})),
        )
        for (passing, _id), entries in groups.items()
    ]
    return sorted(found, key=lambda group: (group.passing, -len(group.blocked)))


def advice(group: Kept, plan: Plan, prefix: str) -> str:
    """What to do, a clause; empty where nothing is to be done. prefix: of the names of options."""
    if group.passing:
        return "it passes by itself"
    needed = [f"{prefix}{name}: true" for name in group.obstacle.cleared_by if name != POLICIES]
    if needed:
        return f"set {' and '.join(needed)} if that may be"
    if group.obstacle.id == NO_ROOM:
        return "; ".join([*_rooms(plan, prefix), "have them stopped by a policy"])
    if group.obstacle.id == NO_RESERVE:
        return "; ".join([*_smaller(plan, prefix), f"{prefix}reserve: none takes the risk"])
    return group.obstacle.advice


def clearing(plan: Plan, groups: Collection[Kept]) -> JsonObject:
    """The options of a plan with which all would leave that options can let go; empty if there is none."""
    named = {name for group in groups for name in group.obstacle.cleared_by}
    options: JsonObject = dict.fromkeys(sorted(named - {POLICIES}), True)
    if POLICIES in named:
        # The first rule that matches counts, and those that are there stay what they are.
        options[POLICIES] = [*plan.options.get(POLICIES, ()), _NOT_MIGRATABLE]
    return options


def obstacle_text(group: Kept, plan: Plan, prefix: str) -> str:
    """A sentence on what one obstacle keeps, and what to do."""
    verb = "has to be waited for" if group.passing else unable(group.blocked[0])
    if len(group.blocked) != 1 and group.passing:
        verb = "have to be waited for"
    todo = advice(group, plan, prefix)
    return printable(f"{group.whom} {verb} ({group.names}): {group.problem}{'; ' if todo else ''}{todo}.")


def obstacle_lines(plan: Plan, groups: Sequence[Kept], prefix: str) -> Iterator[str]:
    """What is to be known before anything else."""
    for group in groups:
        yield f"{group.whom} in {_numbered(group.batches)}: {group.problem}"
        yield f"    {group.names}"
        if example := _example(group):
            yield f"    such as: {example}"
        if todo := advice(group, plan, prefix):
            yield f"    -> {todo}"


def clearing_lines(plan: Plan, groups: Sequence[Kept], prefix: str) -> Iterator[str]:
    """The options that help, ready to be pasted."""
    if options := clearing(plan, groups):
        yield f"With these they would leave, or be off until their node is back{_unless(plan, options)}:"
        yield from (f"    {prefix}{name}: {_yaml(value)}" for name, value in options.items() if name != POLICIES)
        if POLICIES in options:
            yield f"    {prefix}{POLICIES}:"
            yield from (f"      - {_yaml(rule)}" for rule in options[POLICIES])


def counted(kinds: Iterable[str]) -> str:
    """How many objects there are of each kind, such as: 2 VMs and 1 pod."""
    counts = Counter(kinds)
    return " and ".join(
        f"{counts[kind]} {single if counts[kind] == 1 else several}"
        for kind, (single, several) in _NOUNS.items()
        if counts[kind]
    )


def some(names: Iterable[str]) -> str:
    """The first three, and how many more there are."""
    listed = list(names)
    more = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _rooms(plan: Plan, prefix: str) -> Iterator[str]:
    yield from _smaller(plan, prefix)
    if plan.options.get("room"):
        yield "make room"
    else:
        yield f"{prefix}room: 5 lets up to 5 VMs on other nodes move out of the way"


def _smaller(plan: Plan, prefix: str) -> Iterator[str]:
    batching = plan.options.get("batching")
    if isinstance(batching, Mapping) and batching.get("order") == "given" and sum(map(len, plan.batches)) > 1:
        yield f"{prefix}order: free looks for an order in which they can"
    if isinstance(batching, Mapping) and any(len(nodes) > 1 for nodes in plan.batches):
        yield f"a smaller {prefix}batch needs less room"


def _numbered(batches: Sequence[int]) -> str:
    if len(batches) == 1:
        return f"batch {batches[0]}"
    return f"{len(batches)} batches ({some(str(number) for number in batches)})"


def _example(group: Kept) -> str:
    """The scheduler's words, which differ with what each needs."""
    if group.obstacle.id not in (NO_ROOM, NO_RESERVE) or not group.blocked[0].reasons:
        return ""
    return group.blocked[0].reasons[0].removeprefix(f"{group.obstacle.problem}: ")


def _unless(plan: Plan, options: Mapping[str, Any]) -> str:
    return ", unless an earlier rule says otherwise" if POLICIES in options and plan.options.get(POLICIES) else ""


def _yaml(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)

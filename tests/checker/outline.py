# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a plan whatever cluster it is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

from checker.violation import Fault, PlanFlaw

_COUNTED = {
    "migrations": ActionKind.MIGRATE,
    "evictions": ActionKind.EVICT,
    "stops": ActionKind.STOP,
    "restarts": ActionKind.RESTART,
}


def waits_in_vain(plan: Plan) -> list[PlanFlaw]:
    """Ids that stand for two actions or for none, and circles: such a plan cannot even be carried out."""
    known = Counter(action.id for action in plan.actions)
    found = [PlanFlaw(Fault.TWICE, name, "it stands in the plan twice") for name, number in known.items() if number > 1]
    for action in plan.actions:
        missing = [name for name in action.after if name not in known]
        found += [PlanFlaw(Fault.UNKNOWN, action.id, f"it waits for {name}, which is no action") for name in missing]
    return found or [
        PlanFlaw(Fault.CIRCLE, name, "it waits for itself, by way of others") for name in sorted(_endless(plan))
    ]


def outlined(plan: Plan) -> Iterator[PlanFlaw]:
    """What the parts of a plan say of each other; nobody in it waits in vain."""
    waits = {action.id: set(action.after) for action in plan.actions}
    nodes = Counter(name for batch in plan.batches for name in batch)
    for name, number in nodes.items():
        if number > 1:
            yield PlanFlaw(Fault.TWICE, name, "it is maintained twice")
        else:
            yield from _finished(plan.of_node(name), name, waits)
    yield from _totals(plan)
    yield from _verdict(plan)


def _endless(plan: Plan) -> set[str]:
    """Ids of those who can never begin."""
    left = {action.id: set(action.after) for action in plan.actions}
    while able := [name for name, waits in left.items() if waits.isdisjoint(left)]:
        for name in able:
            del left[name]
    return {name for name in left if name in _ahead(left, name)}


def _ahead(waits: Mapping[str, set[str]], name: str) -> set[str]:
    """All that somebody waits for, directly or not."""
    found: set[str] = set()
    todo = [*waits[name]]
    while todo:
        other = todo.pop()
        if other not in found:
            found.add(other)
            todo += waits.get(other, ())
    return found


def _finished(own: Sequence[Action], node: str, waits: Mapping[str, set[str]]) -> Iterator[PlanFlaw]:
    """Whether a node is cordoned, emptied, maintained, uncordoned, and then gets back what was stopped for it."""
    stages = {action.kind: action for action in own if action.object.kind == "Node"}
    for kind in (ActionKind.CORDON, ActionKind.MAINTAIN, ActionKind.UNCORDON):
        if kind not in stages:
            yield PlanFlaw(Fault.UNFINISHED, node, f"no action is to {kind.value} it")
    maintain, uncordon = stages.get(ActionKind.MAINTAIN), stages.get(ActionKind.UNCORDON)
    cordon = stages.get(ActionKind.CORDON)
    leaving = [action for action in own if action.kind in LEAVING]
    needed = [(maintain, other) for other in (cordon, *leaving)]
    needed += [(action, cordon) for action in leaving]
    needed += [(uncordon, maintain)]
    for action in own:
        if action.kind is ActionKind.START:
            needed += [(action, uncordon), (action, _stop_of(action, own))]
    for later, earlier in needed:
        if later is not None and earlier is not None and not _follows(waits, later.id, earlier.id):
            yield PlanFlaw(Fault.UNFINISHED, later.id, f"it does not wait for {earlier.id}")
    starts = {action.object.title for action in own if action.kind is ActionKind.START}
    for action in own:
        if action.kind is ActionKind.STOP and action.object.title not in starts:
            yield PlanFlaw(Fault.UNFINISHED, action.id, "nothing starts it again")


def _follows(waits: Mapping[str, set[str]], later: str, earlier: str) -> bool:
    return earlier in waits[later] or earlier in _ahead(waits, later)


def _stop_of(start: Action, own: Sequence[Action]) -> Action | None:
    stops = (action for action in own if action.kind is ActionKind.STOP)
    return next((action for action in stops if action.object.title == start.object.title), None)


def _totals(plan: Plan) -> Iterator[PlanFlaw]:
    totals, kinds = plan.totals, Counter(action.kind for action in plan.actions)
    for name, kind in _COUNTED.items():
        if (told := getattr(totals, name)) != kinds[kind]:
            yield PlanFlaw(Fault.TOTALS, name, f"the totals tell of {told}, the actions of {kinds[kind]}")
    spans = totals.batch_seconds
    if spans and len(spans) != len(plan.batches):
        yield PlanFlaw(Fault.TOTALS, "batch_seconds", f"they are of {len(spans)} batches, of {len(plan.batches)}")
    if totals.batch_reserves and len(totals.batch_reserves) != len(plan.batches):
        many = f"{len(totals.batch_reserves)} batches, of {len(plan.batches)}"
        yield PlanFlaw(Fault.TOTALS, "batch_reserves", f"they are of {many}")
    if spans and totals.seconds != (None if None in spans else sum(span or 0 for span in spans)):
        yield PlanFlaw(Fault.TOTALS, "seconds", "they are not those of all batches together")
    bound = totals.lower_bound
    if bound is not None and bound > totals.migrations:
        yield PlanFlaw(Fault.TOTALS, "lower_bound", f"{totals.migrations} migrations are fewer than the {bound} proved")
    if totals.proof == "optimal" and bound != totals.migrations:
        yield PlanFlaw(Fault.TOTALS, "proof", "nothing proves that there are no fewer migrations")


def _verdict(plan: Plan) -> Iterator[PlanFlaw]:
    closed = {entry.node for entry in plan.blocked if not entry.passing}
    free = any(closed.isdisjoint(batch) for batch in plan.batches)
    wanted = Verdict.FEASIBLE if not closed else Verdict.PARTIAL if free else Verdict.INFEASIBLE
    if plan.verdict is not wanted:
        yield PlanFlaw(Fault.TOTALS, "verdict", f"by what is blocked it is {wanted.value}, not {plan.verdict.value}")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a plan once some of it has ended, what of it may begin, and what one after the other.

Of a batch of a run, whether it is its turn, or nodes before it are still out of service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan

# By these something leaves its node.
LEAVING = frozenset({ActionKind.MIGRATE, ActionKind.EVICT, ActionKind.RESTART, ActionKind.STOP})
# By these something comes to a node that the scheduler chooses.
PLACED = frozenset({ActionKind.EVICT, ActionKind.RESTART, ActionKind.START})


def has_left(action: Action, places: Mapping[str, str]) -> bool:
    """Whether what an action of LEAVING is about is no longer where it is to leave from.

    places: the node of each object that is there, by uid; what ended has none.
    """
    return places.get(action.object.uid) != action.source


def who_left(actions: Iterable[Action]) -> frozenset[str]:
    """Whatever leaves its node by one of these, as namespace/name."""
    return frozenset(action.object.title for action in actions if action.kind in LEAVING)


def ready(actions: Iterable[Action], ended: Collection[str]) -> tuple[Action, ...]:
    """Those that may begin, in the order of the plan. ended: ids."""
    return tuple(action for action in actions if action.id not in ended and all(name in ended for name in action.after))


def stages(plan: Plan) -> list[tuple[Action, ...]]:
    """All actions, such that each comes in the first part that is later than all it waits for, in the plan's order."""
    number: dict[str, int] = {}
    for action in plan.actions:  # whoever waits comes later than what it waits for
        number[action.id] = max((number[name] + 1 for name in action.after), default=0)
    found: list[list[Action]] = [[] for _number in range(max(number.values(), default=-1) + 1)]
    for action in plan.actions:
        found[number[action.id]].append(action)
    return [tuple(actions) for actions in found]


def left(plan: Plan, ended: Collection[str]) -> Plan:
    """The plan without the actions that have ended, whose ids these are. Nobody waits for them any more."""
    actions = (
        replace(action, after=tuple(name for name in action.after if name not in ended))
        for action in plan.actions
        if action.id not in ended
    )
    return replace(plan, actions=tuple(actions))


def passed_over(plan: Plan, gone: Collection[str]) -> Plan:
    """The plan without actions that have come about by themselves, maybe out of turn; these are their ids.

    Who waits for them to leave waits for those that they would have waited for.
    """
    ahead: dict[str, tuple[str, ...]] = {}
    actions: list[Action] = []
    for action in plan.actions:  # whoever waits comes later than what it waits for
        known = ahead if action.kind in LEAVING else {}
        names = (other for name in action.after for other in (known.get(name, ()) if name in gone else (name,)))
        after = tuple(dict.fromkeys(names))
        if action.id in gone:
            ahead[action.id] = after
        else:
            actions.append(replace(action, after=after))
    return replace(plan, actions=tuple(actions))


def undone(plan: Plan, done: Collection[str]) -> Plan:
    """The plan without nodes that are done, and what is for their sake. A batch without any other is empty then."""
    rest = left(plan, frozenset(action.id for action in plan.actions if action.node in done))
    batches = tuple(tuple(name for name in nodes if name not in done) for nodes in plan.batches)
    return replace(rest, batches=batches, blocked=tuple(entry for entry in plan.blocked if entry.node not in done))


def for_node(plan: Plan, node: str) -> Plan:
    """The plan with only those actions that maintain a node, and all that they wait for, directly or not."""
    needed = {action.id for action in plan.of_node(node)}
    for action in reversed(plan.actions):  # whoever waits comes later than what it waits for
        if action.id in needed:
            needed.update(action.after)
    return replace(plan, actions=tuple(action for action in plan.actions if action.id in needed))


def of_batch(plan: Plan, node: str) -> Plan:
    """The plan with only what is about a node's batch; what its actions wait for in earlier ones has ended."""
    number = plan.batch_of(node)
    own = tuple(action for action in plan.actions if action.batch == number)
    known = {action.id for action in own}
    actions = (replace(action, after=tuple(name for name in action.after if name in known)) for action in own)
    nodes = plan.batches[number - 1] if number is not None else ()
    blocked = tuple(entry for entry in plan.blocked if entry.node in nodes)
    return replace(plan, actions=tuple(actions), blocked=blocked)


def leaving(plan: Plan, node: str) -> Plan:
    """The plan with only what is to leave a node, or cannot."""
    return replace(
        plan,
        actions=tuple(action for action in plan.of_node(node) if action.kind in LEAVING),
        blocked=tuple(entry for entry in plan.blocked if entry.node == node),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """`number`: the batch's, from 1; None if these are no batch of the run.

    overdue: names of those before it that are not done. is_open: whether it may begin. message: why not, a sentence;
    empty if it may.
    """

    number: int | None
    overdue: tuple[str, ...]
    is_open: bool
    message: str


def turn_of(
    batch: Sequence[str], batches: Sequence[Sequence[str]], done: Collection[str], most_failed: int = 0
) -> Turn:
    """batch: names, in their order. batches: of the run. done: names of all that are.

    most_failed: how many before it need not be done. Without batches there is no run, and always a turn.
    """
    named = ", ".join(batch)
    if not batches:
        return Turn(None, (), True, "")
    if list(batch) not in [list(names) for names in batches]:
        why = f"{named}: these hosts are no batch of the plan, so nothing was begun{_missing(batch, batches)}."
        return Turn(None, (), False, why)
    number = [list(names) for names in batches].index(list(batch))
    overdue = tuple(sorted({name for names in batches[:number] for name in names}.difference(done)))
    if len(overdue) <= most_failed:
        return Turn(number + 1, overdue, True, "")
    be = "is" if len(overdue) == 1 else "are"
    why = f"{named}: not begun, because {', '.join(overdue)} of an earlier batch {be} not done."
    return Turn(number + 1, overdue, False, why)


def _missing(batch: Sequence[str], batches: Sequence[Sequence[str]]) -> str:
    """Who is not there of the planned batch that these are a part of, if they are one."""
    for names in batches:
        if batch and set(batch) < set(names):
            missing = [name for name in names if name not in batch]
            have, be = ("has", "is") if len(missing) == 1 else ("have", "are")
            return (
                f": {', '.join(missing)} of the same batch {have} failed before, could not be reached, or {be} left out"
            )
    return ""

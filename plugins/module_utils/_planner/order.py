# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of several plans put together: who still waits for whom, and in which order they stand."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

# What the next batch waits for: its hosts' turn comes when those of the batch before are done.
GIVING_BACK = (ActionKind.UNCORDON, ActionKind.START)


def closed(actions: Mapping[str, Action], nodes: Collection[str]) -> dict[str, Action]:
    """Nobody waits for what is no longer there, and each node is maintained when all that leaves it has left.

    Who was stopped starts when all that leaves the other nodes has left.
    """
    batches = {str(action.batch) for action in actions.values()}
    found = {}
    for name, action in actions.items():
        after = [other for other in action.after if other in actions or other.partition(".")[0] not in batches]
        if action.kind is ActionKind.MAINTAIN and action.node in nodes:
            own = [
                other.id
                for other in actions.values()
                if other.node == action.node and (other.kind in LEAVING or other.kind is ActionKind.CORDON)
            ]
            after = own if set(own) != set(after) else after
        elif action.kind is ActionKind.START and action.node in nodes:
            others = [other.id for other in actions.values() if other.node != action.node and other.kind in LEAVING]
            after += [other for other in others if other not in after]
        found[name] = action if tuple(after) == action.after else replace(action, after=tuple(after))
    return found


def all_ahead(actions: Mapping[str, Action], name: str) -> set[str]:
    """Ids of all that an action waits for, directly or not."""
    return _reached([name], lambda other: actions[other].after if other in actions else ())


def _reached(names: Iterable[str], step: Callable[[str], Iterable[str]]) -> set[str]:
    """All that is reached from some names by one step or more."""
    found: set[str] = set()
    left = list(names)
    while left:
        for other in step(left.pop()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def uncircled(
    actions: Mapping[str, Action], planned: Mapping[str, Action], begun: Collection[str]
) -> dict[str, Action]:
    """Nobody waits in a circle: whoever would waits as it was found now, beside others that it waits for still.

    planned: actions as they were found now, without a circle. begun: ids of those that need not wait any more. What
    was not found now waits for nobody of its circle.
    """
    found = dict(actions)
    # A wait as it was found now may close another circle, with those that are left; in the end there is none but those.
    while _has_circle(found) and _breaks_some(found, planned, begun):
        pass
    return found


def _has_circle(actions: Mapping[str, Action]) -> bool:
    try:
        TopologicalSorter({name: action.after for name, action in actions.items()}).prepare()
    except CycleError:
        return True
    return False


def _breaks_some(found: dict[str, Action], planned: Mapping[str, Action], begun: Collection[str]) -> bool:
    """Let whoever waits in a circle wait as it was found now. False where all do."""
    has_changed = False
    behind: defaultdict[str, set[str]] = defaultdict(set)
    for name, action in found.items():
        for other in action.after:
            behind[other].add(name)
    for name in sorted(found, key=lambda name: name not in begun):
        circling = _reached([name], lambda other: behind[other]).intersection(found[name].after)
        needed = all_ahead(planned, name) if circling else set()
        if vain := circling - needed:
            has_changed = True
            after = [other for other in found[name].after if other not in vain]
            new = [other for other in found if other in needed and other not in after and name not in begun]
            found[name] = replace(found[name], after=(*after, *new))
            for other in vain:
                behind[other].discard(name)
            for other in new:
                behind[other].add(name)
    return has_changed


def spared(actions: Mapping[str, Action], kept: Mapping[str, Action]) -> dict[str, Action]:
    """Who leaves waits for nobody whom it waits for through another one anyway, unless it does so in what is kept."""
    found = dict(actions)
    for name, action in actions.items():
        if action.kind in LEAVING:
            stays = kept[name].after if name in kept else ()
            through = _reached(action.after, lambda other: actions[other].after if other in actions else ())
            after = (
                other for other in action.after if other in stays or other not in through or _is_cordon(actions, other)
            )
            found[name] = replace(action, after=tuple(after))
    return found


def _is_cordon(actions: Mapping[str, Action], name: str) -> bool:
    return name in actions and actions[name].kind is ActionKind.CORDON


def followed(later: Iterable[Action], was: Iterable[Action], now: Iterable[Action]) -> Iterator[Action]:
    """Actions of later batches, when those of a batch are others now: the next one waits for all that give it back."""
    before = {action.id for action in was if action.kind in GIVING_BACK}
    after = [action.id for action in now if action.kind in GIVING_BACK]
    for action in later:
        if before.isdisjoint(action.after):
            yield action
        else:
            kept = [name for name in action.after if name not in before or name in after]
            yield replace(action, after=(*kept, *(name for name in after if name not in kept)))


def in_order(actions: Mapping[str, Action], order: Sequence[str]) -> Iterator[Action]:
    """As they were, the new ones behind, but nobody before what it waits for."""
    known = set(order)
    rank = {name: index for index, name in enumerate([*order, *(name for name in actions if name not in known)])}
    waits = {name: {other for other in action.after if other in actions} for name, action in actions.items()}
    behind: defaultdict[str, list[str]] = defaultdict(list)
    for name, others in waits.items():
        for other in others:
            behind[other].append(name)
    ready = [(rank[name], name) for name, others in waits.items() if not others]
    heapq.heapify(ready)
    while ready:
        _rank, name = heapq.heappop(ready)
        yield actions[name]
        for other in behind[name]:
            waits[other].discard(name)
            if not waits[other]:
                heapq.heappush(ready, (rank[other], other))


def wholly(found: Mapping[str, Action], name: str) -> Action:
    """An action that says itself whom it waits for through others, as these may be kept as they were.

    Also for those of its batch that are none of these, as they have begun.
    """
    action = found[name]
    through = all_ahead(found, name).difference(action.after) if action.kind in LEAVING else set()
    begun = sorted(other for other in through - found.keys() if other.startswith(f"{action.batch}."))
    return replace(action, after=(*action.after, *(other for other in found if other in through), *begun))


def as_planned(old: Mapping[str, Action], fresh: Action, turns: Mapping[str, int]) -> Action:
    """The action as it was planned, if it still does the same; it may have to wait for more, or for others.

    turns: the place of each action in an order in which nobody comes before what it waits for.
    """
    earlier = old.get(fresh.id)
    if earlier is not None and earlier.kind is ActionKind.EVICT and earlier.target is None:
        fresh = replace(fresh, target=None)  # where its replacement lands is for the scheduler to say
    if earlier is not None and earlier.kind is ActionKind.START:
        return replace(earlier, object=fresh.object)
    if earlier is None or (earlier.source, earlier.target, earlier.selector) != (
        fresh.source,
        fresh.target,
        fresh.selector,
    ):
        return fresh
    # Other words of the scheduler are no other reason; that KubeVirt refuses it, or does not any more, is one.
    why = earlier.why if earlier.is_refused == fresh.is_refused else fresh.why
    same = replace(earlier, object=fresh.object, why=why)
    if earlier.kind not in LEAVING:
        return same
    waits = tuple(name for name in earlier.after if turns.get(name, -1) < turns[fresh.id])
    return replace(same, after=(*waits, *(name for name in fresh.after if name not in waits)))

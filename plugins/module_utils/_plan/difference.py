# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two plans compared, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Plan,
    is_foretold,
    kin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

_NOUNS = {"VirtualMachineInstance": "VM", "Pod": "pod", "Node": "node"}
_KEPT = {
    ActionKind.EVICT: "is evicted",
    ActionKind.STOP: "stops until its node is back",
}

# What options are called of which people do not say the names.
OPTIONS_IN_WORDS = {"batching": "wishes for its batches", "allowed": "allowances for evictions"}

# The nodes of a batch are all cordoned before anything leaves them; that they are others is told of the batches.
_CORDON = f"{ActionKind.CORDON.value}."

# Node that is left, kind and title: of each node something leaves once.
_Key = tuple[str, str, str]


def differences(before: Plan, after: Plan, *, passing: bool = True, whole: bool = False) -> list[str]:
    """What leaves differently, a line each; in the order of the second plan, then what is no longer in it.

    passing: whether it is told, too, who has to wait for what passes by itself, and who comes back on another node, of
    which the scheduler has the last word. whole: also who may leave earlier, and for what the plans were made. Of plans
    for two clusters only that they are.
    """
    was, now = before.cluster.uid, after.cluster.uid
    if was and now and was != now:
        return [f"it is for cluster {now}; the one before is for cluster {was}"]
    return [
        *_of_actions(before, after, fewer=whole),
        *(_of_starts(before, after) if passing else ()),
        *_of_blocked(before, after, passing=passing),
        *_of_batches(before, after),
        *(_of_circumstances(before, after) if whole else ()),
    ]


def way_out(action: Action) -> str:
    """What becomes of the object of an action by which it leaves, as in `goes to worker-3`."""
    if action.kind is ActionKind.MIGRATE:
        where = action.target or ",".join(f"{key}={value}" for key, value in sorted(action.selector.items()))
        return f"goes to {where or 'another node'}{room(action)}"
    if action.kind is ActionKind.RESTART:
        return f"starts anew on {action.target}" if action.target else "starts anew elsewhere"
    return _KEPT[action.kind]


def room(action: Action) -> str:
    """For whose sake a VM leaves a node that stays in service; empty if that is none."""
    return f", to make room on {action.source}" if action.makes_room else ""


def unable(entry: Blocked) -> str:
    """What is wrong with what is blocked for good, a verb: a node stays where it is anyway."""
    return "cannot be out of service" if entry.object.kind == "Node" else "cannot leave"


def named(reference: ObjectReference) -> str:
    """As in `VM shop/web-1`."""
    return f"{_NOUNS.get(reference.kind, reference.kind)} {reference.title}"


def _of_actions(before: Plan, after: Plan, *, fewer: bool) -> Iterator[str]:
    """fewer: whether those are told who wait for less."""
    new = _leaving(after)
    old = _under_new_keys(_leaving(before), new)
    # What was only foretold has got its name by now, or is not there.
    foretold = Counter(_kin(action) for key, action in old.items() if key not in new and is_foretold(action))
    old = {key: action for key, action in old.items() if key in new or not is_foretold(action)}
    found: set[str] = set()
    there = {_step(action.id) for action in new.values()} if fewer else set[str]()
    for key, action in new.items():
        if key not in old and foretold[_kin(action)] and not is_foretold(action):
            foretold[_kin(action)] -= 1
            found.add(action.id)
        elif key in old or not is_foretold(action):
            yield from _of_action(old.get(key), action, found, there)
    blocked = {(reference.kind, reference.title) for reference in (entry.object for entry in after.blocked)}
    for key, action in old.items():
        if key not in new and key[1:] not in blocked:
            yield f"{named(action.object)} has nothing to do any more; it was: {way_out(action)}"


def _under_new_keys(old: Mapping[_Key, Action], new: Mapping[_Key, Action]) -> dict[_Key, Action]:
    """The old ones, where an object leaves another node of the same batch now as it does now."""
    moved = {(action.batch, *key[1:]): key for key, action in new.items() if key not in old}
    return {key if key in new else moved.get((action.batch, *key[1:]), key): action for key, action in old.items()}


def _of_action(earlier: Action | None, action: Action, found: Collection[str], there: Collection[str]) -> Iterator[str]:
    """A line at most. found: ids of actions that were foretold, under others.

    there: steps of which it is told, too, that they are not waited for any more.
    """
    new_waits, no_more = set[str](), set[str]()
    if earlier is not None:
        known, waits_for = set(map(_step, earlier.after)), set(map(_step, action.after))
        new_waits = {name for name in set(action.after).difference(found) if _step(name) not in known}
        no_more = {name for name in earlier.after if _step(name) in there and _step(name) not in waits_for}
    if earlier is None:
        yield f"{named(action.object)} {way_out(action)}, which is new"
    elif way_out(earlier) != way_out(action):
        yield f"{named(action.object)} {way_out(action)}{_as(_why_not(earlier, action))}; it was: {way_out(earlier)}"
    elif earlier.object.uid and action.object.uid and earlier.object.uid != action.object.uid:
        yield f"{named(action.object)} is another one of the same name"
    elif waits := sorted(name for name in new_waits if not _step(name).startswith(_CORDON)):
        yield f"{named(action.object)} waits for {', '.join(waits)}"
    elif no_more:
        yield f"{named(action.object)} does not wait for {', '.join(sorted(no_more))} any more"


def _why_not(earlier: Action, action: Action) -> str:
    """Why something does not leave as it was to leave, a clause; empty if nobody has told."""
    harmful = (ActionKind.RESTART, ActionKind.STOP)
    if action.kind in harmful and earlier.kind not in harmful:
        return action.cause
    if action.kind is ActionKind.MIGRATE and earlier.kind in harmful:
        return "it can be migrated"
    return action.objection_to(earlier.target or "")


def _as(why: str) -> str:
    return f", as {why}" if why else ""


def _of_starts(before: Plan, after: Plan) -> Iterator[str]:
    """Of what starts again in both. What does in one alone is stopped in that alone, or has started by now."""
    old = _starting(before)
    there = {_step(action.id) for action in old.values()}
    for key, action in _starting(after).items():
        earlier = old.get(key)
        if earlier is None:
            continue
        known = set(map(_step, earlier.after))
        if earlier.target != action.target:
            yield f"{named(action.object)} {_comes_back(action)}; it was: {_comes_back(earlier)}"
        elif first := sorted(name for name in action.after if _step(name) in there and _step(name) not in known):
            yield f"{named(action.object)} starts after {', '.join(first)}"


def _starting(plan: Plan) -> dict[_Key, Action]:
    found = (action for action in plan.actions if action.kind is ActionKind.START)
    return {(action.node, action.object.kind, action.object.title): action for action in found}


def _comes_back(action: Action) -> str:
    return f"comes back on {action.target}" if action.target else "has no node to come back to"


def _step(name: str) -> str:
    """What an action's id says beside the number of its batch, which is another one when a batch before it is."""
    return name.partition(".")[2]


def _kin(action: Action) -> tuple[object, ...]:
    reference = action.object
    return action.kind, action.node, reference.namespace, kin(reference)


def _leaving(plan: Plan) -> dict[_Key, Action]:
    found = (action for action in plan.actions if action.kind in LEAVING)
    return {(action.node, action.object.kind, action.object.title): action for action in found}


def _of_blocked(before: Plan, after: Plan, *, passing: bool) -> Iterator[str]:
    known = {(entry.object.title, entry.reasons, entry.passing) for entry in before.blocked}
    for entry in after.blocked:
        if (passing or not entry.passing) and (entry.object.title, entry.reasons, entry.passing) not in known:
            verb = "has to wait" if entry.passing else unable(entry)
            yield f"{named(entry.object)} {verb}: {'; '.join(entry.reasons)}"
    # What leaves after all has an action that is new.
    nodes = {entry.object.title for entry in after.blocked if entry.object.kind == "Node"}
    for entry in before.blocked:
        name = entry.object.title
        if entry.object.kind == "Node" and name not in nodes and after.batch_of(name) is not None:
            yield f"{named(entry.object)} can be out of service after all"


def _of_batches(before: Plan, after: Plan) -> Iterator[str]:
    if _batches(before) != _batches(after):
        yield f"the batches are {_batches(after)}; they were {_batches(before)}"


def _of_circumstances(before: Plan, after: Plan) -> Iterator[str]:
    # An earlier version's document does not say all of them.
    names = sorted({*before.options}.intersection(after.options))
    other = [name for name in names if (before.options[name] or None) != (after.options[name] or None)]
    if other:
        yield f"it was asked for with other {', '.join(OPTIONS_IN_WORDS.get(name, name) for name in other)}"
    for name, was, now in (
        ("Kubernetes", before.cluster.kubernetes, after.cluster.kubernetes),
        ("KubeVirt", before.cluster.kubevirt, after.cluster.kubevirt),
    ):
        if was and now and was != now:
            yield f"it is for {name} {now}; the one before is for {was}"


def _batches(plan: Plan) -> str:
    return ", ".join("+".join(nodes) for nodes in plan.batches if nodes) or "none"

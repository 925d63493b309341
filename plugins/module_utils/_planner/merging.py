# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch of a plan, and what was planned anew for it, put together: what stays as it was, and what is new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Blocked, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING, for_node, who_left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import as_told
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import (
    as_planned,
    closed,
    followed,
    in_order,
    spared,
    uncircled,
    wholly,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import totals, verdict


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """One of the batches of a plan, which is mended.

    nodes: of the batch, those that are not given back. node: the one that may change, None for all. ended: ids of
    actions, which stay as they are.
    """

    plan: Plan
    number: int
    nodes: Sequence[str]
    node: str | None
    ended: frozenset[str]

    def actions(self) -> list[Action]:
        """All of the batch, in their order."""
        return [action for action in self.plan.actions if action.batch == self.number]

    def changeable(self) -> Sequence[Action]:
        """What may change of the batch: all, or what is for the node's sake with all that this waits for."""
        return self.actions() if self.node is None else for_node(self.plan, self.node).actions

    def merged(self, found: Sequence[Action], blocked: Sequence[Blocked], untouched: Collection[str]) -> Plan:
        """The plan with the batch as it was found now, as far as it may change; what is the same stays as it was.

        untouched: ids of actions that have begun, or ended, as they were planned.
        """
        whole = {action.id: action for action in found}
        leaving = who_left(self.changeable())
        fresh = {
            name: wholly(whole, name)
            for name, action in whole.items()
            # Places were found beside where those others go now: a plan with their old ones would not be one.
            if self.node in (None, action.node)
            or (action.kind in LEAVING.union({ActionKind.START}) and action.object.title in leaving)
        }
        # Also for whom it waits by what has begun elsewhere since: a wait for nobody would be dropped.
        ahead = dict.fromkeys(name for action in fresh.values() for name in action.after)
        known = {action.id: _way(action) for action in self.actions()}
        fresh |= {
            name: wholly(whole, name)
            for name in ahead
            if name in whole.keys() - fresh.keys() and (name not in known or known[name] != _way(whole[name]))
        }
        old = self._old(fresh)
        turns = {action.id: index for index, action in enumerate(found)}
        actions: dict[str, Action] = {}
        for action in (*old.values(), *fresh.values()):
            name = action.id
            if name in actions:
                continue
            if name in untouched or (name in self.ended and name in old) or action.node not in self.nodes:
                actions[name] = old[name]
            elif name in fresh:
                actions[name] = as_planned(old, fresh[name], turns)
            elif self._still(old, old[name], {entry.id for entry in found}, actions):
                actions[name] = old[name]
        begun = self.ended.union(untouched)
        actions = spared(uncircled(closed(actions, self.nodes), {**whole, **fresh}, begun), old)
        return self._with(list(in_order(actions, list(old))), blocked, untouched)

    def _old(self, fresh: Mapping[str, Action]) -> dict[str, Action]:
        """The batch as it was, but for what has ended and leaves another node now, by a fresh action of that id."""
        known = {action.id: action for action in self.actions()}
        again = {name for name in self.ended.intersection(known, fresh) if known[name].source != fresh[name].source}
        return {
            name: replace(action, after=tuple(other for other in action.after if other not in again))
            for name, action in known.items()
            if name not in again
        }

    def _still(self, old: Mapping[str, Action], action: Action, found: Collection[str], known: Collection[str]) -> bool:
        """Whether an action that was not planned again stays: a node's own, or of a node that may not change.

        Who starts again stays with its stop, or without one, as that may have ended and been forgotten.
        """
        if action.kind is ActionKind.START:
            stops = (name for name in action.after if name in old and old[name].kind is ActionKind.STOP)
            return all(name in known for name in stops if old[name].object.title == action.object.title)
        if action.kind not in LEAVING:
            return True
        return self.node is not None and action.node != self.node and action.id in found

    def _with(self, actions: Sequence[Action], blocked: Sequence[Blocked], untouched: Collection[str]) -> Plan:
        looked_at = {self.node} if self.node is not None else set(self.nodes)
        over = self.ended.union(untouched)
        busy = {
            (action.object.kind, action.object.title, action.source or action.node)
            for action in actions
            if action.id in over
        }
        entries = (
            *(entry for entry in self.plan.blocked if entry.node not in looked_at),
            *(
                entry
                for entry in blocked
                if entry.node in looked_at and (entry.object.kind, entry.object.title, entry.node) not in busy
            ),
        )
        order = {entry: index for index, entry in enumerate(self.plan.blocked)}
        known = {(entry.object, entry.node, entry.passing): entry for entry in self.plan.blocked}
        entries = tuple(
            sorted(
                map(partial(as_told, known), entries),
                key=lambda entry: (self.plan.batch_of(entry.node) or 0, order.get(entry, len(order))),
            )
        )
        earlier = [action for action in self.plan.actions if action.batch < self.number]
        later = [action for action in self.plan.actions if action.batch > self.number]
        everything = (*earlier, *actions, *followed(later, self.actions(), actions))
        counted = totals(everything, self.plan.totals.batch_seconds, self.plan.totals.batch_reserves)
        return replace(
            self.plan,
            actions=everything,
            blocked=entries,
            verdict=verdict(self.plan.batches, entries),
            totals=replace(counted, seconds=self.plan.totals.seconds),
        )


def _way(action: Action) -> tuple[object, ...]:
    """Who leaves, which is another one of the same name when it was made anew, from where and where to."""
    return action.object, action.source, action.target

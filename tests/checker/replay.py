# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan carried out action by action, in any order that its `after` allows, with any of them in flight."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan

from checker.cluster import CarriedCluster
from checker.enactment import Enactment
from checker.order import Choice, Order
from checker.violation import Fault, PlanFlaw


class Replay:
    """`violations`: what was not legal. `ended`: ids of what is over. `cluster`: as it is by now.

    plan: one in which nobody waits in vain. choice: decides where pods are made again; None: it is as the plan
    expects. foreseen: where those come, by ids of actions, whose node the plan does not tell, as
    `landed` of another replay had it in the end. emptied: is told of each batch when all that leaves has left, before a
    node is maintained.
    """

    def __init__(
        self,
        lists: Lists,
        plan: Plan,
        order: Order,
        *,
        choice: Choice | None = None,
        foreseen: Mapping[str, str] | None = None,
        emptied: Callable[[CarriedCluster, int], None] | None = None,
    ) -> None:
        self.cluster = CarriedCluster(lists)
        self.violations: list[PlanFlaw] = []
        self.ended: set[str] = set()
        self.landed: Mapping[str, str] = {}
        self._enactment = Enactment(self.cluster, plan, self._tell, choice, foreseen)
        self._order, self._emptied, self._told = order, emptied, set[int]()
        self._begun: list[Action] = []
        self._left: dict[str, str | None] = {}
        self._take(plan)

    @property
    def came(self) -> Mapping[str, str]:
        """Where those came that the scheduler has placed, by ids of actions."""
        return self._enactment.came

    @property
    def begun(self) -> tuple[Action, ...]:
        """What is in flight."""
        return tuple(self._begun)

    def look(self) -> dict[str, list[Any]]:
        """The lists that somebody would read now, when the scheduler has looked after those that wait for a node."""
        self._enactment.serve()
        found = self.cluster.lists()
        return {**found, "vmis": [*found["vmis"], *self._enactment.ending()]}

    def fail(self, action: Action) -> None:
        """A migration that is in flight comes to nothing."""
        self._enactment.fail(action)
        self._begun.remove(action)

    def follow(
        self,
        plan: Plan,
        order: Order,
        *,
        choice: Choice | None = None,
        emptied: Callable[[CarriedCluster, int], None] | None = None,
    ) -> None:
        """Go on by another plan, in another order. What is in flight goes on as it has begun.

        What has ended has not if that plan takes it from another node than it has left: it has come there since.
        """
        self._enactment.follow(plan, choice)
        self.ended -= {
            action.id for action in plan.actions if self._left.get(action.id, action.source) != action.source
        }
        self._order, self._emptied = order, emptied
        self._take(plan)

    def run(self, most: int | None = None) -> None:
        """Until nothing may begin any more, or `most` have ended."""
        while most is None or len(self.ended) < most:
            going = [action for action in self._begun if self._enactment.may_end(action)]
            if not self._able and not going:
                break
            self._step(self._order.next(self._able, going))
        else:
            return
        for action in self._begun:
            self._enactment.give_up(action)
        self.landed = self._enactment.finish()

    def _step(self, action: Action) -> None:
        self._enactment.hurries = self._order.hurries()
        if action not in self._begun:
            self._able.remove(action)
            if action.kind is ActionKind.MAINTAIN and self._emptied is not None and action.batch not in self._told:
                self._told.add(action.batch)
                self._emptied(self.cluster, action.batch)
            self._enactment.begin(action)
            self._begun.append(action)
        elif self._enactment.end(action):
            self._begun.remove(action)
            self.ended.add(action.id)
            self._left[action.id] = action.source
            for follower in self._followers[action.id]:
                self._waits[follower.id] -= 1
                if not self._waits[follower.id] and follower not in self._begun:
                    insort(self._able, follower, key=lambda entry: self._turns[entry.id])

    def _take(self, plan: Plan) -> None:
        over, begun = self.ended, {action.id for action in self._begun}
        left = [action for action in plan.actions if action.id not in over]
        self._turns = {action.id: number for number, action in enumerate(plan.actions)}
        self._waits = {action.id: len(set(action.after) - over) for action in left}
        self._followers: defaultdict[str, list[Action]] = defaultdict(list)
        for action in left:
            for name in set(action.after) - over:
                self._followers[name].append(action)
        self._able = [action for action in left if not self._waits[action.id] and action.id not in begun]

    def _tell(self, fault: Fault, subject: str, problem: str) -> None:
        self.violations.append(PlanFlaw(fault, subject, problem))

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty a node by a plan, and plan anew what does not come about.

The node counts as empty only by a look of its own, taken when nothing is under way any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining, telling
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import Landings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import leaving, left

# A pause between two plans lasts at least so many seconds, and so many times as long as the last plan took.
_LEAST_PAUSE, _SHARE = 1.0, 4.0


class Replan(Protocol):
    """What is left of a plan, mended by a fresh look at the whole cluster. Raises Failure, InvalidRequest.

    failures: by title of a VM, nodes to which it could not be migrated. hopeless: titles of those that are not tried
    again. ended: ids of actions. replaced: ids of those that others of their names have come for. first: uids of the
    pods that were there at first, as NodeDrain has them: others that tolerate the cordon would come again.
    """

    def __call__(
        self,
        plan: Plan,
        failures: Mapping[str, Collection[str]],
        hopeless: Collection[str],
        ended: Collection[str],
        replaced: Collection[str],
        first: Collection[str] | None,
    ) -> Plan: ...


class Memory(Protocol):
    """What outlives the process. Nothing is raised."""

    def recall(self, record: Record, now: float) -> Record:
        """The record of a drain that begins, with what another one of the same maintenance has left."""

    def keep(self, record: Record) -> None: ...


@dataclass(kw_only=True)
class NodeDrain(PlanRun):
    """planned: the plan as it was given or made, before it was mended. replan: mends what is left of the plan.

    missed: ids of actions of `planned` whose objects were not there when it began. memory: what the next process gets
    to know.
    retries: how often a VM whose migration failed is migrated again. max_failed: when more VMs than that have failed
    for good, nothing more is begun; None for no limit. before: titles of all that was to leave at first. first: uids of
    the pods among it, None before the first look. is_lost: something will not leave. failed: how many VMs had failed
    for good when that was too many, else 0. off: titles of VMs that were to be restarted and do not run. done: nodes of
    the plan that its run is done with, None if nobody has looked. landings: where evicted pods have come up again, None
    as long as nobody has looked.
    """

    planned: Plan
    replan: Replan
    memory: Memory
    retries: int
    missed: frozenset[str] = frozenset()
    max_failed: int | None = None
    done: int | None = None
    landings: Landings | None = None
    first: frozenset[str] | None = None
    before: tuple[str, ...] = ()
    here: draining.Remaining = field(default_factory=lambda: draining.Remaining((), (), ()))
    is_lost: bool = False
    failed: int = 0
    off: tuple[str, ...] = ()
    _planned_for: frozenset[str] = frozenset()
    _back: frozenset[str] = frozenset()
    _told_of: frozenset[str] = frozenset()
    _plan_at: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left on the node, as was seen at last, and what was to be restarted runs."""
        return self.is_over and not (self.is_lost or self.off)

    def rehearse(self) -> None:
        """A VM that cannot be migrated as planned is planned for anew, as when the node is drained.

        Raises Failure, InvalidRequest.
        """
        super().rehearse()
        for _again in range(self.retries + 1):
            failed = draining.to_replan(self.plan, self.record)
            if not failed:
                return
            # Of all the others nothing was done.
            before, self.record = self.record, Record(failed)
            try:
                self._replan()
            except (Failure, InvalidRequest):
                self.record = before  # which says what has led there
                raise
            super().rehearse()

    def _survey(self) -> None:
        """What the plan does not know is planned for, as it would be when the node is drained."""
        super()._survey()
        if draining.unplanned(self.plan, self.record, self.here):
            self._replan()
            super()._survey()

    def _begin(self) -> None:
        super()._begin()
        self.record = self.memory.recall(self.record, self._now())
        self.means.teller.tell(telling.to_do(self.record))

    def _guard(self, age: float) -> None:
        """Before anything is done, what is about to begin is kept: whoever goes on has to wait for it."""
        super()._guard(age)
        self.memory.keep(self.record)

    def _told_elsewhere(self) -> Collection[str]:
        return telling.of_others(self.plan, self.execution.node, self.record)

    def _tell_totals(self) -> None:
        self.means.teller.stands(telling.standing(self.plan, self.execution.node, self.record, self.done))

    def _conclude(self) -> None:
        """See whether it is over, or whether another plan is needed."""
        if self.here.none and not self.record.unfinished:
            if self._is_empty():
                self._guard(0.0)  # at last: whoever stood still before may not know that the cordon is off
                self.is_over = True
        elif self._is_given_up():
            self.is_over = self.is_lost = not draining.under_way(self.record)
        elif self._needs_plan():
            self.execution = replace(self.execution, begins=True)
            self._replan()
        else:
            # What may have been asked for is asked about, and taken back, before it ends.
            lost, was_taken_back = self._is_lost(), not self.execution.begins
            self.execution = replace(self.execution, begins=not lost)
            if lost and not draining.under_way(self.record):
                self.is_over = self.is_lost = not was_taken_back or self._is_lost(anew=True)

    def _is_lost(self, *, anew: bool = False) -> bool:
        """anew: by lists read anew, as a watch may lag behind an answer."""
        if anew:
            self.means.looks.forget()
            self._look(0.0)
        return draining.is_lost(self.plan, self.record, self.here)

    def _look(self, seconds: float) -> Observation:
        look = super()._look(seconds)
        self.here = draining.remaining(self.execution.node, look, self.first)
        self.off = draining.off(self.record, look)
        if self.first is None:
            self.first = frozenset(pod.uid for pod in self.here.pods)
            self.before = tuple(self.here.titles())
        return look

    def _is_empty(self) -> bool:
        """By lists read anew, as a watch may lag behind."""
        self.means.looks.forget()
        self._look(0.0)
        return self.here.none

    def newcomers(self) -> tuple[str, ...]:
        """Titles of what has come to the node since the first look, by lists read anew. Raises Failure."""
        if self.first is None:
            return ()
        self.means.looks.forget()
        self._look(0.0)
        return tuple(title for title in self.here.titles() if title not in self.before)

    def _is_given_up(self) -> bool:
        """Whether too many VMs have failed for good. What is in flight then is followed to its end."""
        if self.max_failed is not None and not self.failed:
            failed = len(draining.failed_machines(self.plan, self.record, self.here)) + len(self.off)
            if failed > self.max_failed:
                self.failed = failed
                self.execution = replace(self.execution, begins=False)
                self.means.teller.tell(f"VMs that have failed for good: {failed}. Nothing more is begun")
        return bool(self.failed)

    def _needs_plan(self) -> bool:
        back = draining.returned(self.plan, self.record, self.here)
        doubtful, self._back = back - self._back, back
        self._told_of &= back
        if doubtful:  # a watch may lag behind what was seen to leave: lists read anew cost less than a plan
            self.means.looks.forget()
        new = draining.unplanned(self.plan, self.record, self.here) - doubtful
        if new - self._planned_for:
            return True
        waiting = any(isinstance(entry, Migrating) and entry.refusal for entry in self.record.unfinished)
        passing = any(entry.passing for entry in self.plan.blocked)
        return bool(new or waiting or passing) and self.means.clock.steady() >= self._plan_at

    def _replan(self) -> None:
        # What has come to a cordoned node may have come because it is not cordoned any more.
        self._guard(0.0)
        clock, node = self.means.clock, self.execution.node
        begun = clock.steady()
        failures = draining.failures(self.record)
        hopeless = {title for title, nodes in failures.items() if len(nodes) > self.retries}
        replaced = draining.replaced(self.record, self.here)
        returned = draining.returned(self.plan, self.record, self.here)
        over = {
            name: entry
            for name, entry in self.record.entries.items()
            if not (entry.unfinished or entry.has_failed or name in replaced)
        }
        # Who was brought back has to find a place again, like anybody who is here; a pod is never.
        ended = [name for name, entry in over.items() if entry.uid not in returned or isinstance(entry, Evicting)]
        self._planned_for = draining.unplanned(self.plan, self.record, self.here)
        plan = self.replan(self.plan, failures, hopeless, ended, replaced, self.first)
        if returned:  # of who is only seen so by a watch that lags, nothing is begun again
            self.means.looks.forget()
            self._look(0.0)
            returned &= draining.returned(self.plan, self.record, self.here)
        gone = [name for name, entry in over.items() if entry.uid not in returned]
        own = {item.uid for item in self.here.all}
        for entry in over.values():
            if entry.uid in returned - self._told_of:
                self.means.teller.tell(telling.brought_back(entry, node if entry.uid in own else ""))
        self._told_of |= returned
        for line in differences(leaving(left(self.plan, gone), node), leaving(left(plan, gone), node)):
            self.means.teller.tell(f"the plan has changed: {line}")
        self._follow(plan, returned)
        self.means.looks.forget()  # the plan may know what the watches do not show yet
        self._plan_at = clock.steady() + max(_LEAST_PAUSE, _SHARE * (clock.steady() - begun))

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loops, and what they stand on, that are wrong on purpose, as the reducers of `mutants`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import moves_run, plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.undoing import Undoing, Undone
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import (
    cancel as cancel_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining, reducer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan import remainder
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

from simulation import controllers, deeds, process
from simulation.fates import CHANGED
from simulation.world import Pod, Vmi, World

Patch = Callable[[pytest.MonkeyPatch], None]


def always(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_names: value


def forgets_what_waits_for_what(patch: pytest.MonkeyPatch) -> None:
    """With the plan that it follows, so that nothing in that tells."""
    right = PlanRun._follow

    def follow(self: PlanRun, plan: Plan, *returned: frozenset[str]) -> None:
        right(self, replace(plan, actions=tuple(replace(action, after=()) for action in plan.actions)), *returned)

    patch.setattr(PlanRun, "_follow", follow)


def goes_by_a_scheduler_without_rules(patch: pytest.MonkeyPatch) -> None:
    """What the model's own scheduler lets through is judged as well."""

    def to_start(_world: World, vmi: Vmi, pods: list[Pod]) -> Any:
        yield (controllers._schedule, (vmi, pods[0])) if pods else (controllers._bind, (vmi, "n6"))

    patch.setattr(controllers, "_to_start", to_start)


def ignores_answers_that_are_lost(patch: pytest.MonkeyPatch) -> None:
    right = reducer.answered

    def answered(record: Any, answers: Any, now: float) -> Any:
        return right(record, [answer for answer in answers if not answer.lost], now)

    patch.setattr(plan_run, "answered", answered)


def takes_a_lost_answer_for_a_yes(patch: pytest.MonkeyPatch) -> None:
    right = reducer.answered

    def answered(record: Any, answers: Any, now: float) -> Any:
        return right(record, [replace(answer, refused="", lost=False) for answer in answers], now)

    patch.setattr(plan_run, "answered", answered)


def takes_a_conflict_for_a_lasting_no(patch: pytest.MonkeyPatch) -> None:
    right = reducer.answered

    def answered(record: Any, answers: Any, now: float) -> Any:
        lasting = (replace(answer, passing=answer.passing and answer.refused != CHANGED) for answer in answers)
        return right(record, lasting, now)

    patch.setattr(plan_run, "answered", answered)


def believes_a_watch_that_has_to_list_anew(patch: pytest.MonkeyPatch) -> None:
    """What it has not been shown yet has not happened: a node without news is an empty one."""
    right = PlanRun._look

    def look(self: PlanRun, seconds: float) -> Observation:
        try:
            return right(self, seconds)
        except Failure as error:
            if error.status is None:
                raise
            return Observation()

    patch.setattr(PlanRun, "_look", look)


def never_asks_whose_run_and_nodes_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(process.Process, "_guard", always(None))


def asks_whose_the_run_is_only_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_run, "_GUARDED_FOR", float("inf"))


def believes_watches_that_a_node_is_empty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeDrain, "_is_empty", always(True))


def asks_whose_a_node_is_before_the_last_look_at_it(patch: pytest.MonkeyPatch) -> None:
    right = NodeDrain._is_empty

    def is_empty(self: NodeDrain) -> bool:
        self._guard(0.0)
        found = right(self)
        self._guarded_at = float("inf") if found else self._guarded_at
        return found

    patch.setattr(NodeDrain, "_is_empty", is_empty)


def ends_while_something_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draining, "under_way", always([]))


def gives_up_what_can_still_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draining, "is_lost", always(True))


def begins_what_nobody_will_remember(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeDrain, "_guard", PlanRun._guard)


def does_not_ask_again_after_it_stood_still(patch: pytest.MonkeyPatch) -> None:
    right = deeds.Deeds.carry_out
    patch.setattr(deeds.Deeds, "carry_out", lambda self, commands, _may, once: right(self, commands, once=once))


def begins_a_batch_out_of_turn(patch: pytest.MonkeyPatch) -> None:
    """While nodes before it are out of service, for whose absence alone there is a reserve."""
    patch.setattr(remainder, "turn_of", always(remainder.Turn(2, (), True, "")))


def gives_back_before_what_it_cancels_is_over(patch: pytest.MonkeyPatch) -> None:
    def cancel(self: Undoing, migrations: tuple[Migration, ...]) -> None:
        for migration in migrations:
            cancel_migration(self._client, migration)

    patch.setattr(Undoing, "_cancel", cancel)


def looks_only_once_for_what_is_to_be_undone(patch: pytest.MonkeyPatch) -> None:
    def undo(self: Undoing) -> Undone:
        self._undo(self._find())
        return self.undone

    patch.setattr(Undoing, "undo", undo)


def names_nothing_of_what_it_cannot_undo(patch: pytest.MonkeyPatch) -> None:
    right = Undoing.undo

    def undo(self: Undoing) -> Undone:
        return replace(right(self), problems=[])

    patch.setattr(Undoing, "undo", undo)


def moves_everything_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moves_run, "ready", lambda actions, _ended: tuple(actions))


def follows_who_has_nobody_in_its_place_yet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moves_run.MovesRun, "_await", always(None))


def takes_pods_that_stayed_for_those_that_came(patch: pytest.MonkeyPatch) -> None:
    right = replacement._youngest
    patch.setattr(replacement, "_youngest", lambda pods, number, _former: right(pods, number, ()))


LOOPS: tuple[Patch, ...] = (
    forgets_what_waits_for_what,
    goes_by_a_scheduler_without_rules,
    ignores_answers_that_are_lost,
    takes_a_lost_answer_for_a_yes,
    takes_a_conflict_for_a_lasting_no,
    believes_a_watch_that_has_to_list_anew,
    never_asks_whose_run_and_nodes_are,
    asks_whose_the_run_is_only_once,
    believes_watches_that_a_node_is_empty,
    asks_whose_a_node_is_before_the_last_look_at_it,
    ends_while_something_is_under_way,
    gives_up_what_can_still_leave,
    begins_what_nobody_will_remember,
    does_not_ask_again_after_it_stood_still,
    begins_a_batch_out_of_turn,
    gives_back_before_what_it_cancels_is_over,
    looks_only_once_for_what_is_to_be_undone,
    names_nothing_of_what_it_cannot_undo,
    moves_everything_at_once,
    follows_who_has_nobody_in_its_place_yet,
    takes_pods_that_stayed_for_those_that_came,
)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reducers that are wrong on purpose, each in one way that the simulation has to notice; `mutant_loops` has loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import (
    draining,
    migrating,
    slots,
    starting,
    waits,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Moment
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import Starting, StartStage
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VMI_REPLICA_SET
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

from simulation import requests
from simulation.mutant_loops import LOOPS, Patch, always


def ignores_after(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(waits.Waits, "is_over", always(True))


def takes_a_switched_vm_for_one_that_has_left(patch: pytest.MonkeyPatch) -> None:
    """Although its pod still stands at the source."""
    patch.setattr(waits.Waits, "_is_gone", always(True))


def forgets_the_uid(patch: pytest.MonkeyPatch) -> None:
    def vmi(self: Observation, title: str, _uid: str) -> SeenVmi | None:
        return self.vmis.get(title)

    patch.setattr(Observation, "vmi", vmi)


def ignores_the_caps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slots.Slots, "admits", always(True))


def counts_no_migrations_of_other_nodes(patch: pytest.MonkeyPatch) -> None:
    right = slots.Slots.__init__

    def init(self: slots.Slots, plan: Plan, entries: Any, look: Observation, *others: Any) -> None:
        titles = {entry.title for entry in entries.values()}
        own = {title: found for title, found in look.migrations.items() if title in titles}
        right(self, plan, entries, replace(look, migrations=own), *others)

    patch.setattr(slots.Slots, "__init__", init)


def does_not_count_what_it_creates_at_a_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slots.Slots, "add", always(None))


def creates_under_a_new_name_after_a_lost_answer(patch: pytest.MonkeyPatch) -> None:
    """The name tells the time of the attempt instead of its number."""
    right = Migrating.step

    def step(self: Migrating, moment: Moment) -> Any:
        entry, command = right(self, moment)
        if command is None:
            return entry, None
        return entry, replace(command, name=f"{command.name.rpartition('-')[0]}-{int(moment.now)}")

    patch.setattr(Migrating, "step", step)


def does_not_wait_until_its_migration_shows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(migrating, "_UNSEEN", 0.0)


def believes_the_first_look_after_a_success(patch: pytest.MonkeyPatch) -> None:
    right = Migrating._succeeded

    def succeeded(self: Migrating, vmi: SeenVmi | None, moment: Moment) -> Any:
        return right(replace(self, suspect=True), vmi, moment)

    patch.setattr(Migrating, "_succeeded", succeeded)


def tries_for_ever(patch: pytest.MonkeyPatch) -> None:
    right = Migrating._ended

    def ended(self: Migrating, current: Migration, vmi: SeenVmi | None, moment: Moment) -> Any:
        return right(self, current, vmi, replace(moment, retries=99))

    patch.setattr(Migrating, "_ended", ended)


def calls_a_node_empty_while_pods_of_vms_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draining.Remaining, "none", property(lambda self: not (self.vmis or self.pods)))


def takes_what_it_evicted_for_gone(patch: pytest.MonkeyPatch) -> None:
    right = Evicting.answered

    def answered(self: Evicting, answer: Any, now: float) -> Evicting:
        entry = right(self, answer, now)
        return entry if answer.refused else replace(entry, outcome="evicted", ended_at=now)

    patch.setattr(Evicting, "answered", answered)


def stands_by_an_eviction_that_never_was(patch: pytest.MonkeyPatch) -> None:
    right = Evicting.step

    def step(self: Evicting, moment: Moment) -> Any:
        entry, command = right(self, moment)
        return replace(entry, has_acted=self.has_acted), command

    patch.setattr(Evicting, "step", step)


def believes_watches_that_nothing_was_evicted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Evicting, "questions", always(Questions()))


def believes_watches_that_nothing_was_interrupted(patch: pytest.MonkeyPatch) -> None:
    right = Interrupting.questions

    def questions(self: Interrupting) -> Questions:
        asked = right(self)
        return replace(asked, vmis=frozenset()) if self.is_unsure and not self.is_missing else asked

    patch.setattr(Interrupting, "questions", questions)


def stops_what_is_to_be_restarted(patch: pytest.MonkeyPatch) -> None:
    right = Interrupting.step

    def step(self: Interrupting, moment: Moment) -> Any:
        entry, command = right(self, moment)
        return entry, command and replace(command, stop=True)

    patch.setattr(Interrupting, "step", step)


def interrupts_again_what_is_ending(patch: pytest.MonkeyPatch) -> None:
    right = Interrupting.step

    def step(self: Interrupting, moment: Moment) -> Any:
        vmis = {title: replace(vmi, ending=False) for title, vmi in moment.look.vmis.items()}
        return right(self, replace(moment, look=replace(moment.look, vmis=vmis)))

    patch.setattr(Interrupting, "step", step)


def evicts_again_what_is_ending(patch: pytest.MonkeyPatch) -> None:
    right = Evicting.step

    def step(self: Evicting, moment: Moment) -> Any:
        pods = {uid: replace(pod, ending=False) for uid, pod in moment.look.pods.items()}
        return right(self, replace(moment, look=replace(moment.look, pods=pods)))

    patch.setattr(Evicting, "step", step)


def takes_the_vm_itself_for_its_successor(patch: pytest.MonkeyPatch) -> None:
    def successor(self: Interrupting, moment: Moment) -> SeenVmi | None:
        return moment.look.vmis.get(self.title)

    patch.setattr(Interrupting, "_successor", successor)
    patch.setattr(Observation, "vmi", lambda self, title, uid: None)


def waits_for_who_is_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SeenVm, "brings_back", always(True))


def gives_up_who_comes_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SeenVm, "brings_back", always(False))


def gives_up_whose_vm_was_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    right = Interrupting._awaited

    def awaited(self: Interrupting, moment: Moment, **_names: object) -> Interrupting:
        return right(self, moment, asked=True)

    patch.setattr(Interrupting, "_awaited", awaited)


def waits_for_a_replica_that_nobody_wants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Interrupting, "_is_needless", always(False))


def gives_up_a_replica_that_comes_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Interrupting, "_is_needless", always(True))


def never_plans_newcomers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draining, "unplanned", always(frozenset()))


def leaves_it_to_others_to_try_again(patch: pytest.MonkeyPatch) -> None:
    right = draining.remaining
    patch.setattr(draining, "remaining", lambda *seen: replace(right(*seen), elsewhere={}))


def goes_where_the_old_plan_said(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Migrating, "redirected", lambda self, _action: replace(self, outcome="waiting", migration=""))


def takes_an_ending_vmi_for_a_running_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting, "is_ending", always(False))


def _taking(stages: Collection[StartStage], for_this: StartStage) -> Callable[..., StartStage]:
    right = starting.start_stage

    def stage(vm: SeenVm, vmi: SeenVmi | None, node: str) -> StartStage:
        found = right(vm, vmi, node)
        return for_this if found in stages else found

    return stage


def takes_anybodys_vmi_of_its_name_for_its_own(patch: pytest.MonkeyPatch) -> None:
    right = starting.start_stage

    def stage(vm: SeenVm, vmi: SeenVmi | None, node: str) -> StartStage:
        return right(vm, replace(vmi, owner_uid=vm.uid) if vmi is not None else None, node)

    for where in (requests, starting):
        patch.setattr(where, "start_stage", stage)


def takes_anybodys_vmi_of_its_name_for_its_successor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SeenVmi, "may_be_of", always(True))


def starts_what_somebody_has_stopped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "start_stage", _taking({StartStage.UNWANTED}, StartStage.WANTED))


def takes_an_end_before_it_ran_for_somebodys_wish(patch: pytest.MonkeyPatch) -> None:
    stage = _taking({StartStage.FAILED, StartStage.GONE}, StartStage.UNWANTED)
    for module in (starting, requests):
        patch.setattr(module, "start_stage", stage)


def leaves_off_what_has_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting, "start_stage", _taking({StartStage.FAILED}, StartStage.COMING))


def takes_what_has_failed_for_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting, "start_stage", _taking({StartStage.FAILED}, StartStage.GONE))


def forgets_who_was_stopped_before_it_runs(patch: pytest.MonkeyPatch) -> None:
    right = Starting._with_vm

    def with_vm(self: Starting, vm: SeenVm, moment: Moment) -> object:
        entry, command = right(self, vm, moment)
        return entry, entry._take_mark_off() if entry.outcome == "starting" else command

    patch.setattr(Starting, "_with_vm", with_vm)


def waits_for_another_of_the_same_name(patch: pytest.MonkeyPatch) -> None:
    """The VM or replica set that was stopped is gone."""
    right = Starting.step

    def step(self: Starting, moment: Moment) -> object:
        seen = moment.look.replica_sets.get(self.title) or moment.look.vms.get(self.title)
        return right(replace(self, uid=seen.uid) if seen is not None else self, moment)

    patch.setattr(Starting, "step", step)


def calls_a_replica_set_complete_too_early(patch: pytest.MonkeyPatch) -> None:
    right = Starting.step

    def step(self: Starting, moment: Moment) -> object:
        entry, command = right(self, moment)
        early = entry.outcome == "starting" and entry.kind == VMI_REPLICA_SET
        return entry, entry._take_mark_off() if early else command

    patch.setattr(Starting, "step", step)


def starts_all_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Starting, "goes_first", always(False))


def does_not_count_what_was_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slots, "_takes_a_place", lambda entry: entry.in_flight)


def takes_who_has_left_before_a_migration_shows_for_somebody_elses(patch: pytest.MonkeyPatch) -> None:
    right = Migrating._unanswered

    def unanswered(self: Migrating, vmi: SeenVmi | None, moment: Moment) -> Any:
        if vmi is not None and vmi.node != self.source_node:
            return self._knowing(acted=False)._found_elsewhere(vmi, moment), None
        return right(self, vmi, moment)

    patch.setattr(Migrating, "_unanswered", unanswered)


MUTANTS: Mapping[str, Patch] = {
    mutant.__name__: mutant
    for mutant in (
        *LOOPS,
        ignores_after,
        takes_a_switched_vm_for_one_that_has_left,
        forgets_the_uid,
        ignores_the_caps,
        counts_no_migrations_of_other_nodes,
        does_not_count_what_it_creates_at_a_time,
        creates_under_a_new_name_after_a_lost_answer,
        does_not_wait_until_its_migration_shows,
        takes_who_has_left_before_a_migration_shows_for_somebody_elses,
        believes_the_first_look_after_a_success,
        tries_for_ever,
        calls_a_node_empty_while_pods_of_vms_end,
        takes_what_it_evicted_for_gone,
        stands_by_an_eviction_that_never_was,
        believes_watches_that_nothing_was_evicted,
        believes_watches_that_nothing_was_interrupted,
        stops_what_is_to_be_restarted,
        interrupts_again_what_is_ending,
        evicts_again_what_is_ending,
        takes_the_vm_itself_for_its_successor,
        waits_for_who_is_off,
        gives_up_who_comes_back,
        gives_up_whose_vm_was_not_looked_at,
        waits_for_a_replica_that_nobody_wants,
        gives_up_a_replica_that_comes_back,
        never_plans_newcomers,
        leaves_it_to_others_to_try_again,
        goes_where_the_old_plan_said,
        takes_an_ending_vmi_for_a_running_one,
        takes_anybodys_vmi_of_its_name_for_its_own,
        takes_anybodys_vmi_of_its_name_for_its_successor,
        starts_what_somebody_has_stopped,
        takes_an_end_before_it_ran_for_somebodys_wish,
        leaves_off_what_has_failed,
        takes_what_has_failed_for_gone,
        forgets_who_was_stopped_before_it_runs,
        waits_for_another_of_the_same_name,
        calls_a_replica_set_complete_too_early,
        starts_all_at_once,
        does_not_count_what_was_lost,
    )
}

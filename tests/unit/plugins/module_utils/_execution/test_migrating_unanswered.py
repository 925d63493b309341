# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration of which no answer has told whether it was created."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import NOW, migration, moment, seen_vmi
from unit.plugins.module_utils._execution.test_migrating import BEGUN, NAME, WANTED, created, first_command
from unit.plugins.module_utils._plan.plans import action, vm


def test_a_migration_whose_answer_is_lost_counts_as_asked_for() -> None:
    entry, command = Migrating.begin(action(ActionKind.MIGRATE, vm("web"), "n1", "n2")).step(moment(seen_vmi()))
    assert command is not None
    lost = entry.answered(Answer(command, lost=True), NOW)
    assert (lost.outcome, lost.has_acted) == ("waiting", True)
    flying, _nothing = lost.step(moment(seen_vmi(), migration(command.name, "Scheduling"), after=1.0))
    assert (flying.outcome, flying.has_acted) == ("migrating", True)
    assert not entry.answered(Answer(command, "not now", passing=True), NOW).has_acted


@pytest.mark.parametrize("words", ["", "the server fails"])
def test_one_that_a_later_look_does_not_show_has_changed_nothing(words: str) -> None:
    lost = BEGUN.answered(Answer(first_command(), words, passing=bool(words), lost=True), NOW)
    lost = lost.answered(Answer(first_command(), words, passing=bool(words), lost=True), NOW)
    early, nothing = lost.step(moment(seen_vmi(), after=1.0))
    assert (early.has_acted, early.is_unsure, nothing) == (True, True, None)
    intact, again = lost.step(moment(seen_vmi(), after=2.0))
    assert (intact.has_acted, intact.is_unsure, again) == (False, False, first_command())
    theirs, _nothing = lost.step(moment(seen_vmi(), migration("web-of-another-7", "Running"), after=1.0))
    assert (theirs.outcome, theirs.has_acted) == ("migrating", False)


def test_what_was_done_before_a_lost_answer_stays_done() -> None:
    failed = moment(seen_vmi(), migration(NAME, "Failed"), retries=1)
    entry, again = created().step(failed)[0].step(failed)
    assert (entry.has_acted, again and again.name) == (True, NAME.removesuffix("1") + "2")
    assert again is not None
    lost = entry.answered(Answer(again, lost=True), NOW)
    assert lost.is_unsure
    intact, again = lost.step(moment(seen_vmi(), migration(NAME, "Failed"), retries=1, after=2.0))
    assert (intact.has_acted, intact.is_unsure, again is not None) == (True, False, True)


@pytest.mark.parametrize(
    "answers",
    [
        [Answer(first_command(), lost=True), Answer(first_command(), "a webhook forbids it")],
        [Answer(first_command(), "a webhook forbids it", lost=True)],
    ],
    ids=["asked twice", "sent twice"],
)
def test_what_is_refused_after_a_lost_answer_may_have_been_done_before(answers: list[Answer]) -> None:
    entry = BEGUN
    for answer in answers:
        entry = entry.answered(answer, NOW)
    again = entry.redirected(WANTED)
    assert (entry.outcome, again.outcome, again.has_acted) == ("failed", "waiting", True)
    flying, _nothing = again.step(moment(seen_vmi(), migration(NAME, "Scheduling"), after=1.0))
    assert (flying.outcome, flying.has_acted) == ("migrating", True)


def test_one_whose_vm_has_left_by_it_takes_its_place_until_it_is_known() -> None:
    """The watch of VMIs may be ahead of the one of migrations, and KubeVirt counts it for as long as it goes on."""
    lost = BEGUN.answered(Answer(first_command(), lost=True), NOW)
    there = seen_vmi(node="n2")
    early, nothing = lost.step(moment(there, after=1.0))
    doubtful, again = lost.step(moment(there, after=29.0, ready=False))
    assert (early.is_unsure, nothing, doubtful.is_unsure, again) == (True, None, True, None)
    given_up, again = lost.step(moment(there, after=31.0, ready=False))
    assert (given_up.outcome, given_up.has_acted, again) == ("already_there", False, None)
    doubtful, again = lost.step(moment(there, after=60.0))
    assert (doubtful.is_unsure, doubtful.unfinished, again) == (True, True, first_command())
    busy = doubtful.answered(Answer(first_command(), "the server is busy", passing=True), NOW)
    assert (busy.is_unsure, busy.has_acted) == (True, True)
    found = doubtful.answered(Answer(first_command()), NOW)
    assert (found.outcome, found.has_acted, found.is_unsure) == ("migrating", True, False)
    over, _nothing = found.step(moment(there, migration(NAME, "Running", "Succeeded"), after=62.0))
    assert over.outcome == "migrated"
    none = doubtful.answered(Answer(first_command(), "it has just moved", passing=True, needless=True), NOW)
    there_already, _nothing = none.step(moment(there, after=1.0))
    assert (none.is_unsure, there_already.outcome, there_already.has_acted) == (False, "already_there", False)


def test_one_that_lacks_a_place_when_it_could_be_asked_for_again_keeps_its_own() -> None:
    lost = BEGUN.answered(Answer(first_command(), lost=True), NOW)
    kept, nothing = lost.step(moment(seen_vmi(), after=29.0, slot=False))
    assert (kept.is_unsure, kept.has_acted, nothing) == (True, True, None)
    intact, again = kept.step(moment(seen_vmi(), after=29.0))
    assert (intact.is_unsure, again) == (False, first_command())
    intact, nothing = kept.step(moment(seen_vmi(), after=30.0, slot=False))
    assert (intact.is_unsure, intact.has_acted, nothing) == (False, False, None)
    # Who has to wait for others anyway, or is not to begin any more, keeps nobody waiting for it.
    now = moment(seen_vmi(), after=2.0)
    for later in (replace(now, ready=False), replace(now, slot=False, begins=False)):
        intact, nothing = lost.step(later)
        assert (intact.is_unsure, nothing) == (False, None)


def test_one_whose_vm_is_gone_is_nobodys_any_more() -> None:
    lost = BEGUN.answered(Answer(first_command(), lost=True), NOW)
    ended, command = lost.step(moment(after=3.0))
    assert (ended.outcome, ended.has_acted, command) == ("ended", False, None)

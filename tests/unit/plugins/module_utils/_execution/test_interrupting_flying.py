# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is on its way by a migration, or elsewhere by now, is not interrupted, and what was begun of it is taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    STOPPED_BY_OTHERS,
    Interrupting,
)

from unit.plugins.module_utils._execution.moments import NOW, migration, moment
from unit.plugins.module_utils._execution.test_interrupting import RESTART, STOP, WEB


@pytest.mark.parametrize("entry", [STOP, RESTART])
def test_who_is_on_its_way_by_a_migration_of_the_run_is_not_interrupted(entry: Interrupting) -> None:
    """Another process has begun it, or no answer and no look has told of it in time."""
    flying = migration("any", "Scheduling", "Running")
    entry, command = entry.step(moment(WEB, flying))
    assert (command, entry.status()) == (None, "waiting, it is being migrated")
    gone, command = entry.step(moment(replace(WEB, node="n2"), replace(flying, phase="Succeeded"), after=2.0))
    assert (command, gone.status()) == (None, "not interrupted, it is on n2 already")
    waiting, command = entry.step(moment(WEB, replace(flying, phase="Failed"), ready=False, after=2.0))
    assert (command, waiting.status()) == (None, "waiting")
    _entry, command = entry.step(moment(WEB, replace(flying, phase="Failed"), after=2.0))
    assert command is not None


def test_who_has_a_migration_that_kubevirt_holds_back_is_interrupted() -> None:
    """It may never get a target pod, as where a quota leaves none; one that is only queued gets one."""
    _entry, command = STOP.step(moment(WEB, queued := migration("any", "Pending")))
    assert command is None
    _entry, command = STOP.step(moment(WEB, replace(queued, blocked="exceeded quota")))
    assert command is not None


def test_a_stop_that_was_refused_for_a_moment_is_taken_back_when_its_vm_migrates_by_then() -> None:
    """Its mark may be there."""
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    entry = entry.answered(Answer(command, "conflict", passing=True), NOW)
    flying = migration("any", "Running")
    entry, again = entry.step(moment(WEB, flying, after=3.0))
    assert again == replace(command, begins=False)
    entry = entry.answered(
        Answer(again, "it is not to end any more", passing=True, needless=True, spared=True), NOW + 3
    )
    entry, none = entry.step(moment(WEB, flying, after=6.0))
    assert (none, entry.status(), entry.is_asked) == (None, "waiting, it is being migrated", False)


def test_who_flies_is_not_stopped_either_after_somebody_has_undone_a_stop_of_it() -> None:
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    entry = entry.answered(Answer(command), NOW)
    undone = Answer(command, "it is not to end any more", passing=True, needless=True, spared=True)
    entry, again = entry.answered(undone, NOW + 3).step(moment(WEB, after=6.0))
    assert again is not None
    entry = entry.answered(Answer(again, "the server is busy", passing=True), NOW + 6)
    _entry, again = entry.step(moment(WEB, migration("any", "Running"), after=9.0))
    assert again == replace(command, begins=False)


def test_that_somebody_else_has_stopped_who_flies_is_told() -> None:
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    entry = entry.answered(Answer(command, "conflict", passing=True), NOW)
    entry, again = entry.step(moment(WEB, migration("any", "Running"), after=3.0))
    assert again is not None
    told = entry.answered(Answer(again, STOPPED_BY_OTHERS, passing=True, needless=True), NOW + 3)
    assert told.status() == f"waiting, {STOPPED_BY_OTHERS}"
    later, none = told.step(moment(WEB, migration("any", "Running"), after=9.0))
    assert (none, later.status()) == (None, told.status())


@pytest.mark.parametrize("entry", [STOP, RESTART])
def test_who_is_ended_on_its_way_is_not_said_to_be_migrated_any_more(entry: Interrupting) -> None:
    flying = migration("any", "Running")
    entry, _none = entry.step(moment(WEB, flying))
    entry, _none = entry.step(moment(replace(WEB, ending=True), flying, after=1.0))
    assert entry.result()["failure_reason"] == ""


def test_a_mark_is_taken_off_who_is_elsewhere_also_before_its_turn() -> None:
    """What it waits for may never leave, and the drain would wait until its time was over."""
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    entry = entry.answered(Answer(command, "the server is busy", passing=True), NOW)
    there = replace(WEB, node="n2")
    entry, again = entry.step(moment(there, ready=False, after=3.0))
    assert again == replace(command, begins=False)
    entry = entry.answered(Answer(again, "it has just moved to n2", passing=True, needless=True), NOW + 3.0)
    gone, none = entry.step(moment(there, ready=False, after=4.0))
    assert (none, gone.status()) == (None, "not interrupted, it is on n2 already")

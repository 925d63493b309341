# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Evict
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import NOW, moment, seen_pod
from unit.plugins.module_utils._plan.plans import action, pod

BEGUN = Evicting.begin(action(ActionKind.EVICT, pod("cache"), "n1", "n4"))
COMMAND = Evict("1.evict.shop/cache", "shop", "cache", "uid-cache")
HELD = BEGUN.answered(Answer(COMMAND, "a disruption budget forbids it", passing=True), NOW)
ASKED = BEGUN.answered(Answer(COMMAND), NOW)
MISSING = BEGUN.answered(Answer(COMMAND, needless=True), NOW)
REFUSED = BEGUN.answered(Answer(COMMAND, "a webhook forbids it"), NOW)


def test_this_very_pod_is_asked_for() -> None:
    assert BEGUN.step(moment(seen_pod()))[1] == COMMAND


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        (moment(), "gone"),
        (moment(seen_pod(uid="uid-of-another")), "gone"),
        (moment(seen_pod(ending=True)), "evicting"),
        (moment(seen_pod(), ready=False), "waiting"),
    ],
    ids=["gone", "another of its name", "ending", "has to wait"],
)
def test_nothing_is_asked_where_nothing_is_to_be_done(shown: Any, outcome: str) -> None:
    entry, command = BEGUN.step(shown)
    assert (entry.outcome, command) == (outcome, None)


@pytest.mark.parametrize("entry", [HELD, ASKED], ids=["held back", "taken"])
def test_a_pod_that_is_still_there_is_asked_for_again_after_a_moment(entry: Evicting) -> None:
    assert entry.step(moment(seen_pod(), after=1.0))[1] is None
    assert entry.step(moment(seen_pod(), after=2.0))[1] == COMMAND


def test_it_takes_from_the_first_attempt_to_the_end_of_the_pod() -> None:
    begun, command = BEGUN.step(moment(seen_pod(), after=1.0))
    assert command is not None
    ended, _command = begun.answered(Answer(command), NOW + 1.0).step(moment(after=8.0))
    assert (ended.seconds, ended.status()) == (7, "evicted in 7 s")


def test_nobody_says_that_a_pod_was_evicted_that_others_have_ended() -> None:
    ended = [entry.step(moment(after=8.0))[0] for entry in (BEGUN, HELD, MISSING)]
    assert [(entry.outcome, entry.status(), entry.has_acted) for entry in ended] == [
        ("gone", "gone already", False)
    ] * 3


def test_a_pod_that_others_are_ending_is_not_called_evicted() -> None:
    ending = moment(seen_pod(ending=True))
    assert [entry.step(ending)[0].status() for entry in (BEGUN, ASKED)] == ["ending", "evicted, ending"]


def test_what_the_server_does_not_know_is_asked_for_again_if_a_look_shows_it() -> None:
    assert MISSING.step(moment(seen_pod(), after=1.0))[1] is None
    assert MISSING.step(moment(seen_pod(), after=2.0))[1] == COMMAND
    assert not MISSING.answered(Answer(COMMAND), NOW + 2.0).is_missing


@pytest.mark.parametrize(
    ("entry", "status", "told"),
    [
        (BEGUN, "waiting", False),
        (HELD, "held back, a disruption budget forbids it", True),
        (ASKED, "evicted, ending", False),
        (REFUSED, "failed, a webhook forbids it", True),
    ],
    ids=["waiting", "held back", "taken", "refused"],
)
def test_it_says_where_it_stands(entry: Evicting, status: str, told: bool) -> None:
    assert (entry.status(), entry.worth_telling) == (status, told)


def test_what_a_plan_forgets_is_kept_if_it_is_ending_or_has_failed() -> None:
    assert [entry.forgotten() for entry in (BEGUN, HELD, ASKED, REFUSED)] == [None, None, ASKED, REFUSED]


def test_another_plan_may_tell_where_its_replacement_will_run() -> None:
    changed = BEGUN.redirected(action(ActionKind.EVICT, pod("cache"), "n1", "n6"))
    assert changed.result()["expected_node"] == "n6"


def test_an_eviction_whose_answer_is_lost_counts_as_asked_for() -> None:
    entry, command = Evicting.begin(action(ActionKind.EVICT, pod("cache"), "n1")).step(moment(seen_pod()))
    assert command is not None
    ended, _nothing = entry.answered(Answer(command, lost=True), NOW).step(moment(after=3.0))
    assert (ended.outcome, ended.has_acted) == ("evicted", True)
    missing = entry.answered(Answer(command, lost=True), NOW).answered(Answer(command, needless=True), NOW + 2.0)
    assert (missing.step(moment(after=3.0))[0].outcome, missing.has_acted) == ("evicted", True)
    refused = entry.answered(Answer(command, "a budget forbids it", passing=True), NOW)
    assert not refused.has_acted


@pytest.mark.parametrize("words", ["", "the server fails"])
def test_an_eviction_without_an_answer_that_a_later_look_does_not_show_has_changed_nothing(words: str) -> None:
    lost = BEGUN.answered(Answer(COMMAND, words, passing=bool(words), lost=True), NOW)
    assert (lost.has_acted, lost.questions().pods) == (True, frozenset({"shop/cache"}))
    early, command = lost.step(moment(seen_pod(), after=1.0))
    assert (early, command) == (lost, None)
    intact, command = early.step(moment(seen_pod(), after=2.0, ready=False))
    assert (intact.has_acted, command, intact.questions().pods) == (False, None, frozenset())
    assert intact.step(moment(seen_pod(), after=2.0))[1] == COMMAND
    assert intact.step(moment(after=8.0))[0].outcome == "gone"


def test_an_eviction_without_an_answer_is_one_if_the_pod_ends() -> None:
    lost = BEGUN.answered(Answer(COMMAND, lost=True), NOW)
    ending, _nothing = lost.step(moment(seen_pod(ending=True), after=1.0))
    assert (ending.status(), ending.has_acted, ending.questions().pods) == ("evicted, ending", True, frozenset())


def test_an_answer_that_is_lost_takes_back_nothing() -> None:
    lost = ASKED.answered(Answer(COMMAND, lost=True), NOW)
    assert lost.step(moment(seen_pod(), after=2.0))[0].has_acted

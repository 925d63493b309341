# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has lost what he writes for sends nothing more; time is the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence, always

from unit.plugins.support.own_time import BUSY, LOST, REFUSED, STARTING, Time, failing, failure, own_time


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


def allowing(tries: int, then: Failure) -> Callable[[], None]:
    """May be asked so often before it fails."""
    left = iter(range(tries))

    def may() -> None:
        if next(left, None) is None:
            raise then

    return may


def lost() -> Failure:
    return Failure("go on", "server", "it is another's", "Stop.", reason="RunLost")


@pytest.mark.parametrize("tries", [0, 1])
def test_who_may_not_any_more_sends_nothing(tries: int, time: Time) -> None:
    """Nor for the first time: what was read for it may have taken long."""
    sent: list[float] = []

    def send() -> str:
        sent.append(time.now)
        raise BUSY

    patience = Persistence(None).briefly(allowing(tries, lost()))
    with pytest.raises(Failure, match="it is another's"):
        patience.carry(send, None, reads=False)
    assert len(sent) == tries
    assert patience.carry(failing(BUSY), None, reads=True) == "done"


def test_who_is_guarded_twice_is_asked_twice() -> None:
    asked: list[str] = []
    patience = Persistence(None).guarded(lambda: asked.append("whose run it is")).briefly(lambda: asked.append("where"))
    assert patience.carry(failing(BUSY), None, reads=False) == "done"
    assert asked == ["whose run it is", "where"] * 2


@pytest.mark.parametrize(("error", "maybe_done"), [(LOST, True), (BUSY, False)])
def test_who_may_not_any_more_hears_what_may_have_been_done(error: Failure, maybe_done: bool, time: Time) -> None:
    with pytest.raises(Failure, match="it is another's") as told:
        Persistence(None).guarded(allowing(1, lost())).carry(failing(error), lambda: None, reads=False)
    assert told.value.maybe_done is maybe_done


@pytest.mark.parametrize("status", [403, 404, 409])
def test_why_somebody_may_not_is_no_answer_to_what_he_asks_for(status: int) -> None:
    """As where the node that was looked at for it is gone: who deletes something would take that for its end."""
    with pytest.raises(Failure) as told:
        Persistence(None).guarded(allowing(0, failure(status))).carry(failing(), None, reads=False)
    assert (told.value.status, told.value.unasked, told.value.replaced(remedy="Wait.").unasked) == (None, True, True)


def test_who_may_not_any_more_leaves_it_to_others_to_tell(time: Time) -> None:
    told: list[str] = []
    patience = Persistence(None, told.append)

    def may() -> None:
        if told:
            raise lost()

    with pytest.raises(Failure, match="it is another's"):
        patience.guarded(may).carry(failing(*[BUSY] * 1000), None, reads=False)
    assert patience.carry(failing(), None, reads=True) == "done"
    assert patience.carry(failing(*[BUSY] * 12), None, reads=True) == "done"
    assert len(told) == 2, told


@pytest.mark.parametrize("seconds", [None, 30.0, 3600.0])
def test_what_is_guarded_has_the_time_of_the_task(seconds: float | None, time: Time) -> None:
    patience, began = Persistence(seconds).guarded(always), time.now
    with pytest.raises(Failure):
        patience.carry(failing(*[BUSY] * 10_000), None, reads=False)
    assert time.now - began == pytest.approx(seconds or 120.0)


def test_who_cannot_see_whether_he_may_waits_until_he_can(time: Time) -> None:
    """As long as the task has time: that a server is away says nothing of whose the run is."""
    patience, asked = Persistence(3600.0), []

    def away() -> str:
        if time.now < 1300.0:
            raise REFUSED
        return "done"

    def may() -> None:
        asked.append(time.now)
        patience.carry(away, None, reads=True)

    assert patience.guarded(may).carry(away, None, reads=False) == "done"
    assert len(asked) < 100


def test_who_can_never_see_whether_he_may_says_how_the_request_had_failed(time: Time) -> None:
    with pytest.raises(Failure, match="answered 503, no") as told:
        Persistence(60.0).guarded(allowing(1, REFUSED)).carry(failing(STARTING, STARTING), None, reads=False)
    assert told.value.status == 503
    assert time.now == pytest.approx(1060.0)


def test_who_can_never_see_whether_he_may_sends_nothing_and_says_why_once(time: Time) -> None:
    patience = Persistence(60.0)

    def may() -> None:
        patience.carry(failing(*[STARTING] * 1000), None, reads=True)

    with pytest.raises(Failure, match=r"answered 503, no; in trouble since [\d:]+\. Wait\.$") as told:
        patience.guarded(may).carry(lambda: pytest.fail("it was sent"), None, reads=False)
    assert (told.value.maybe_done, told.value.__cause__) == (False, None)
    assert time.now == pytest.approx(1060.0)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent again, when, and for how long; time is the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    UNDONE,
    Persistence,
    always,
    repeatable,
)

from unit.plugins.support.own_time import (
    BROKEN,
    BUDGET,
    BUSY,
    LOST,
    REFUSED,
    STARTING,
    UNTRUSTED,
    Time,
    failing,
    failure,
    own_time,
)

DAY = 86400.0


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


@pytest.mark.parametrize("error", [BUSY, STARTING, REFUSED])
@pytest.mark.parametrize("reads", [True, False])
def test_what_was_never_carried_out_is_sent_again(error: Failure, reads: bool) -> None:
    assert Persistence(None).carry(failing(error, error), None, reads=reads) == "done"


@pytest.mark.parametrize("error", [LOST, BROKEN, failure(502), failure(504)])
def test_what_may_have_been_carried_out_is_looked_after_first(error: Failure) -> None:
    seen: list[str | None] = [None, "as wanted"]
    send = failing(error, error, error)
    assert Persistence(None).carry(send, lambda: seen.pop(0), reads=False) == "as wanted"
    assert not seen
    assert Persistence(None).carry(failing(error, error), repeatable, reads=False) == "done"


@pytest.mark.parametrize("error", [LOST, BROKEN])
def test_what_nobody_can_see_is_not_sent_again(error: Failure, time: Time) -> None:
    with pytest.raises(Failure) as told:
        Persistence(None).carry(failing(error), None, reads=False)
    assert (told.value, time.slept) == (error, [])


@pytest.mark.parametrize(
    "error",
    [
        *map(failure, (400, 401, 403, 404, 409, 410, 422, 501)),
        failure(501, retry_after=1.0),
        UNTRUSTED,
        BUDGET,
    ],
)
@pytest.mark.parametrize("reads", [True, False])
def test_what_is_final_is_told_at_once(error: Failure, reads: bool, time: Time) -> None:
    with pytest.raises(Failure) as told:
        Persistence(None).carry(failing(error), repeatable, reads=reads)
    assert (told.value, told.value.maybe_done, time.slept) == (error, False, [])


@pytest.mark.parametrize(
    ("seconds", "reads", "lasts"),
    [
        (None, True, 120.0),
        (None, False, 120.0),
        (600.0, True, 120.0),
        (600.0, False, 600.0),
        (30.0, True, 30.0),
        (DAY, False, DAY),
    ],
)
def test_a_server_that_is_busy_for_ever_ends_it_at_its_limit(
    seconds: float | None, reads: bool, lasts: float, time: Time
) -> None:
    with pytest.raises(Failure, match=r"429, no; tried \d+ times since \d\d:\d\d:\d\d") as told:
        Persistence(seconds).carry(failing(*[BUSY] * 100_000), None, reads=reads)
    assert time.now - 1000.0 == pytest.approx(lasts)
    assert told.value.status == 429
    assert len(time.slept) < 20 + lasts / 2


@pytest.mark.parametrize(("error", "lasts"), [(failure(500, unadmitted=True), 5.0), (BUSY, 600.0), (REFUSED, 600.0)])
def test_what_no_webhook_can_be_asked_about_is_soon_set_aside(error: Failure, lasts: float, time: Time) -> None:
    with pytest.raises(Failure):
        Persistence(600.0).setting_aside().carry(failing(*[error] * 10_000), None, reads=False)
    assert time.now - 1000.0 == pytest.approx(lasts)


def test_the_time_is_the_tasks_and_not_the_requests(time: Time) -> None:
    patience = Persistence(10.0)
    time.sleep(11.0)
    with pytest.raises(Failure):
        patience.carry(failing(BUSY), None, reads=True)
    assert time.slept == [11.0]


@pytest.mark.parametrize(("asked", "kept"), [(2.5, 2.5), (DAY, 30.0), (0.001, 0.2)])
def test_the_server_may_say_when_within_reason(asked: float, kept: float, time: Time) -> None:
    Persistence(None).carry(failing(failure(503, retry_after=asked)), None, reads=False)
    assert time.slept == [kept]


@pytest.mark.parametrize("asked", [0.0, -5.0])
def test_a_server_that_asks_for_no_pause_gets_one(asked: float, time: Time) -> None:
    """A second clock, of a server that says when by a date, may be late; it is busy all the same."""
    Persistence(None).carry(failing(*[failure(503, retry_after=asked)] * 9), None, reads=False)
    assert time.slept[0] > 0.0
    assert time.slept[-1] >= 2.5


def test_pauses_grow_and_differ(time: Time) -> None:
    for _client in range(2):
        Persistence(None).carry(failing(*[REFUSED] * 9), None, reads=True)
    first, second = time.slept[:9], time.slept[9:]
    assert first[0] < 0.2
    assert 2.5 <= first[-1] <= 5.0
    assert first != second


@pytest.mark.parametrize("seconds", [None, 2.0, 3600.0])
def test_who_asks_anew_is_not_kept_waiting(seconds: float | None, time: Time) -> None:
    """Nor is it cut short by a task's time that is over: what it does next, it decides itself.

    What it hears stays the same from one time to the next, so that whoever tells of what is new has nothing to tell.
    """
    for reads in (True, False):
        began, brief = time.now, Persistence(seconds).briefly(always)
        with pytest.raises(Failure) as told:
            brief.carry(failing(*[BUSY] * 10_000), None, reads=reads)
        assert time.now - began == pytest.approx(5.0)
        assert told.value.message == BUSY.message


def test_a_single_try_that_took_long_says_since_when(time: Time) -> None:
    def hang() -> None:
        time.sleep(30.0)
        raise failure(unanswered=True, reason="Timeout")

    with pytest.raises(Failure, match=r"no; in trouble since [\d:]+\. "):
        Persistence(20.0).carry(hang, None, reads=True)


def test_who_cannot_look_yet_does_not_send_again(time: Time) -> None:
    """The server goes away with its answer, for longer than a read is asked again, and the task has the time."""
    sent: list[float] = []
    looked: list[float] = []

    def send() -> str:
        sent.append(time.now)
        raise LOST

    patience = Persistence(3600.0)

    def look() -> str:
        def read() -> str:
            looked.append(time.now)
            if time.now < 1300.0:
                raise REFUSED
            return "done all the same"

        return patience.carry(read, repeatable, reads=True)

    assert patience.carry(send, look, reads=False) == "done all the same"
    assert (sent, looked[-1] >= 1300.0) == ([1000.0], True)
    assert len(looked) < 150, "pauses grow"


def test_a_look_that_fails_for_good_says_how_the_request_had_failed(time: Time) -> None:
    def look() -> str:
        raise REFUSED

    with pytest.raises(Failure, match="answered 504, no") as told:
        Persistence(60.0).carry(failing(failure(504)), look, reads=False)
    assert told.value.maybe_done
    assert time.now == pytest.approx(1060.0)


@pytest.mark.parametrize(
    ("failures", "reads", "maybe_done"),
    [
        ([REFUSED], False, False),
        ([STARTING], False, False),
        ([LOST], False, True),
        ([BROKEN], False, True),
        ([LOST, REFUSED], False, True),
        ([failure(409)], False, False),
        ([BUDGET], False, False),
        ([LOST], True, False),
    ],
)
def test_whether_it_may_have_been_done_is_known_in_the_end(
    failures: list[Failure], reads: bool, maybe_done: bool
) -> None:
    copies = [error.replaced() for error in failures]
    with pytest.raises(Failure) as told:
        Persistence(60.0).carry(failing(*copies, *[copies[-1]] * 1000), lambda: None, reads=reads)
    assert told.value.maybe_done is maybe_done


@pytest.mark.parametrize(
    ("failures", "looks", "maybe_done"),
    [
        ([LOST], [UNDONE], False),
        ([LOST], [None], True),
        ([LOST, LOST], [None, UNDONE], False),
        ([LOST, LOST], [UNDONE, None], True),
    ],
)
def test_what_a_look_shows_undone_was_not_done(failures: list[Failure], looks: list[Any], maybe_done: bool) -> None:
    with pytest.raises(Failure, match="403") as told:
        Persistence(None).carry(failing(*failures, failure(403)), lambda: looks.pop(0), reads=False)
    assert (told.value.maybe_done, looks) == (maybe_done, [])


def test_requests_share_the_time_for_which_a_server_may_be_away(time: Time) -> None:
    patience = Persistence(None)
    # The second one was asked once only, and its error is the one that people see.
    for lasts, words in ((120.0, r"no; tried \d+ times since [\d:]+\. "), (0.0, r"no; in trouble since [\d:]+\. ")):
        began = time.now
        with pytest.raises(Failure, match=words) as told:
            patience.carry(failing(*[REFUSED] * 10_000), None, reads=True)
        assert time.now - began == pytest.approx(lasts)
        both = [f"{REFUSED.message}{mark} {told.value.in_vain}" for mark in ";,"]
        assert [told.value.message, told.value.at_the_end] == both, "once for who asks on, too, in the same words"
    assert patience.carry(failing(), None, reads=True) == "done"
    with pytest.raises(Failure):
        patience.carry(failing(*[REFUSED] * 10_000), None, reads=True)
    assert time.now == pytest.approx(1240.0), "it had been back meanwhile"


@pytest.mark.parametrize(("asked", "most"), [(30.0, 5.0), (2.0, 2.0), (None, 0.0), (-3.0, 0.0)])
def test_who_asks_anew_does_so_when_the_server_says_within_reason(asked: float | None, most: float, time: Time) -> None:
    """Also when nothing is waited for in a request any more; then a loop would ask twice a second."""
    patience = Persistence(DAY).briefly(always)
    busy = failure(429, retry_after=asked)
    for _attempt in range(2):
        with pytest.raises(Failure):
            patience.carry(failing(*[busy] * 100), None, reads=True)
    before = time.now
    with pytest.raises(Failure):
        patience.carry(failing(busy), None, reads=True)
    assert time.now - before == pytest.approx(most)
    time.sleep(60.0)
    begun = time.now
    assert patience.carry(failing(), None, reads=True) == "done"
    assert patience.carry(failing(busy), None, reads=True) == "done"
    assert time.now - begun <= 5.0

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trouble with the server that lasts is told, once, ten seconds after it began; time is the test's own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    Persistence,
    always,
    nobody,
    repeatable,
)

from unit.plugins.support.own_time import BUSY, FORBIDDEN, HUNG, REFUSED, STARTING, Time, failing, failure, own_time


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


def test_trouble_that_lasts_is_told_once_until_it_is_over(time: Time) -> None:
    told: list[str] = []
    patience = Persistence(None, told.append)
    patience.carry(failing(REFUSED, REFUSED), None, reads=True)
    assert not told
    patience.carry(failing(*[BUSY] * 12), None, reads=True)
    assert len(told) == 1
    assert told[0].startswith("API server busy (429), trying again since ")
    patience.carry(failing(*[REFUSED] * 12), None, reads=True)
    assert [line.partition(" (")[0] for line in told[1:]] == ["API server gives no answer"]


def trying(time: Time, *tries: tuple[float, Failure | None]) -> Callable[[], str]:
    """One after the other: after so many seconds it fails so, or is done."""
    left = iter(tries)

    def send() -> str:
        seconds, error = next(left)
        time.sleep(seconds)
        if error is not None:
            raise error
        return "done"

    return send


@pytest.mark.parametrize(
    ("tries", "lines"),
    [
        ([(9.0, None)], []),
        ([(60.0, None)], ["02:00:10 no answer from the API server, or no credentials for it, waiting since 02:00:00"]),
        ([(9.0, BUSY), (0.5, None)], []),
        ([(1.0, BUSY), (60.0, None)], ["02:00:10 API server busy (429), trying again since 02:00:00"]),
        (
            [(0.0, failure(503, retry_after=30.0)), (0.0, None)],
            ["02:00:10 API server busy (503), trying again since 02:00:00"],
        ),
        (
            [(60.0, HUNG), (60.0, None)],
            ["02:00:10 no answer from the API server, or no credentials for it, waiting since 02:00:00"],
        ),
        (
            [(60.0, FORBIDDEN)],
            ["02:00:10 no answer from the API server, or no credentials for it, waiting since 02:00:00"],
        ),
    ],
)
def test_trouble_is_told_when_it_has_lasted_and_not_when_a_try_is_over(
    tries: list[tuple[float, Failure | None]], lines: list[str], time: Time
) -> None:
    told: list[str] = []
    patience = Persistence(None, lambda line: told.append(f"{time.clock()} {line}"))
    with contextlib.suppress(Failure):
        patience.carry(trying(time, *tries), repeatable, reads=True)
    assert told == lines
    time.sleep(60.0)
    assert len(told) == len(lines), "nothing is under way any more"


def test_who_asks_anew_and_is_hung_on_then_tells_of_all_the_trouble(time: Time) -> None:
    told: list[str] = []
    brief = Persistence(None, lambda line: told.append(f"{time.clock()} {line}")).briefly(always)
    for tries in ([(0.0, BUSY)] * 100, [(60.0, HUNG)], [(60.0, HUNG)]):
        with pytest.raises(Failure) as failed:
            brief.carry(trying(time, *tries), repeatable, reads=True)
    assert told == ["02:00:10 API server busy (429), trying again since 02:00:00"]
    assert failed.value.announced


def test_a_refusal_that_was_waited_for_is_no_trouble_itself(time: Time) -> None:
    told: list[str] = []
    patience = Persistence(None, told.append)
    with pytest.raises(Failure):
        patience.briefly(always).carry(failing(*[BUSY] * 100), None, reads=True)
    with pytest.raises(Failure) as failed:
        patience.carry(trying(time, (60.0, FORBIDDEN)), None, reads=True)
    assert (len(told), failed.value) == (1, FORBIDDEN)


def test_what_has_just_begun_is_not_told_to_hang_by_what_was_before(time: Time) -> None:
    """A request is asked after trouble of ten seconds that nobody was there to tell; it is given ten of its own."""
    told: list[str] = []
    brief = Persistence(None, lambda line: told.append(f"{time.clock()} {line}")).briefly(always)
    with pytest.raises(Failure):
        brief.carry(failing(*[BUSY] * 100), None, reads=True)
    time.sleep(15.0)
    brief.carry(trying(time, (9.0, None)), None, reads=True)
    assert not told


def test_a_try_that_hangs_while_others_are_answered_is_told_by_its_own_time(time: Time) -> None:
    """The trouble at its beginning was over before it was told."""
    told: list[str] = []
    patience = Persistence(None, lambda line: told.append(f"{time.clock()} {line}"))
    with pytest.raises(Failure):
        patience.briefly(always).carry(failing(*[BUSY] * 100), None, reads=True)

    def hang() -> None:
        patience.carry(trying(time, (1.0, None)), None, reads=True)
        time.sleep(60.0)

    patience.carry(hang, None, reads=True)
    assert told == ["02:00:15 no answer from the API server, or no credentials for it, waiting since 02:00:05"]


def test_one_thread_is_enough_for_many_requests(time: Time) -> None:
    patience, most = Persistence(None, print), 0
    for _request in range(100):
        patience.carry(trying(time, (1.0, None)), None, reads=True)
        most = max(most, len(time.timers))
    assert most == 1


@pytest.mark.parametrize("tell", [print, nobody])
def test_a_request_does_without_a_thread_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[[str], None]
) -> None:
    """Of which nobody who hears of trouble needs one."""
    asked: list[float] = []

    class Exhausted(threading.Timer):
        def start(self) -> None:
            asked.append(self.interval)
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(persistence, "Timer", Exhausted)
    patience = Persistence(None, tell)
    assert [patience.carry(failing(BUSY), None, reads=True) for _request in range(2)] == ["done"] * 2
    assert asked == ([] if tell is nobody else [10.0] * 2)


def test_a_write_of_which_it_cannot_be_seen_whether_it_may_be_is_told_by_that(time: Time) -> None:
    told: list[str] = []
    patience = Persistence(None, lambda line: told.append(f"{time.clock()} {line}"))

    def may() -> None:
        patience.carry(trying(time, (1.0, STARTING), (60.0, None)), None, reads=True)

    assert patience.guarded(may).carry(failing(), None, reads=False) == "done"
    assert told == ["02:00:10 API server busy (503), trying again since 02:00:00"]


def test_a_try_that_hangs_is_told_of_from_beside_it(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a thread, which ends when nothing is under way any more."""
    threads: list[threading.Timer] = []

    def timer(_seconds: float, ring: Callable[[], None]) -> threading.Timer:
        threads.append(threading.Timer(0.0, ring))
        return threads[-1]

    def hang() -> bool:
        time.now += 10.0
        return heard.wait(60.0)

    monkeypatch.setattr(persistence, "Timer", timer)
    heard = threading.Event()
    assert Persistence(None, lambda _line: heard.set()).carry(hang, None, reads=True)
    for thread in threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads)


def test_trouble_that_outlasts_its_requests_is_told_once(time: Time) -> None:
    """As to somebody who asks anew, second after second, while the server is away for longer than a request lasts."""
    told: list[str] = []
    patience = Persistence(3600.0, told.append)

    def ask_anew() -> None:
        for _look in range(200):
            with pytest.raises(Failure):
                patience.carry(failing(*[REFUSED] * 1000), None, reads=True)
            time.sleep(1.0)

    ask_anew()
    assert len(told) == 1, told
    assert patience.carry(failing(), None, reads=True) == "done"
    ask_anew()
    assert len(told) == 2, told


def test_who_has_asked_on_in_vain_can_say_since_when(time: Time) -> None:
    lines, words = list[str](), set[str]()
    brief = Persistence(3600.0, lines.append).briefly(always)
    for _look in range(20):
        with pytest.raises(Failure) as told:
            brief.carry(failing(*[BUSY] * 10_000), None, reads=True)
        words.add(told.value.since)
        time.sleep(30.0)
    assert words == {"02:00:00"}
    assert lines == ["API server busy (429), trying again since 02:00:00"]
    assert told.value.at_the_end == f"{BUSY.message}, in trouble since 02:00:00"


def test_a_line_is_not_told_again_because_something_else_is_answered(time: Time) -> None:
    told: list[str] = []
    patience = Persistence(60.0, told.append)

    def send() -> str:
        patience.carry(failing(), None, reads=True)
        raise BUSY

    with pytest.raises(Failure):
        patience.carry(send, None, reads=False)
    assert len(told) == 1, told

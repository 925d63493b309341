# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A time of the test's own for what is sent again, and how requests fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure


class Time:
    """Goes on only when somebody sleeps, and timers ring meanwhile. slept: how long each time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.timers: list[Timer] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.rings_at <= end]:
            first = min(due, key=lambda timer: timer.rings_at)
            self.timers.remove(first)
            self.now = first.rings_at
            first.ring()
        self.now = end

    def clock(self, _form: str = "") -> str:
        minutes, seconds = divmod(int(self.now - 1000.0), 60)
        return f"02:{minutes:02}:{seconds:02}"

    def timer(self, seconds: float, ring: Callable[[], None]) -> Timer:
        return Timer(self, seconds, ring)


class Timer:
    """As that of `threading`, by such a time."""

    def __init__(self, time: Time, seconds: float, ring: Callable[[], None]) -> None:
        self.daemon = False
        self.ring = ring
        self.rings_at = time.now + seconds
        self._time = time

    def start(self) -> None:
        assert self.daemon, "a task that is stopped would wait for it"
        self._time.timers.append(self)


def own_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    """Of persistence.py, with the limits that the tests of other things shorten."""
    time = Time()
    monkeypatch.setattr(clock, "now", lambda: time.now)
    # Of this module alone: what other tests have left running sleeps as it likes.
    monkeypatch.setattr(persistence, "time", SimpleNamespace(sleep=time.sleep, strftime=time.clock))
    monkeypatch.setattr(persistence, "Timer", time.timer)
    monkeypatch.setattr(persistence, "READING", 120.0)
    monkeypatch.setattr(persistence, "BRIEF", 5.0)
    yield time
    time.sleep(persistence.TOLD_AFTER)
    assert not time.timers, "nothing is under way any more"


def failure(status: int | None = None, **more: Any) -> Failure:
    return Failure("do it", "server", f"the API server answered {status}, no", "Wait.", status=status, **more)


BUSY, STARTING, BUDGET = failure(429), failure(503, retry_after=1.0), failure(429, considered=True)
REFUSED = failure(unanswered=True, unsent=True, reason="ConnectionRefused")
LOST, BROKEN = failure(unanswered=True, reason="ConnectionLost"), failure(500)
HUNG, FORBIDDEN = failure(unanswered=True, reason="Timeout"), failure(403)
UNTRUSTED = failure(unanswered=True, unsent=True, reason="CertificateInvalid")


def failing(*failures: Failure) -> Callable[[], str]:
    """Does so first, one after the other."""
    left: Iterator[Failure] = iter(failures)

    def send() -> str:
        for error in left:
            raise error
        return "done"

    return send

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is looked at again, and for how long; time is the test's own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import waiting
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

AWAY = Failure("look", "server", "connection refused", "Wait.", unanswered=True)
FORBIDDEN = Failure("look", "server", "the API server answered 403, no", "Ask.", status=403)


class Course:
    """What the looks see, one after the other, and the last for ever. A look takes a second.

    at: after how many seconds each was. wanting: what was seen and was not enough.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seen: int | Failure) -> None:
        self.now = 1000.0
        self.at: list[float] = []
        self.slept: list[float] = []
        self.wanting: list[int] = []
        self._seen = list(seen)
        monkeypatch.setattr(clock, "now", lambda: self.now)
        monkeypatch.setattr(waiting, "time", SimpleNamespace(sleep=self._sleep))

    def look(self) -> int:
        self.at.append(self.now - 1000.0)
        self.now += 1.0
        found = self._seen.pop(0) if len(self._seen) > 1 else self._seen[0]
        if isinstance(found, Failure):
            raise found
        return found

    def until(self, seconds: float, pause: float = 5.0) -> int:
        return waiting.until(self.look, lambda seen: seen > 2, seconds, pause, self.wanting.append)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


Set = Callable[..., Course]


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch) -> Set:
    return lambda *seen: Course(monkeypatch, *seen)


def test_it_ends_when_it_is_enough(course: Set) -> None:
    going = course(1, AWAY, 2, 3)
    assert going.until(60.0) == 3
    assert (going.slept, going.wanting) == ([5.0, 5.0, 5.0], [1, 2])
    assert going.at == [0.0, 6.0, 12.0, 18.0]


def test_the_last_look_is_when_the_time_is_over(course: Set) -> None:
    going = course(1)
    assert going.until(8.0) == 1
    assert (going.slept, going.at) == ([5.0, 1.0], [0.0, 6.0, 8.0])


@pytest.mark.parametrize("seen", [1, AWAY])
def test_without_time_it_looks_once(course: Set, seen: int | Failure) -> None:
    going = course(seen, 3)
    if isinstance(seen, Failure):
        with pytest.raises(Failure):
            going.until(0.0)
    else:
        assert going.until(0.0) == seen
    assert (going.at, going.slept) == ([0.0], [])


def test_what_still_fails_in_the_end_is_told(course: Set) -> None:
    away = [AWAY.replaced() for _look in range(2)]
    going = course(1, *away)
    with pytest.raises(Failure) as told:
        going.until(8.0)
    assert (told.value, going.slept) == (away[1], [5.0, 1.0])


def test_how_often_it_has_failed_since_it_was_last_seen_is_told(course: Set) -> None:
    away = [AWAY.replaced() for _look in range(4)]
    for error, since in zip(away, ("01:00:00", "02:14:07", "02:14:09", "02:14:11"), strict=True):
        error.since = since
    with pytest.raises(Failure) as told:
        course(away[0], 1, *away[1:]).until(20.0)
    assert told.value.at_the_end == "connection refused, tried 3 times since 02:14:07"


def test_what_time_does_not_mend_is_told_at_once(course: Set) -> None:
    going = course(1, FORBIDDEN)
    with pytest.raises(Failure) as told:
        going.until(60.0)
    assert (told.value, going.slept) == (FORBIDDEN, [5.0])

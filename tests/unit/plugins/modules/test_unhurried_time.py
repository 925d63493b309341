# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of tasks in these tests passes with what they wait, and hardly with what the machine takes."""

from __future__ import annotations

import threading
import time
from queue import Empty, Queue
from types import SimpleNamespace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import watch

from unit.plugins.support import unhurried
from unit.plugins.support.unhurried import Bell, News, UnhurriedTime


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time of the machine, to be set."""
    machine = SimpleNamespace(now=100.0)
    machine.monotonic = lambda: machine.now
    machine.sleep = lambda seconds: setattr(machine, "now", machine.now + seconds + 3)
    monkeypatch.setattr(unhurried, "time", machine)
    return machine


def test_it_passes_as_the_machine_s_does_while_little_passes(machine: SimpleNamespace) -> None:
    clock = UnhurriedTime()
    machine.now += 0.004
    assert clock.monotonic() == pytest.approx(0.004)


def test_a_machine_that_stands_still_takes_nothing_of_it(machine: SimpleNamespace) -> None:
    clock = UnhurriedTime()
    machine.now += 5
    assert clock.monotonic() == clock.clock_gettime(0) == pytest.approx(0.01)


def test_sleep_counts_as_long_as_was_asked_for(machine: SimpleNamespace) -> None:
    clock = UnhurriedTime()
    clock.sleep(2)
    assert machine.now == 105.0
    assert clock.monotonic() == pytest.approx(2.0)


def test_news_that_does_not_come_takes_what_was_waited_for_it() -> None:
    clock = UnhurriedTime()
    news, bell = News(clock), Bell(clock)
    with pytest.raises(Empty):
        news.get(timeout=0.05)
    assert clock.monotonic() == pytest.approx(0.05, abs=0.02)
    assert not bell.wait(0.05)
    assert clock.monotonic() == pytest.approx(0.1, abs=0.04)


def test_a_watch_that_ends_takes_its_rest_at_most(machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_REST", 0.5)  # more than a thread is late by itself
    clock = UnhurriedTime()
    news = News(clock)

    def late(*_arguments: object) -> None:
        machine.now += 7

    monkeypatch.setattr(Queue, "get", late)
    assert news.get(timeout=60) is None
    assert clock.monotonic() == pytest.approx(watch._REST)


def test_news_that_comes_takes_nothing_of_it() -> None:
    clock = UnhurriedTime()
    news, bell = News(clock), Bell(clock)
    news.put({"type": "ADDED"})
    bell.set()
    assert news.get(timeout=60) == {"type": "ADDED"}
    assert bell.wait(60)
    assert clock.monotonic() == pytest.approx(0.0, abs=0.05)


def test_others_look_at_it_without_moving_it(machine: SimpleNamespace) -> None:
    clock = UnhurriedTime()
    machine.now += 0.004
    seen: list[float] = []
    other = threading.Thread(target=lambda: seen.append(clock.monotonic()))
    other.start()
    other.join()
    assert seen == [0.0]
    assert clock.monotonic() == pytest.approx(0.004)


def test_all_else_is_as_it_is() -> None:
    assert UnhurriedTime().strftime("%Y", time.gmtime(0)) == "1970"

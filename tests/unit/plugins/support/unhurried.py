# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock for tasks that are given a second, on machines that may stand still for longer than that."""

from __future__ import annotations

import threading
import time
from queue import Empty, Queue
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run, starts
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import (
    inquiries,
    observer,
    replicas,
    waiting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence, watch
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import (
    cancellation,
    maintenance,
    run_lease,
    run_memory,
)
from ansible_collections.virtops.kubevirt.plugins.modules import vmi_replicaset

# Between two looks at the clock at most so many seconds pass, of those in which the task did not sleep.
_MOST = 0.01
# All that a task waits by, but what reads streams: there nothing is given up, and what is waited for is news.
_MODULES = (
    *(plan_run, starts, inquiries, observer, replicas, waiting, clock, persistence),
    *(cancellation, maintenance, run_lease, run_memory, vmi_replicaset),
)


class UnhurriedTime:
    """As the module `time`, for a task that runs in the main thread.

    Its time passes while it sleeps or waits for news in vain, and hardly while it works: however slow the machine is, a
    task gets to take a hundred looks in its second, and what it does meanwhile is what a test can say beforehand.
    """

    def __init__(self) -> None:
        self._now, self._seen = 0.0, time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        if threading.current_thread() is threading.main_thread():
            seen = time.monotonic()
            self._now, self._seen = self._now + min(seen - self._seen, _MOST), seen
        return self._now

    def clock_gettime(self, _clock: int) -> float:
        return self.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        """So long the task has waited."""
        if threading.current_thread() is threading.main_thread():
            self._now, self._seen = self._now + seconds, time.monotonic()


class News(Queue[Any]):
    """A queue whose reader's time passes while nothing comes but the end of a watch, which is told after a rest."""

    def __init__(self, time_of_reader: UnhurriedTime) -> None:
        super().__init__()
        self._time = time_of_reader

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        begun = time.monotonic()
        try:
            item = super().get(block, timeout)
        except Empty:
            self._time.pass_by(timeout or 0.0)
            raise
        if not isinstance(item, dict):
            self._time.pass_by(min(time.monotonic() - begun, watch._REST))
        return item


class Bell(threading.Event):
    """An event whose hearer's time passes while it is silent."""

    def __init__(self, time_of_hearer: UnhurriedTime) -> None:
        super().__init__()
        self._time = time_of_hearer

    def wait(self, timeout: float | None = None) -> bool:
        is_rung = super().wait(timeout)
        if not is_rung:
            self._time.pass_by(timeout or 0.0)
        return is_rung


def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_of_the_task = UnhurriedTime()
    for module in _MODULES:
        monkeypatch.setattr(module, "time", clock_of_the_task)
    monkeypatch.setattr(watch, "Queue", lambda: News(clock_of_the_task))
    monkeypatch.setattr(observer, "threading", SimpleNamespace(Event=lambda: Bell(clock_of_the_task)))

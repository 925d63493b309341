# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry a plan out: look, let the reducer say what follows, do it, tell of it, and again until it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    TOLD_AFTER,
    May,
    always,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import telling
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
    questions,
    rehearsal,
    rehearsed,
    unasked,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

# Seconds until the next look, if nothing happens: while something is asked for again, and while it is only waited for.
_PAUSE, _QUIET = 0.5, 5.0
# By so much the first of these grows with each look that shows nothing new, up to the second: what has taken long may
# take a bit longer, and not each look is told of changes by a watch.
_GROWTH, _MOST_GROWTH = 1.5, 8
_PAUSE_AFTER_TROUBLE = 1.0
# A look at who has the nodes may be so old, in seconds, when something is done.
_GUARDED_FOR = 2.0


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._end = self._clock.steady() + seconds

    @property
    def left(self) -> float:
        """In seconds, 0 when it is over."""
        return max(0.0, self._end - self._clock.steady())


class Teller(Protocol):
    """Takes lines for people."""

    def tell(self, line: str) -> None: ...

    def detail(self, line: str) -> None: ...

    def totals(self, text: str) -> None: ...

    def stands(self, standing: Standing) -> None: ...


class Looks(Protocol):
    """Looks at what a plan is about. Methods raise Failure."""

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """Look at these nodes as well from now on, and at the run's migrations away from `sources`."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        """Return with the next changes, or after some seconds without one; at once the first time."""

    def forget(self) -> None:
        """Let the next look read everything anew, and not wait."""


class Doer(Protocol):
    """Does what commands say."""

    @property
    def server(self) -> str:
        """Its name, for messages."""

    def carry_out(
        self, commands: Collection[Command], may: May = always, *, once: bool = False
    ) -> tuple[list[Answer], Failure | None]:
        """What came of them, and why some were not asked for, or nothing can tell, if so.

        may: raises Failure unless the next command may be carried out. once: whether nothing that fails is asked anew.
        """


@dataclass(frozen=True, slots=True)
class Means:
    """What a plan is carried out with. `guard`: raises Failure unless these nodes, and the run, are ours."""

    looks: Looks
    verbs: Doer
    guard: Callable[[Collection[str]], None]
    teller: Teller
    clock: Clock = field(default_factory=Clock)


@dataclass
class PlanRun:
    """A plan on its way. `trouble`: why the last look failed. `is_over`: nothing more will come of it.

    last_ours: when its nodes were seen to be ours for the last time, in seconds since the epoch; None if never.
    ends_at: when it is given up, by the clock that never runs backwards.
    """

    means: Means
    execution: Execution
    plan: Plan
    record: Record = field(default_factory=Record)
    trouble: Failure | None = None
    is_over: bool = False
    last_ours: float | None = None
    ends_at: float = float("inf")
    _calm: int = 0
    _guarded_at: float = float("-inf")
    _troubled_at: float = 0.0
    _is_told: bool = False
    _seeing: threading.Lock = field(default_factory=threading.Lock)
    _origin: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        self._origin = self.means.clock.since_epoch(), self.means.clock.steady()

    def rehearse(self) -> None:
        """Put everything to the server without doing it. Raises Failure."""
        self._survey()
        look = self._look(0.0)
        record, commands = rehearsal(self.plan, self.record, look, self._now(), self.execution)
        answers, trouble = self.means.verbs.carry_out(commands, once=True)
        self.record = rehearsed(record, (answer for answer in answers if not answer.unasked), self._now())
        if trouble is not None:
            raise trouble

    def start(self) -> None:
        """Take the first step only, and wait for nothing. Raises Failure."""
        self._begin()
        self._tick(0.0, once=True)

    def run(self, seconds: float) -> None:
        """Until it is over, or for so long. Raises Failure, InvalidRequest."""
        for _step in self.steps(seconds):
            pass

    def steps(self, seconds: float) -> Iterator[None]:
        """As `run`, but whoever asks for the next step lets it be taken. Raises Failure, InvalidRequest."""
        clock = self.means.clock
        self.ends_at = clock.steady() + seconds
        self._begin()
        # Asked for once: looked at twice, the time may be over in between, and nobody can sleep until then.
        while not self.is_over and (rest := self.ends_at - clock.steady()) > 0.0:
            try:
                self._tick(rest)
                self.trouble = None
            except Failure as error:
                if not error.passing:
                    raise
                self._endure(error)
            yield

    def _survey(self) -> None:
        """See what there is. What some commands take is asked for when it is known who owns a VMI."""
        self._follow(self.plan)
        asking = replace(self.execution, begins=False)
        self.record, _none = advance(self.plan, self.record, self._look(0.0), self._now(), asking)

    def _begin(self) -> None:
        self._follow(self.plan)
        self._tell(follow(self.plan, Record(), self.execution))

    def _conclude(self) -> None:
        """See, after a step, whether it is over."""
        self.is_over = not self.record.unfinished

    def _told_elsewhere(self) -> Collection[str]:
        """Ids of what others tell of."""
        return ()

    def _tell_totals(self) -> None:
        """How far it is."""
        self.means.teller.totals(telling.counts(self.record))

    def _look(self, seconds: float) -> Observation:
        return self.means.looks.look(questions(self.record), seconds)

    def _follow(self, plan: Plan, returned: frozenset[str] = frozenset()) -> None:
        """returned: uids of what has left and was there again, for which the plan was made anew."""
        self.plan, self.record = plan, follow(plan, self.record, self.execution, returned)
        self.means.looks.attend(self.execution.places(plan), self.execution.sources(plan))

    def _guard(self, age: float) -> None:
        """Raise Failure unless nodes and run are ours, by a look that is at most so many seconds old."""
        self._see(age)

    def _see(self, age: float) -> None:
        """As above, for many threads at once."""
        with self._seeing:
            begun = self.means.clock.now()
            if begun - self._guarded_at >= age:
                self.means.guard(self.execution.nodes(self.plan))
                self._guarded_at, self.last_ours = begun, self._now()

    def _tick(self, rest: float, *, once: bool = False) -> None:
        look = self._look(min(rest, self._pause()))
        before, stood = self.record, self._stands()
        self.record, commands = advance(self.plan, before, look, self._now(), self.execution)
        try:
            self._act(before, commands, once=once)
        finally:
            # Also where nothing may be done any more: the next step begins with what this look has shown.
            self._tell(before)
            self._calm = self._calm + 1 if self._stands() == stood else 0
        self._conclude()

    def _act(self, before: Record, commands: Collection[Command], *, once: bool) -> None:
        """before: as it was when these were decided on. Raises Failure."""
        if not commands:
            self._guard(_QUIET)
            return
        try:
            self._guard(_GUARDED_FOR)
        except Failure:
            self.record = unasked(self.record, before, commands)
            raise
        answers, trouble = self.means.verbs.carry_out(commands, lambda: self._see(_GUARDED_FOR), once=once)
        self.record = unasked(self.record, before, (answer.command for answer in answers if answer.unasked))
        self.record = answered(self.record, (answer for answer in answers if not answer.unasked), self._now())
        if trouble is not None:
            raise trouble

    def _pause(self) -> float:
        if self._is_idle():
            return _QUIET
        return min(max(_PAUSE, _QUIET), _PAUSE * _GROWTH ** min(self._calm, _MOST_GROWTH))

    def _stands(self) -> list[tuple[str, str]]:
        """How far everything unfinished is."""
        return [(entry.action, entry.status()) for entry in self.record.unfinished]

    def _is_idle(self) -> bool:
        """Whether only what watches tell is waited for."""
        entries = self.record.unfinished
        return bool(entries) and all(
            isinstance(entry, Migrating) and entry.in_flight and not entry.suspect for entry in entries
        )

    def _tell(self, before: Record) -> None:
        for entry in telling.news(before, self.record, self._told_elsewhere()):
            (self.means.teller.detail if entry.detail else self.means.teller.tell)(entry.line)
        self._tell_totals()

    def _endure(self, error: Failure) -> None:
        """Wait a moment after the server gave no answer. One that lasts is told, once."""
        clock = self.means.clock
        if self.trouble is None:
            self._troubled_at, self._is_told = clock.steady(), False
            error.since = error.since or time.strftime("%H:%M:%S", time.localtime(self._now()))
        self.trouble = error.following(self.trouble)
        self._is_told = self._is_told or error.announced
        if not self._is_told and clock.steady() - self._troubled_at >= TOLD_AFTER:
            self._is_told = True
            self.means.teller.tell(f"{error} Trying again since {error.since}.")
        clock.sleep(min(max(0.0, self.ends_at - clock.steady()), _PAUSE_AFTER_TROUBLE))

    def _now(self) -> float:
        """Seconds since the epoch, as of the beginning; clocks may be set meanwhile."""
        wall, steady = self._origin
        return wall + self.means.clock.steady() - steady

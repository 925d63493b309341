# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty a node, attempt by attempt, until nothing is left on it that is to leave.

Each attempt is decided on what is on the node at its beginning, so a run that was killed goes on where it ended, and
what could not go where it was to go is looked at anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import following
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain_run import DrainRun, Settings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.situations import look
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Situation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.move import NOT_MIGRATED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_results import History
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.rounds import Round

# Between two looks at a node whose VMs are moved by somebody else, or end; seconds.
_PAUSE = 1.0
# A pause lasts that many times as long as deciding took, which may have meant to read the whole cluster.
_SHARE = 4.0

# Why the migrations of VMs have failed so far, by their titles.
Failures = Mapping[str, Sequence[str]]


class Decide(Protocol):
    """`failures`: None at the first attempt. How each leaves, and what the cluster says to each migration."""

    def __call__(self, situation: Situation, failures: Failures | None) -> tuple[Departures, Sequence[Prospect]]: ...


@dataclass
class DrainTask:
    """run: the attempt under way. leaving: what it was begun with. failures: of migrations in earlier attempts."""

    client: Client
    settings: Settings
    decide: Decide
    run: DrainRun
    leaving: Departures
    history: History
    failures: dict[str, list[str]] = field(default_factory=dict)
    is_over: bool = False
    # Told with the first news.
    opening: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, client: Client, settings: Settings, decide: Decide) -> DrainTask:
        """Decide on the first attempt; nothing is written. Raises Failure, Mistake."""
        situation = look(client, settings.node, first=None)
        leaving, prospects = decide(situation, None)
        run = DrainRun.begin(client, settings, leaving, prospects)
        opening = [] if situation.is_empty else [f"{leaving} to do", *_waited_for(leaving.waiting)]
        history = History(situation.titles(), [pod["metadata"]["uid"] for pod in situation.pods])
        return cls(client, settings, decide, run, leaving, history, is_over=situation.is_empty, opening=opening)

    @classmethod
    def resume(cls, client: Client, settings: Settings, decide: Decide, state: Mapping[str, Any]) -> DrainTask:
        run = DrainRun.resume(client, settings, state["run"])
        run.away = state["away"]
        history, failures = History(**state["history"]), dict(state["failures"])
        return cls(client, settings, decide, run, Departures(waiting=state["waiting"]), history, failures)

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run.to_json(),
            "away": self.run.away,
            "waiting": dict(self.leaving.waiting),
            "history": self.history.to_json(),
            "failures": self.failures,
        }

    @property
    def has_failed(self) -> bool:
        """Whether something will not leave, however often it is tried, and everything else has come to its end."""
        return bool(self.leaving.stuck) or (self.run.has_failed_for_good and not self.run.unfinished)

    @property
    def is_done(self) -> bool:
        return self.is_over or self.has_failed

    def work(self, this_round: Round) -> list[str]:
        """Until the node is empty, something has failed for good, or the round is over; lines on it. Raises Failure."""
        lines: list[str] = []
        opening, self.opening = self.opening, []
        end = time.monotonic() + this_round.span
        while not self.is_done:
            lines += self.run.follow(_until(end), until_news=this_round.heard)
            if self.run.unfinished or (this_round.heard and lines):
                break
            if not self.has_failed:
                lines += self._next_attempt(end)
            if not _until(end):
                break
        return [f"node {self.settings.node}: {line}" for line in (*opening, *lines)]

    def _next_attempt(self, end: float) -> list[str]:
        try:
            lines = self._go_on(end)
        except Failure as error:
            if not error.passing:
                raise
            return following.endure(self.run, error, _until(end))
        self.run.trouble, self.run.away = None, False
        return lines

    def _go_on(self, end: float) -> list[str]:
        """After an attempt: see what is left, and begin the next one with it; lines on it. Raises Failure."""
        situation = look(self.client, self.settings.node, first=self.history.pods)
        self.is_over = situation.is_empty
        if self.is_over:
            return []
        failures, begun = {**self.failures, **self._failures()}, time.monotonic()
        leaving, prospects = self.decide(situation, failures)
        before, self.leaving = self.leaving.waiting, leaving
        lines = _waited_for({title: why for title, why in leaving.waiting.items() if before.get(title) != why})
        if leaving.stuck:
            return []
        if not (leaving.migrations or leaving.interruptions or leaving.evictions):
            time.sleep(min(_until(end), max(_PAUSE, _SHARE * (time.monotonic() - begun))))
            return lines
        run = DrainRun.begin(self.client, self.settings, leaving, prospects)
        for move in run.migrations.moves:
            known = failures.get(move.title) or [""]
            move.attempts, move.failure_reason = max(move.attempts, len(failures.get(move.title) or ())), known[-1]
        self.history.keep(self.run)
        self.run, self.failures = run, failures
        return [f"still {leaving} to do", *lines]

    def _failures(self) -> dict[str, list[str]]:
        """With those of the attempt that is over."""
        failed = [move for move in self.run.migrations.moves if move.outcome == NOT_MIGRATED]
        return {move.title: [*self.failures.get(move.title, ()), move.failure_reason] for move in failed}


def _until(end: float) -> float:
    """Seconds until a moment of the monotonic clock."""
    return max(0.0, end - time.monotonic())


def _waited_for(waiting: Mapping[str, str]) -> list[str]:
    return [f"{title}: waiting, {why}" for title, why in waiting.items()]

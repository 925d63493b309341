# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make cases, have them judged by both sides, and gather the disagreements."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from differential import ours, upstream
from differential.cases.cluster import case
from differential.compare import differences

Json = dict[str, Any]
BATCH = 25


@dataclass(frozen=True)
class Disagreement:
    """A case, not yet stored, of which one pod alone is asked about, and the answers, which differ."""

    case: Json
    theirs: Json
    ours: Json

    @property
    def lines(self) -> list[str]:
        return differences(self.theirs, self.ours)


@dataclass
class Report:
    """`reasons`: how many pods were given each reason by some node; `failed`: for how many scoring failed."""

    cases: int = 0
    pods: int = 0
    fitting: int = 0
    failed: int = 0
    seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, given: Json, theirs: list[Json], mine: list[Json]) -> None:
        self.cases += 1
        for asked, their, my in zip(given["asked"], theirs, mine, strict=True):
            self.pods += 1
            self.fitting += bool(their["fit"])
            self.failed += "error" in their
            self.reasons.update({reason for reasons in their["unfit"].values() for reason in reasons})
            if differences(their, my):
                self.disagreements.append(Disagreement({**given, "asked": [asked]}, their, my))


def seeded(seed: int, count: int, *, scores: bool = True) -> Iterator[Json]:
    """That many cases of a seed. Every other state is come to by changes."""
    for number in range(count):
        yield {**case(seed, number), "scores": scores, "changed": number % 2 == 1}


def run(cases: Iterable[Json], *, stop_after: int | None = None) -> Report:
    """Compare both sides on every case, with both at work at the same time.

    `stop_after`: end when that many disagreements are found.
    """
    started, report = time.monotonic(), Report()
    remaining, workers = iter(cases), os.cpu_count() or 1
    waiting: deque[tuple[list[Json], Future[list[tuple[list[Json], list[Json]]]]]] = deque()
    with ProcessPoolExecutor(workers) as pool:
        while True:
            while len(waiting) < 2 * workers and (batch := list(islice(remaining, BATCH))):
                waiting.append((batch, pool.submit(both, batch)))
            if not waiting or (stop_after is not None and len(report.disagreements) >= stop_after):
                break
            batch, future = waiting.popleft()
            for given, (theirs, mine) in zip(batch, future.result(), strict=True):
                report.add(given, theirs, mine)
    report.seconds = time.monotonic() - started
    return report


def both(batch: list[Json]) -> list[tuple[list[Json], list[Json]]]:
    """The oracle's answers to each case, and ours."""
    stored = list(upstream.store(batch))
    return [(theirs, ours.answers(case)) for theirs, case in zip(upstream.judge(stored), stored, strict=True)]

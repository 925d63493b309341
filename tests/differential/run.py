# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make cases, have them judged by both sides, and gather the disagreements."""

from __future__ import annotations

import os
import time
from collections import Counter
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
    """A case of which one pod alone is asked about, and in what the answers to it differ."""

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

    def add(self, stored: Json, theirs: list[Json], mine: list[Json]) -> None:
        self.cases += 1
        for asked, their, my in zip(stored["asked"], theirs, mine, strict=True):
            self.pods += 1
            self.fitting += bool(their["fit"])
            self.failed += "error" in their
            self.reasons.update({reason for reasons in their["unfit"].values() for reason in reasons})
            if differences(their, my):
                self.disagreements.append(Disagreement({**stored, "asked": [asked]}, their, my))


def seeded(seed: int, pods: int, *, scores: bool = True) -> Iterator[Json]:
    """As many cases of a seed as ask about that many pods. Every other state is come to by changes."""
    number = asked = 0
    while asked < pods:
        found = case(seed, number)
        yield {**found, "scores": scores, "changed": number % 2 == 1}
        number, asked = number + 1, asked + len(found["asked"])


def run(cases: Iterable[Json], *, stop_after: int | None = None, raw: bool = True) -> Report:
    """Compare both sides on every case, both at work at the same time. `raw`: the cases are not yet stored.

    `stop_after`: end when that many disagreements are found.
    """
    started, report = time.monotonic(), Report()
    remaining = iter(cases)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting: list[tuple[list[Json], Future[tuple[list[list[Json]], list[Json]]]]] = []
        while True:
            while len(waiting) < 2 * (os.cpu_count() or 1) and (batch := list(islice(remaining, BATCH))):
                waiting.append((batch, pool.submit(both, batch, raw=raw)))
            if not waiting:
                break
            theirs, stored_and_ours = waiting.pop(0)[1].result()
            for their, mine in zip(theirs, stored_and_ours, strict=True):
                report.add(mine["case"], their, mine["answers"])
            if stop_after is not None and len(report.disagreements) >= stop_after:
                break
    report.seconds = time.monotonic() - started
    return report


def both(batch: list[Json], *, raw: bool = True) -> tuple[list[list[Json]], list[Json]]:
    """The oracle's answers, and the stored cases with ours."""
    stored = [{**given, **kept} for given, kept in zip(batch, upstream.store(batch), strict=True)] if raw else batch
    return list(upstream.judge(stored)), [{"case": one, "answers": ours.answers(one)} for one in stored]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of a run, and of many."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median


@dataclass
class Outcome:
    """wrong: what must never be. attempts: exit codes. names: of disturbances, and what they did, with its second.

    messages: of the tasks that failed. seconds: of everything. running: those of the attempts. requests: of the run,
    and how many of them came to grief, by how. migrations: of the run, how many succeeded, failed, or were superfluous.
    """

    seed: int
    nodes: int = 0
    vms: int = 0
    wrong: list[str] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    disturbances: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    seconds: float = 0.0
    running: float = 0.0
    requests: int = 0
    grief: dict[str, int] = field(default_factory=dict)
    migrations: dict[str, int] = field(default_factory=dict)


def keep(outcomes: Iterable[Outcome], path: Path) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    fresh.replace(path)


def kept(path: Path) -> list[Outcome]:
    return [Outcome(**values) for values in json.loads(path.read_text())] if path.exists() else []


def told(outcome: Outcome, folder: Path) -> str:
    lines = [
        f"seed {outcome.seed}: {'WRONG' if outcome.wrong else 'held'} in {outcome.running:.0f} s,"
        f" exit codes {outcome.attempts}, {_figures(outcome)}",
        *(f"    {line}" for line in outcome.disturbances),
        *(f"    WRONG: {line}" for line in outcome.wrong),
    ]
    return "\n".join([*lines, f"    see {folder}"] if outcome.wrong else lines)


def _figures(outcome: Outcome) -> str:
    how = ", ".join(f"{count} {name}" for name, count in sorted(outcome.grief.items()))
    moves = ", ".join(f"{count} {name}" for name, count in outcome.migrations.items())
    return f"{outcome.requests} requests{f' ({how})' if how else ''}, migrations: {moves or 'none'}"


def table(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Disturbances, and what came of the runs that had them: held at once, after further starts, or not."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        kind = "wrong" if outcome.wrong else "at once" if len(outcome.attempts) == 1 else "started again"
        for name in {*outcome.names} or {"(nothing)"}:
            counts[name][kind] += 1
    kinds = ("at once", "started again", "wrong")
    yield f"{'disturbance':24}" + "".join(f"{kind:>15}" for kind in kinds)
    for name in sorted(counts):
        yield f"{name:24}" + "".join(f"{counts[name][kind] or '':>15}" for kind in kinds)


def totals(outcomes: Sequence[Outcome]) -> str:
    """Of at least one run: what its requests met, and how long it took."""
    grief: Counter[str] = Counter()
    migrations: Counter[str] = Counter()
    for outcome in outcomes:
        grief.update(outcome.grief)
        migrations.update(outcome.migrations)
    requests = sum(outcome.requests for outcome in outcomes)
    whole = Outcome(0, requests=requests, grief=dict(grief), migrations=dict(migrations))
    times = [outcome.running for outcome in outcomes]
    return f"{_figures(whole)}; a run took {median(times):.0f} s in the median and {max(times):.0f} s at most"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the drains of a batch stand, and the one line of totals for all of them.

Each node is drained by a process of its own, which knows the plan and what it sees of its node. So each tells its
Standing, and who hears all of them keeps a Scoreboard, on which they come to one line, as in

    batch 3/20 · worker-07 4/9 moved, 2 in flight · 6/60 nodes done · about 41 min left
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable

# Seconds from one line to the next, and from the begin of a batch to its first: what takes less time needs none.
TOTALS_EVERY = 10.0
# Columns of a line that has the time of day before it.
_WIDTH = 120 - len("02:14:07 ")


@dataclass(frozen=True, slots=True)
class Standing:
    """Of one drain: numbers that were seen in the cluster, or stand in the plan in force.

    run: what tells its run from others, empty for a drain that belongs to none. batch, batches: the batch's number in
    the plan and how many there are; 0 for none. nodes: that the plan maintains; done: those of them that the run is
    done with, None if nobody has looked. leaving: what is to leave the node, VMs and pods; gone: what has left;
    flying: VMs in flight. migrations: of the node; settled: those that are over, also without success; migrated: those
    that this drain has seen through. planned: migrations of the whole batch. span, later: seconds that the plan has for
    those of the batch, and of all later batches; None if it tells nothing.
    """

    run: str
    node: str
    batch: int
    batches: int
    nodes: int
    done: int | None
    leaving: int
    gone: int
    flying: int
    migrations: int
    settled: int
    migrated: int
    planned: int
    span: int | None
    later: int | None

    def encoded(self) -> str:
        """On one line, in ASCII."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def decoded(cls, text: str) -> Standing:
        """Raises ValueError."""
        return _standing(json.loads(text))


@dataclass(frozen=True, slots=True)
class _Batch:
    """standings: by node. over: nodes whose drains have ended. begun, told_at: by the clock of the board."""

    begun: float
    told_at: float
    span: int | None
    told: str = ""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    over: frozenset[str] = frozenset()

    @property
    def is_over(self) -> bool:
        return self.over.issuperset(self.standings)

    def rest(self, now: float) -> float | None:
        """Seconds for which the batch still migrates, None if nothing tells.

        The more has migrated, the more counts how long that took, and the less what the plan expects of idle guests.
        """
        standings = self.standings.values()
        spans = [each.span for each in standings if each.span is not None]
        if len(spans) < len(standings):
            return None
        total = max(*(each.planned for each in standings), sum(each.migrations for each in standings))
        if not total:
            return 0.0
        left, migrated = total - sum(each.settled for each in standings), sum(each.migrated for each in standings)
        by_plan = max(spans) * left / total
        if not migrated:
            return by_plan
        as_seen = (now - self.begun) * left / migrated
        return by_plan + (as_seen - by_plan) * migrated / total


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """What is known of the drains of one ansible-playbook. Times are seconds by one clock that never runs backwards."""

    batches: Mapping[str, _Batch] = field(default_factory=dict)

    def posted(self, standing: Standing, now: float) -> tuple[Scoreboard, str]:
        """With where a drain stands now, and the line that is to be told; empty if it is too early, or nothing is new.

        Who belongs to a run stays on the board of its batch when it is over: it is part of what is told.
        """
        key, batches = _key(standing.run, standing.batch), self.batches
        batch = batches.get(key)
        if batch is None or (not standing.run and batch.is_over):
            # Of earlier batches only their pace counts from now on: nothing grows with all nodes of a run.
            batches = {name: _Batch(each.begun, each.told_at, each.span) for name, each in batches.items()}
            batch = _Batch(now, now, standing.span)
        standings = {**batch.standings, standing.node: standing}
        batch = replace(batch, standings=standings, over=batch.over - {standing.node})
        line = ""
        if now >= batch.told_at + TOTALS_EVERY:
            text = _line(standing, standings.values(), self._outlook(standing, batch, now))
            if text != batch.told:
                batch, line = replace(batch, told_at=now, told=text), text
        return replace(self, batches={**batches, key: batch}), line

    def left(self, standing: Standing) -> Scoreboard:
        """After the drain has ended, whether the node is empty or not."""
        key = _key(standing.run, standing.batch)
        batch = self.batches.get(key)
        if batch is None:
            return self
        return replace(self, batches={**self.batches, key: replace(batch, over=batch.over | {standing.node})})

    def encoded(self) -> str:
        return json.dumps({key: {**asdict(batch), "over": sorted(batch.over)} for key, batch in self.batches.items()})

    @classmethod
    def decoded(cls, text: str) -> Scoreboard:
        """Raises ValueError."""
        given = json.loads(text)
        try:
            return cls({str(key): _batch(entry) for key, entry in given.items()})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"this is no scoreboard ({error!r})") from error

    def _outlook(self, standing: Standing, batch: _Batch, now: float) -> str:
        """How long it will still take. Before a batch is over nobody knows what takes time beside the migrations."""
        rest = batch.rest(now)
        if rest is None or standing.later is None:
            return ""
        seconds, about, beside = rest + standing.later, "migrations for about", self._beside(standing)
        if beside is not None:
            this = max(rest, (standing.span or 0) + beside - (now - batch.begun))
            seconds = this + standing.later + beside * (standing.batches - standing.batch)
            about = "about"
        return f"{about} {_span(seconds)} left" if round(seconds) else ""

    def _beside(self, standing: Standing) -> float | None:
        """Seconds that a batch took beside the migrations that were planned, on average of those before; None of none.

        From one begin to the next: so it has the maintenance in it, and what migrations took longer than planned.
        """
        known = (self.batches.get(_key(standing.run, number)) for number in range(1, standing.batch + 1))
        spans = [
            after.begun - before.begun - before.span
            for before, after in pairwise(known)
            if before and after and before.span is not None
        ]
        return max(0.0, sum(spans) / len(spans)) if spans else None


def _line(standing: Standing, together: Collection[Standing], outlook: str) -> str:
    """Each node of the batch with its numbers, or their names or only how many they are, if there is no more room."""
    is_one_of_many = standing.batch > 0 and standing.batches > 1
    batch = f"batch {standing.batch}/{standing.batches}" if is_one_of_many else ""
    done = f"{standing.done}/{standing.nodes} nodes done" if is_one_of_many and standing.done is not None else ""
    flying = sum(each.flying for each in together)
    counts = f"{sum(each.gone for each in together)}/{sum(each.leaving for each in together)}"
    named = sorted((printable(each.node), f"{each.gone}/{each.leaving}") for each in together)
    nodes = (
        ", ".join(f"{name} {count}" for name, count in named),
        f"{', '.join(name for name, _count in named)} {counts}",
        f"{len(named)} node{'s' if len(named) > 1 else ''} {counts}",
    )
    ends = f"moved, {flying} in flight" if flying else "moved"
    lines = [" · ".join(part for part in (batch, f"{each} {ends}", done, outlook) if part) for each in nodes]
    return next((line for line in lines if len(line) <= _WIDTH), lines[-1])


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _key(run: str, batch: int) -> str:
    return f"{batch}/{run}" if run else ""


def _batch(given: Any) -> _Batch:
    span = given["span"]
    return _Batch(
        begun=float(given["begun"]),
        told_at=float(given["told_at"]),
        span=None if span is None else int(span),
        told=str(given["told"]),
        standings={str(node): _standing(entry) for node, entry in given["standings"].items()},
        over=frozenset(map(str, given["over"])),
    )


# By the types of fields, as they are written there.
_TYPES: Mapping[Any, tuple[type, ...]] = {"str": (str,), "int": (int,), "int | None": (int, type(None))}


def _standing(given: Any) -> Standing:
    """Raises ValueError."""
    try:
        values = {each.name: given[each.name] for each in fields(Standing)}
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no standing ({error!r})") from error
    wrong = [each.name for each in fields(Standing) if not isinstance(values[each.name], _TYPES[each.type])]
    if wrong:
        raise ValueError(f"this is no standing ({', '.join(wrong)})")
    return Standing(**values)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a case on which both sides disagree as small as it can be while they still do (delta debugging)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from differential import ours, upstream
from differential.compare import differences

Json = dict[str, Any]
# The keys and indexes that lead to a part of a case.
Path = tuple[str | int, ...]
# Of many cases, which are still interesting.
Judge = Callable[[list[Json]], list[bool]]

# Where deeper parts are only tried when no coarser part can be left out any more: case, lists, an item, its fields, …
DEEPEST = 14
# Without these an object is none, or a smaller case is harder to read.
KEPT = ("name", "namespace", "uid", "metadata", "spec", "lists", "asked", "profile")


@dataclass(frozen=True)
class Shrunk:
    """A smallest case, as stored, and in what the answers to it differ."""

    case: Json
    lines: list[str]


def smallest(case: Json) -> Shrunk:
    """The smallest case that shows the same disagreement. Raises ValueError when there is none."""
    found = tidy(shrink(case, disagreement_of(case)))
    ((theirs, mine),) = _answers([found])
    return Shrunk(found, differences(theirs[0], mine[0]))


def shrink(case: Json, interesting: Judge) -> Json:
    """A smallest case of those that come of leaving out parts: leaving out any one more makes it uninteresting."""
    depth = 1
    while depth <= DEEPEST:
        paths = [path for path in parts(case) if len(path) == depth]
        smaller = _leave_out(case, paths, interesting)
        if smaller is None:
            depth += 1
        else:
            # What a coarse part could not be spared for may have gone.
            case, depth = smaller, max(1, depth - 1)
    return case


def _leave_out(case: Json, paths: Sequence[Path], interesting: Judge) -> Json | None:
    """Try each part alone, then as many as possible of those that can be spared at once; None: none can."""
    alone = interesting([without(case, [path]) for path in paths])
    spare = [path for path, can in zip(paths, alone, strict=True) if can]
    together = []
    count = len(spare)
    while count:
        together.append(without(case, spare[:count]))
        count //= 2
    return next((found for found, still in zip(together, interesting(together), strict=True) if still), None)


def parts(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every part of a case that may be left out."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        if key not in KEPT and at != ("asked",):
            yield (*at, key)
        yield from parts(inner, (*at, key))


def without(case: Json, paths: Sequence[Path]) -> Json:
    """A copy without those parts, which are of one depth."""
    found = copy.deepcopy(case)
    for path in sorted(paths, key=repr, reverse=True):
        holder: Any = found
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = None
    smaller: Json = _without_none(found)
    return smaller


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_none(inner) for inner in value if inner is not None]
    return value


def disagreement_of(case: Json) -> Judge:
    """Judges whether smaller cases are valid and the answers still differ in the same thing as on this case.

    Raises ValueError when they do not differ on this one, or no API server would take it.
    """
    first = next(answered([case]))
    if first is None:
        raise ValueError("The case cannot be stored.")
    wanted = kind(*first)
    if wanted == AGREEMENT:
        raise ValueError("Both sides agree on this case.")

    def judge(cases: list[Json]) -> list[bool]:
        return [found is not None and kind(*found) <= wanted for found in answered(cases)]

    return judge


def answered(cases: list[Json]) -> Iterator[tuple[Json, Json] | None]:
    """Both answers to the only pod asked about in each case, as stored; None for a case that cannot be stored."""
    stored = list(upstream.store(cases, tolerant=True))
    usable = [found for found in stored if "error" not in found]
    theirs = dict(zip(map(id, usable), upstream.judge(usable), strict=True))
    for found in stored:
        yield None if "error" in found else (theirs[id(found)][0], ours.answers(found)[0])


def kind(theirs: Json, mine: Json) -> frozenset[str]:
    """What the answers differ in: the reasons that one side alone gives for a node, or else the key of the answer."""
    nodes = {*theirs["unfit"], *mine.get("unfit", {})}
    reasons = {
        reason for node in nodes for reason in {*theirs["unfit"].get(node, [])} ^ {*mine.get("unfit", {}).get(node, [])}
    }
    return frozenset(reasons or {line.partition(" ")[0] for line in differences(theirs, mine)}) or AGREEMENT


# Not a subset of any kind of disagreement.
AGREEMENT = frozenset({"agreement"})


def tidy(case: Json) -> Json:
    """The stored form of a case without those defaults of the API server on which neither answer depends."""
    (stored,) = upstream.store([case])
    given = {*parts(case), ("stored",)}
    answers = _answers([stored])

    def unchanged(cases: list[Json]) -> list[bool]:
        return [found == answers[0] for found in _answers(cases)]

    depth = 1
    while depth <= DEEPEST:
        paths = [path for path in parts(stored) if len(path) == depth and path not in given]
        stored, depth = _leave_out(stored, paths, unchanged) or stored, depth + 1
    return stored


def _answers(cases: list[Json]) -> list[tuple[list[Json], list[Json]]]:
    return [(theirs, ours.answers(case)) for theirs, case in zip(upstream.judge(cases), cases, strict=True)]

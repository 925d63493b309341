# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a case on which both sides disagree as small as it can be while they still do (delta debugging)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
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
KEPT = ("name", "namespace", "containers", "metadata", "spec", "status", "lists", "asked")


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
    return _without_none(found)  # type: ignore[no-any-return]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_none(inner) for inner in value if inner is not None]
    return value


def disagreement_of(case: Json) -> Judge:
    """Judges whether smaller cases are valid and the answers differ in the same thing as on this case."""
    kind = _kind(case)
    check_validity = "error" not in next(upstream.store([case], tolerant=True))

    def judge(cases: list[Json]) -> list[bool]:
        valid = [True] * len(cases)
        if check_validity:
            valid = ["error" not in answer for answer in upstream.store(cases, tolerant=True)]
        theirs = iter(upstream.judge([case for case, ok in zip(cases, valid, strict=True) if ok]))
        return [ok and _same(kind, case, next(theirs)) for case, ok in zip(cases, valid, strict=True)]

    return judge


def _kind(case: Json) -> str:
    lines = differences(next(upstream.judge([case]))[0], ours.answers(case)[0])
    return lines[0].split(" ")[0]


def _same(kind: str, case: Json, theirs: list[Json]) -> bool:
    lines = differences(theirs[0], ours.answers(case)[0])
    return bool(lines) and lines[0].split(" ")[0] == kind

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of which types the fields of an object are: a small language, beside that of projection.py.

An API server has seen to all of this, so it is asked where objects come from elsewhere: lists that people have written
or edited, and objects in a task. What is not described may be anything, as nobody reads it. What is null counts as not
given, as it does for the API server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import QuantityError

Shape = Callable[[Any], None]

_INT64 = 2**63
_DEPTH = 50
_SHOWN = 40
_SHARE = re.compile(r"[0-9]{1,9}%")


class Misfit(Exception):
    """A value is of another type: `where`, as in `spec.containers[0].name`, and what is wrong, a clause."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = ""

    def inside(self, step: str) -> None:
        """Add the name of the field, or the number in a list, in which it was found."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        self.where = f"{step}{dot}{self.where}"


def text(value: Any) -> None:
    if not isinstance(value, str):
        raise Misfit(f"is {described(value)}, where a string belongs")


def anything(value: Any) -> None:
    """What nobody reads. It is copied with the rest, which has its limits."""
    level = [value]
    for _depth in range(_DEPTH):
        level = [part for entry in level if isinstance(entry, (dict, list)) for part in _parts(entry)]
        if not level:
            return
    raise Misfit("nests deeper than any object of Kubernetes")


def _parts(value: dict[Any, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def whole(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Misfit(f"is {described(value)}, where a whole number belongs")
    if not -_INT64 <= value < _INT64:
        raise Misfit("is a number that is out of all bounds")


def flag(value: Any) -> None:
    if not isinstance(value, bool):
        raise Misfit(f"is {described(value)}, where true or false belongs")


def amount(value: Any) -> None:
    """A quantity."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Misfit(f"is {described(value)}, where an amount such as 500m or 2Gi belongs")
    try:
        quantity.parse(value)
    except QuantityError:
        raise Misfit(f"is {brief(value)!r}, which is no amount such as 500m or 2Gi") from None


def share(value: Any) -> None:
    """A number of things, or a share of them."""
    if not isinstance(value, str):
        whole(value)
    elif not _SHARE.fullmatch(value):
        raise Misfit(f"is {brief(value)!r}, where a number or a share such as 50% belongs")


def each(item: Shape) -> Shape:
    """A list, of which each item has a shape."""

    def check(value: Any) -> None:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise Misfit(f"is {described(value)}, where a list belongs")
        for index, entry in enumerate(value):
            try:
                item(entry)
            except Misfit as error:
                error.inside(f"[{index}]")
                raise

    return check


def every(item: Shape) -> Shape:
    """A mapping of names that are not foretold, such as labels, to values of a shape."""

    def check(value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Misfit(f"is {described(value)}, where a mapping belongs")
        key = ""
        try:
            for key, entry in value.items():
                text(key)
                item(entry)
        except Misfit as error:
            error.inside(f"[{str(key)[:_SHOWN]}]")
            raise

    return check


def record(needed: str = "", /, of: Mapping[str, Shape] | None = None, **fields: Shape | str) -> Shape:
    """A mapping with known fields.

    needed: names of those that have to be there. Each keyword names a field and its shape, or a type in the plural
    (`texts`, `wholes`, `flags`, `amounts`) and the names of the fields that are of it.
    """
    shapes: dict[str, Shape] = dict(of or {})
    for name, given in fields.items():
        if isinstance(given, str):
            shapes |= dict.fromkeys(given.split(), _TYPES[name])
        else:
            shapes[name] = given
    wanted = needed.split()

    def check(value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Misfit(f"is {described(value)}, where a mapping belongs")
        name = ""
        try:
            for name, entry in value.items():
                if entry is not None:
                    shapes.get(name, anything)(entry)
        except Misfit as error:
            error.inside(name)
            raise
        for name in wanted:
            if value.get(name) is None:
                raise Misfit(f"has no {name}")

    return check


_TYPES: Mapping[str, Shape] = {"texts": text, "wholes": whole, "flags": flag, "amounts": amount}


def described(value: object) -> str:
    """What it is, and never what it holds."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Sequence):
        return "a list"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"

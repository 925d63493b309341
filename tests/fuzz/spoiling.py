# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes and malice, put into a JSON value at random places."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Place = tuple[Any, Any]  # a container, and the key or index of something in it

DEPTHS = (100, 300, 900, 3_000)
_OUTER, _ATTEMPTS = 2, 4
MEGABYTE = 1 << 20
HOSTILE = (
    "",
    " ",
    "\x00",
    "\x1b]0;owned\x07\x1b[2J",
    "line\r\nanother: line",
    "\u202eesrever\u2066",
    "\ud800",
    "{{ lookup('pipe', 'id') }}",
    "{% for x in range(10**9) %}{% endfor %}",
    "!!python/object/apply:os.system [id]",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "a/b/c",
    "default/default",
    "-1",
    "1e999999999",
    "9" * 5_000,
    "0x10",
    "NaN",
    "50%",
    "²",
    "{}",
    "[",
    "null",
    "a=b,c in (d)",
    "x" * 300,
)
NUMBERS = (0, -1, 1, 2, 0.5, -0.0, 2**31, -(2**31), 2**63, -(2**63) - 1, 10**400, 1e308, float("inf"), float("nan"))
UNKNOWN = ("Unknown", "Sometimes", "always", "True", "", "Pending", "RUNNING")


def spoil(dice: random.Random, value: Any) -> str:
    """Change one place in it; what was done, in words."""
    container, key = _place(dice, value)
    how = dice.choices([act for act, _weight in _ACTS], [weight for _act, weight in _ACTS])[0]
    told = how(dice, container, key)
    return f"{told} at {key!r}"[:200]


def encoded(value: Any) -> bytes:
    """As JSON; what is too deep to be written is deep in another way."""
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return b'{"nodes": ' + b"[" * max(DEPTHS)


def _place(dice: random.Random, value: Any) -> Place:
    """One deep inside most of the time: what is wrong with a whole list or object is found at once."""
    found: Place = ({"all": value}, "all")
    for _attempt in range(_ATTEMPTS):
        current, depth = value, 0
        while isinstance(current, (dict, list)) and current:
            key = dice.choice(list(current)) if isinstance(current, dict) else dice.randrange(len(current))
            found, current, depth = (current, key), current[key], depth + 1
            if dice.random() < 0.15:
                break
        if depth > _OUTER:
            break
    return found


def _remove(dice: random.Random, container: Any, key: Any) -> str:
    del container[key]
    return "removed"


def _nothing(dice: random.Random, container: Any, key: Any) -> str:
    container[key] = None
    return "null"


def _other_type(dice: random.Random, container: Any, key: Any) -> str:
    others: list[Any] = ["text", 7, True, False, 1.5, [], {}, [[]], [{}], [None], {"a": {}}, {"a": None}, ["a", 1]]
    container[key] = dice.choice(others)
    return f"{container[key]!r}"


def _turned(dice: random.Random, container: Any, key: Any) -> str:
    """A list becomes a mapping, a mapping a list; what is neither is wrapped."""
    value = container[key]
    if isinstance(value, dict):
        container[key] = list(value.items()) if dice.random() < 0.5 else [value]
    elif isinstance(value, list):
        container[key] = {str(number): item for number, item in enumerate(value)} or {}
    else:
        container[key] = dice.choice(([value], {"value": value}))
    return "turned"


def _number(dice: random.Random, container: Any, key: Any) -> str:
    number = dice.choice(NUMBERS)
    container[key] = str(number) if dice.random() < 0.3 else number
    return "a number"


def _hostile(dice: random.Random, container: Any, key: Any) -> str:
    text = dice.choice(HOSTILE)
    if isinstance(container, dict) and dice.random() < 0.3:
        container[text] = container.pop(key)
        return f"the key is {text[:30]!r}"
    container[key] = text
    return f"{text[:30]!r}"


def _alike(dice: random.Random, container: Any, key: Any) -> str:
    """Another value of the same type, which nothing but its meaning can betray."""
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int):
        container[key] = dice.choice((0, 1, -1, -value, value + 1, 10**9, 2**63 - 1, -(2**63)))
    elif isinstance(value, str):
        container[key] = dice.choice((value.upper(), value * 2, value[:-1], f"{value}-2", "a", "0", "1", "-5Gi", "9E"))
    elif isinstance(value, list):
        container[key] = dice.choice(([], value * 3, value[::-1], value[:1]))
    elif isinstance(value, dict):
        container[key] = {} if dice.random() < 0.3 else dict(list(value.items())[::2])
    return "another" if isinstance(value, (dict, list)) else f"{str(container[key])[:30]!r}"


def _unknown(dice: random.Random, container: Any, key: Any) -> str:
    container[key] = dice.choice(UNKNOWN)
    return f"{container[key]!r}"


def _huge(dice: random.Random, container: Any, key: Any) -> str:
    container[key] = dice.choice("x9\x1b/\n") * MEGABYTE
    return "a megabyte"


def _deep(dice: random.Random, container: Any, key: Any) -> str:
    nested: Any = container[key]
    for _level in range(dice.choice(DEPTHS)):
        nested = [nested] if dice.random() < 0.5 else {"a": nested}
    container[key] = nested
    return "deep"


def _doubled(dice: random.Random, container: Any, key: Any) -> str:
    """Once more in the same list, with the same name and uid."""
    if isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
        return "twice"
    container[key] = [container[key], container[key]]
    return "a list of it"


def _swapped(dice: random.Random, container: Any, key: Any) -> str:
    """With another value beside it: right in kind, and wrong in meaning."""
    other = dice.choice(list(container)) if isinstance(container, dict) else dice.randrange(len(container))
    container[key], container[other] = container[other], container[key]
    return f"swapped with {other!r:.40}"


_ACTS: tuple[tuple[Callable[[random.Random, Any, Any], str], float], ...] = (
    (_remove, 4),
    (_nothing, 4),
    (_other_type, 6),
    (_turned, 3),
    (_number, 4),
    (_hostile, 4),
    (_alike, 25),
    (_unknown, 2),
    (_huge, 0.4),
    (_deep, 0.3),
    (_doubled, 2),
    (_swapped, 2),
)

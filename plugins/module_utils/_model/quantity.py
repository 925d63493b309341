# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities ("250m", "1.5Gi", "1e3") as exact integers.

Follows k8s.io/apimachinery/pkg/api/resource/quantity.go: a quantity has at most nine decimal places, what is finer is
rounded away from zero when it is read, and amounts are rounded up to whole units only after summing. So sums and
comparisons are exact on integers that count billionths.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError

NANO = 10**9
_MICRO = 10**6
_INT64_MAX = 2**63 - 1

_FORM = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<suffix>[A-Za-z]*(?:[+-]?[0-9]+)?)")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
# Beyond this, amounts are out of the range of int64 whatever their digits; it keeps powers of ten small.
_EXPONENT_LIMIT = 100
# So are amounts with more than this before the point; of what comes so late behind it only counts that it is there.
_MOST_DIGITS = 250


class QuantityError(ExpectedError, ValueError):
    """A text is no quantity."""


def parse(amount: str | float) -> int:
    """The amount in billionths of the unit. Numbers are accepted as JSON may hold them.

    Raises `QuantityError`.
    """
    return _parse(amount.strip() if isinstance(amount, str) else str(amount))


def units(nanos: int) -> int:
    """Whole units, rounded away from zero. Amounts beyond int64 count as none, as they do upstream."""
    return _int64(_divide_away_from_zero(nanos, NANO))


def milli(nanos: int) -> int:
    """Thousandths, rounded away from zero."""
    return _int64(_divide_away_from_zero(nanos, _MICRO))


def text(nanos: int, *, binary: bool = False) -> str:
    """A quantity that reads as this amount: with the largest suffix that needs no decimals, of bytes if `binary`."""
    if nanos == 0:
        return "0"
    if binary:
        found = [suffix for suffix, bits in _BINARY.items() if nanos % (NANO << bits) == 0]
        if found:
            return f"{nanos // (NANO << _BINARY[found[-1]])}{found[-1]}"
    suffix, power = next((name, power) for name, power in reversed(_DECIMAL.items()) if nanos % 10 ** (power + 9) == 0)
    return f"{nanos // 10 ** (power + 9)}{suffix}"


@lru_cache(maxsize=65536)
def _parse(text: str) -> int:
    found = _FORM.fullmatch(text)
    if not found or not (found["whole"] or found["part"]):
        raise QuantityError(f"{text!r} is not a quantity")
    whole, part = found["whole"].lstrip("0")[:_MOST_DIGITS], (found["part"] or "").rstrip("0")
    if len(part) > _MOST_DIGITS:
        part = f"{part[:_MOST_DIGITS]}1"
    digits = int(f"{whole}{part}" or "0")
    nanos = _scale(digits, -len(part), found["suffix"], text)
    return -nanos if found["sign"] == "-" else nanos


def _scale(digits: int, exponent: int, suffix: str, text: str) -> int:
    if suffix in _BINARY:
        exact = _round_up(digits << _BINARY[suffix], exponent + 9)
        return min(exact, _INT64_MAX * NANO)
    if suffix in _DECIMAL:
        return _round_up(digits, exponent + _DECIMAL[suffix] + 9)
    power = _EXPONENT.fullmatch(suffix)
    if not power:
        raise QuantityError(f"{text!r} is not a quantity: its suffix is unknown")
    limited = int(max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, float(power[1]))))
    return _round_up(digits, exponent + limited + 9)


def _round_up(digits: int, exponent: int) -> int:
    """Digits x 10^exponent, rounded up to an integer. `digits` is not negative."""
    if exponent >= 0:
        return digits * int(10**exponent)
    return -(-digits // int(10**-exponent))


def _divide_away_from_zero(nanos: int, divisor: int) -> int:
    return -(-nanos // divisor) if nanos >= 0 else nanos // divisor


def _int64(amount: int) -> int:
    return amount if -_INT64_MAX - 1 <= amount <= _INT64_MAX else 0

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity

EXACT = [
    # text, whole units rounded up, thousandths rounded up
    ("0", 0, 0),
    ("1", 1, 1000),
    ("100m", 1, 100),
    ("1.5", 2, 1500),
    ("0.1m", 1, 1),
    ("1n", 1, 1),
    ("0.1n", 1, 1),
    ("1500u", 1, 2),
    ("1k", 1000, 10**6),
    ("1K", None, None),
    ("1Ki", 1024, 1024000),
    ("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000),
    ("0.5Ki", 512, 512000),
    ("1e3", 1000, 10**6),
    ("1E3", 1000, 10**6),
    ("1E", 10**18, 0),
    ("12e-1", 2, 1200),
    ("+2", 2, 2000),
    ("-1.5", -2, -1500),
    (".5", 1, 500),
    ("5.", 5, 5000),
    ("8Ei", 2**63 - 1, 0),
    ("", None, None),
    (".", None, None),
    ("1 Gi", None, None),
    ("1Gi5", None, None),
    ("1_000", None, None),
    ("0x10", None, None),
    ("Gi", None, None),
]


@pytest.mark.parametrize(("text", "units", "milli"), EXACT)
def test_reading_and_rounding(text: str, units: int | None, milli: int) -> None:
    if units is None:
        with pytest.raises(quantity.QuantityError, match="is not a quantity"):
            quantity.parse(text)
        return
    parsed = quantity.parse(text)
    assert (quantity.units(parsed), quantity.milli(parsed)) == (units, milli)


def test_numbers_are_taken_as_json_may_hold_them() -> None:
    assert quantity.parse(2) == quantity.parse("2")
    assert quantity.parse(0.5) == quantity.parse("500m")


def test_fractions_round_up_after_summing() -> None:
    third = quantity.parse("0.4")
    assert quantity.units(third + third) == 1
    assert quantity.units(third) + quantity.units(third) == 2


def test_what_int64_cannot_hold_counts_as_nothing_like_upstream() -> None:
    assert quantity.units(quantity.parse("10E")) == 0
    assert quantity.parse("1e999999999999") > 0


SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi")


@given(st.integers(0, 10**6), st.sampled_from(SUFFIXES), st.integers(0, 10**6), st.sampled_from(SUFFIXES))
def test_rounding_up_never_makes_a_sum_smaller(first: int, unit: str, second: int, other: str) -> None:
    one, two = quantity.parse(f"{first}{unit}"), quantity.parse(f"{second}{other}")
    together = quantity.units(one + two)
    assert max(quantity.units(one), quantity.units(two)) <= together <= quantity.units(one) + quantity.units(two)


@given(st.integers(-(10**9), 10**9))
def test_an_amount_in_any_unit_is_the_same(amount: int) -> None:
    forms = [f"{amount}", f"{amount}000m", f"{amount}000000u", f"{amount}e0", f"{amount}.0"]
    assert len({quantity.parse(form) for form in forms}) == 1


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_order_is_that_of_numbers(first: int, second: int) -> None:
    assert (quantity.parse(f"{first}m") < quantity.parse(f"{second}m")) == (first < second)


@pytest.mark.parametrize(
    ("given", "binary", "written"),
    [
        ("0", False, "0"),
        ("0.1", False, "100m"),
        ("1.6", False, "1600m"),
        ("2000", False, "2k"),
        ("35M", True, "35M"),
        ("2048Mi", True, "2Gi"),
        ("2048Mi", False, "2147483648"),
        ("1000Ki", True, "1000Ki"),
        ("142857142.9n", False, "142857143n"),
        ("-1.5Ki", True, "-1536"),
    ],
)
def test_writing(given: str, binary: bool, written: str) -> None:
    assert quantity.text(quantity.parse(given), binary=binary) == written


@given(st.integers(-(2**62), 2**62), st.booleans())
def test_what_is_written_reads_as_the_same(nanos: int, binary: bool) -> None:
    assert quantity.parse(quantity.text(nanos, binary=binary)) == nanos


@pytest.mark.parametrize(
    ("text", "units"),
    [
        (f"{'0' * 6000}64Mi", 64 * 2**20),
        (f"64.{'0' * 6000}1Mi", 64 * 2**20 + 1),
        (f"64.{'0' * 6000}Mi", 64 * 2**20),
        ("9" * 6000, 0),
        (f"1e{'9' * 6000}", 0),
        (f"1e-{'9' * 6000}", 1),
    ],
)
def test_more_digits_than_python_takes_for_a_number(text: str, units: int) -> None:
    """KubeVirt's webhooks let them through, so whoever may create a VM can write them."""
    assert quantity.units(quantity.parse(text)) == units

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    SelectorError,
    exact_requirements,
    int64,
    is_qualified_name,
    label_selector,
    node_selector_term,
)

ZONED = {"zone": "a", "rank": "007"}

REQUIREMENTS = [
    # key, operator, values, on a node with the labels above
    ("zone", "In", ["a", "b"], True),
    ("zone", "In", ["b"], False),
    ("none", "In", ["a"], False),
    ("zone", "NotIn", ["b"], True),
    ("zone", "NotIn", ["a"], False),
    ("none", "NotIn", ["a"], True),
    ("zone", "Exists", [], True),
    ("none", "Exists", [], False),
    ("zone", "DoesNotExist", [], False),
    ("none", "DoesNotExist", [], True),
    ("rank", "Gt", ["6"], True),
    ("rank", "Gt", ["7"], False),
    ("rank", "Lt", ["8"], True),
    ("rank", "Lt", ["7"], False),
    ("zone", "Gt", ["1"], False),
    ("none", "Lt", ["1"], False),
]


@pytest.mark.parametrize(("key", "operator", "values", "expected"), REQUIREMENTS)
def test_operators(key: str, operator: str, values: list[str], expected: bool) -> None:
    term = node_selector_term({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    assert not term.invalid
    assert term.labels[0].matches(ZONED) is expected


INVALID = [
    {"key": "rank", "operator": "Gt", "values": ["1_0"]},
    {"key": "rank", "operator": "Gt", "values": ["99999999999999999999"]},
    {"key": "rank", "operator": "Lt", "values": ["1", "2"]},
    {"key": "rank", "operator": "Lt", "values": []},
    {"key": "zone", "operator": "In", "values": []},
    {"key": "zone", "operator": "In", "values": ["not a label"]},
    {"key": "zone", "operator": "In", "values": ["x" * 64]},
    {"key": "zone", "operator": "Exists", "values": ["a"]},
    {"key": "zone", "operator": "Equals", "values": ["a"]},
    {"key": "-zone", "operator": "Exists"},
]


@pytest.mark.parametrize("expression", INVALID)
def test_an_operand_that_cannot_be_parsed_makes_the_term_invalid(expression: dict[str, Any]) -> None:
    assert node_selector_term({"matchExpressions": [expression]}).invalid


def test_fields_take_one_value() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["a", "b"]}
    assert node_selector_term({"matchFields": [field]}).invalid
    assert node_selector_term({"matchFields": [{**field, "operator": "Gt"}]}).invalid
    assert not node_selector_term({"matchFields": [{**field, "values": ["a"]}]}).invalid


def test_null_selects_nothing_and_an_empty_selector_everything() -> None:
    assert label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert label_selector({}) == EVERYTHING
    assert EVERYTHING.matches({})
    assert label_selector({}).everything
    assert not NOTHING.everything


def test_nothing_narrowed_is_still_nothing() -> None:
    assert NOTHING.narrowed(exact_requirements({"a": "b"})) is NOTHING


def test_a_label_selector_knows_no_comparisons() -> None:
    with pytest.raises(SelectorError, match="not a valid label selector operator"):
        label_selector({"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["1"]}]})


def test_an_empty_value_needs_the_key() -> None:
    (requirement,) = exact_requirements({"k": ""})
    assert requirement.matches({"k": ""})
    assert not requirement.matches({})


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("007", 7), ("-7", -7), ("+7", 7), ("1_0", None), (" 7", None), ("٧", None), ("", None)],
)
def test_integers_are_those_of_the_api(text: str, number: int | None) -> None:
    assert int64(text) == number


def test_integers_are_of_64_bits() -> None:
    assert int64(str(2**63 - 1)) == 2**63 - 1
    assert int64(str(2**63)) is None
    assert int64(str(-(2**63))) == -(2**63)


@pytest.mark.parametrize(
    ("name", "qualified"),
    [
        ("a", True),
        ("example.org/a", True),
        ("example.org/a_b.c-d", True),
        ("Example.org/a", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("x" * 64, False),
        ("", False),
    ],
)
def test_qualified_names(name: str, qualified: bool) -> None:
    assert is_qualified_name(name) is qualified


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "y", "z"]))
CHOICES = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=3)


@given(LABELS, st.sampled_from("abc"), CHOICES)
def test_in_and_not_in_are_opposites(labels: dict[str, str], key: str, values: list[str]) -> None:
    inside = Requirement(key, "In", tuple(values)).matches(labels)
    assert inside is not Requirement(key, "NotIn", tuple(values)).matches(labels)


@given(LABELS, LABELS)
def test_exact_labels_match_their_supersets(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert label_selector({"matchLabels": wanted}).matches(labels) == (wanted.items() <= labels.items())


@given(LABELS, LABELS, LABELS)
def test_a_narrowed_selector_matches_no_more(
    wanted: dict[str, str], more: dict[str, str], labels: dict[str, str]
) -> None:
    selector = label_selector({"matchLabels": wanted})
    narrowed = selector.narrowed(exact_requirements(more))
    assert narrowed.matches(labels) == (selector.matches(labels) and more.items() <= labels.items())


def test_an_operand_of_thousands_of_digits_is_out_of_range() -> None:
    """The API server stores it, so whoever may create a VM can write it."""
    assert int64("9" * 6000) is None
    assert int64("-" + "0" * 6000 + "7") == -7

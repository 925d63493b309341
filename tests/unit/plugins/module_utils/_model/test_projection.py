# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of each kind (the tables projections*.yaml), and the laws of every projection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.secret_fields import (
    HOOK_SIDECARS,
    SECRET_ANNOTATIONS,
    SECRET_FIELDS,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

from unit.plugins.module_utils._model.projected import CASES, Case, merged


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["list"])
def test_what_is_kept(case: Case) -> None:
    raw = merged(case["kept"], case["dropped"])
    assert raw != case["kept"]
    assert BY_NAME[case["list"]].project(raw) == case["kept"]


def test_every_kind_is_in_the_table() -> None:
    assert {case["list"] for case in CASES} == set(BY_NAME)


def names(value: Any) -> Iterator[str]:
    """What the fields in it are called."""
    if isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names(part)


def test_no_secret_is_kept() -> None:
    """Of sidecars what is no secret is kept, see below."""
    secret = SECRET_FIELDS | SECRET_ANNOTATIONS - {HOOK_SIDECARS}
    raw = [(case["list"], merged(case["kept"], case["dropped"])) for case in CASES]
    assert secret <= {name for _kind, value in raw for name in names(value)}
    assert secret.isdisjoint(name for kind, value in raw for name in names(BY_NAME[kind].project(value)))


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """The value with any of its parts missing or null, and parts nobody knows added."""
    if isinstance(value, dict):
        fates = {key: draw(st.sampled_from(["keep", "keep", "keep", "drop", "null"])) for key in value}
        kept = {
            key: None if fate == "null" else draw(damaged(value[key])) for key, fate in fates.items() if fate != "drop"
        }
        return {**kept, **draw(st.dictionaries(st.just("x-unknown"), st.just("secret"), max_size=1))}
    if isinstance(value, list):
        return [draw(damaged(item)) for item in value if draw(st.booleans())]
    return value


raw_objects = st.sampled_from(CASES).flatmap(
    lambda case: st.tuples(st.just(case["list"]), damaged(merged(case["kept"], case["dropped"])))
)


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether everything in `part` stands at the same place in `whole`; lists may lack items, but keep their order."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_part_of(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        rest = iter(whole)
        return isinstance(whole, list) and all(any(is_part_of(item, other) for other in rest) for item in part)
    return bool(part == whole)


@given(raw_objects)
def test_projecting_twice_is_projecting_once(raw: tuple[str, Any]) -> None:
    project = BY_NAME[raw[0]].project
    assert project(project(raw[1])) == project(raw[1])


@given(raw_objects)
def test_a_projection_is_a_part_of_the_object(raw: tuple[str, Any]) -> None:
    assert is_part_of(BY_NAME[raw[0]].project(raw[1]), raw[1])


@given(st.sampled_from(CASES))
def test_the_object_itself_is_left_alone(case: Case) -> None:
    raw = merged(case["kept"], case["dropped"])
    before = yaml.safe_dump(raw)
    BY_NAME[case["list"]].project(raw)
    assert yaml.safe_dump(raw) == before


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            '[{"image": "i", "args": ["secret"], "pvc": {"name": "p", "volumePath": "/a"}}]',
            '[{"image": "i", "pvc": {"name": "p"}}]',
        ),
        ("[]", "[]"),
        ("secret", ""),
        ('["secret"]', ""),
        ("3", ""),
        ('[{"pvc": "name"}]', ""),
        ('[{"pvc": ["name"]}]', ""),
        ("[" * 100_000, ""),
    ],
)
def test_of_hooks_nothing_is_kept_that_may_be_secret(given: str, kept: str) -> None:
    name = "hooks.kubevirt.io/hookSidecars"
    project = BY_NAME["vmis"].project
    once = project({"metadata": {"annotations": {name: given}}})
    assert once["metadata"]["annotations"] == {name: kept}
    assert project(once) == once

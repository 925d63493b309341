# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One name has one meaning."""

from __future__ import annotations

import pytest

from unit.architecture.names import check
from unit.architecture.test_rules import OWN, UTILS, assert_only
from unit.architecture.tree import Tree

WRITE = "def write(): ..."


@pytest.mark.parametrize(
    "files",
    [
        {f"{UTILS}/_model/a.py": "class _A: ...\nclass B: ...", f"{UTILS}/_model/b.py": "class _A: ..."},
        {
            f"{UTILS}/_model/a.py": "_Found = TypeVar('_Found')\n_VM = 1",
            f"{UTILS}/_model/b.py": "class Found: ...\n_VM = 1\nLists = dict",
            f"{UTILS}/_model/shapes_vms.py": "VM = 1",
            f"{UTILS}/_model/projection_vms.py": "VM = 1",
            f"{UTILS}/_model/c.py": "_Lists = dict",
        },
        {
            f"{UTILS}/_a/a.py": WRITE,
            f"{UTILS}/_b/b.py": f"from {OWN}._a.a import write",
            f"{UTILS}/_b/c.py": WRITE,
            f"{UTILS}/_b/d.py": f"from {OWN}._b import c\nc.write()",
        },
    ],
    ids=["private", "in a series", "by their modules"],
)
def test_names_that_nobody_takes_for_one_another_pass(files: dict[str, str]) -> None:
    assert list(check(Tree(files))) == []


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("class Rule: ...", "class Rule: ...", "Rule"),
        ("class Change: ...", "Change: TypeAlias = dict[str, str]", "Change"),
        ("A, B = 1, 2", "B: int = 3", "B"),
        ("Lists = dict[str, str]", "Lists = dict[str, str]", "Lists"),
    ],
)
def test_what_is_defined_twice_is_found(first: str, second: str, name: str) -> None:
    files = {f"{UTILS}/_a/a.py": first, f"{UTILS}/_b/a.py": second}
    assert_only("names", files, f"{UTILS}/_b/a.py: {name} is defined in {UTILS}/_a/a.py too")


def test_two_functions_that_are_imported_by_the_same_name_are_found() -> None:
    files = {
        f"{UTILS}/_a/a.py": WRITE,
        f"{UTILS}/_b/b.py": f"from {OWN}._a.a import write",
        f"{UTILS}/_b/c.py": WRITE,
        "plugins/modules/d.py": f"from {OWN}._b.c import write",
    }
    sentence = f"write of {UTILS}/_b/c.py is imported by its name alone, as that of {UTILS}/_a/a.py is"
    assert_only("names", files, f"plugins/modules/d.py: {sentence}")

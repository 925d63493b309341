# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each package opens with a map: the docstring of its `__init__.py` names its files and folders, and what each is for.

A line of the map is a file's name, or a folder's with a slash behind it, then blanks and a few words. The map of the
whole is CONTRIBUTING.md: what it names in code quotes, by its path or the end of it, is there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import filter as matching
from pathlib import PurePosixPath

from unit.architecture.tree import Tree, parse

PLACES = (
    "plugins/module_utils/*/__init__.py",
    "plugins/module_utils/_cluster/*/__init__.py",
    "plugins/plugin_utils/__init__.py",
    "tests/checker/__init__.py",
    "tests/simulation/__init__.py",
    "tests/testbed/__init__.py",
    "tests/tools/__init__.py",
)
_ENTRY = re.compile(r"^ *(\w+(?:\.py|/)) +\S", re.MULTILINE)
# A file or folder, not one that somebody is to make, as `<name>.py`, nor one outside the repository, as `~/.cache/`.
_NAMED = re.compile(r"`(\w[\w./*-]*(?:/|\.(?:in|md|py|rst|txt|yml)))`")


def check(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching(*PLACES):
        folder = str(PurePosixPath(path).parent)
        there = [f"{name}.py" for name in tree.names(folder)] + [f"{name}/" for name in tree.folders(folder)]
        mapped = _ENTRY.findall(ast.get_docstring(parse(text)) or "")
        for name in sorted({*there} - {*mapped}):
            yield f"{path}: its docstring does not list {name}; add a line that says what it is for."
        for name in sorted({*mapped} - {*there}):
            yield f"{path}: its docstring lists {name}, which is not there."
        for name in sorted({name for name in mapped if mapped.count(name) > 1}):
            yield f"{path}: its docstring lists {name} twice."


def named(tree: Tree) -> Iterator[str]:
    paths = [f"/{path}" for path in tree.files]
    for path, text in tree.matching("CONTRIBUTING.md"):
        for name in sorted({*_NAMED.findall(text)}):
            if not matching(paths, f"*/{name}*" if name.endswith("/") else f"*/{name}"):
                yield f"{path}: it names {name}, which is not there."

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short file that serves a single one of its package stands there: each file more is one more to hold in a head.

Files of a series keep their own: what a registry names, and several that are named alike, as in `shapes_core.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from unit.architecture.imports import uses
from unit.architecture.tree import Tree

SHORT = 60
# As many files with one beginning of their names are a series.
SERIES = 3


def check(tree: Tree) -> Iterator[str]:
    files = dict(tree.matching("plugins/*.py"))
    used = uses(files)
    for path, text in tree.matching("plugins/module_utils/*.py"):
        if text.count("\n") >= SHORT or path.endswith("/__init__.py") or _is_in_series(tree, path):
            continue
        users = [other for other in used if path in used[other]]
        if len(users) == 1 and _package(users[0]) == _package(path) and not users[0].endswith("/registry.py"):
            yield f"{path}: it is short, and {users[0]} alone uses it; put it there."


def _package(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).parts[:3]


def _is_in_series(tree: Tree, path: str) -> bool:
    file = PurePosixPath(path)
    begin = file.stem.partition("_")[0]
    return sum(name.startswith(f"{begin}_") for name in tree.names(str(file.parent))) >= SERIES

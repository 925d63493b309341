# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No file imports itself by way of others, not even for type checkers.

Files in a circle can only be read, tested and changed together. The way out is mostly a value that both sides know and
that has no file of its own yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unit.architecture.imports import uses
from unit.architecture.tree import Tree


def check(tree: Tree) -> Iterator[str]:
    used = uses(dict(tree.matching("plugins/*.py")))
    reaches = {path: _reach(used, path) for path in used}
    for path in used:
        circle = sorted(other for other in reaches[path] if path in reaches[other])
        if circle and path == circle[0]:
            yield f"{path}: it stands in a circle of imports with {', '.join(circle[1:]) or 'itself'}; untie it."


def _reach(used: Mapping[str, set[str]], start: str) -> set[str]:
    """All that a file imports, and what that imports; itself only if it stands in a circle."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = used[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached

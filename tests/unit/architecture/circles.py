# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No file imports itself by way of others, not even for type checkers.

Files in a circle can only be read, tested and changed together. The way out is mostly a value that both sides know and
that has no file of its own yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unit.architecture.imports import imported, module_name
from unit.architecture.tree import Tree


def check(tree: Tree) -> Iterator[str]:
    files = dict(tree.matching("plugins/*.py"))
    paths = {module_name(path): path for path in files}
    uses = {path: {*_uses(path, text, paths)} for path, text in files.items()}
    reaches = {path: _reach(uses, path) for path in uses}
    for path in uses:
        circle = sorted(other for other in reaches[path] if path in reaches[other])
        if circle and path == circle[0]:
            yield f"{path}: it stands in a circle of imports with {', '.join(circle[1:]) or 'itself'}; untie it."


def _uses(path: str, text: str, paths: Mapping[str, str]) -> Iterator[str]:
    for _line, name in imported(path, text):
        # `from a import b` means the file a.b if there is one, else something in a.
        target = paths.get(name) or paths.get(name.rpartition(".")[0])
        if target is not None:
            yield target


def _reach(uses: Mapping[str, set[str]], start: str) -> set[str]:
    """All that a file imports, and what that imports; itself only if it stands in a circle."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = uses[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached

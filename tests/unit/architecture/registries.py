# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package with a `registry.py` is complete: each of its files is registered, or serves those that are.

Adding a plugin or a rule is one file and one line; a file without its line would never run, and nothing would tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from unit.architecture.imports import imported, module_name
from unit.architecture.tree import Tree


def check(tree: Tree) -> Iterator[str]:
    for registry, _text in tree.matching("*/registry.py"):
        folder = str(PurePosixPath(registry).parent)
        uses = {name: set(_uses(tree, folder, name)) for name in tree.names(folder) if not name.startswith("test_")}
        # What stands on the registry, like a framework that runs what is registered, and all that both sides need.
        users = {name for name in uses if "registry" in _reach(uses, name)}
        served = set().union(*(_reach(uses, name) for name in users | {"registry"}))
        for name in sorted(set(uses) - users - served - {"registry"}):
            yield f"{folder}/{name}.py: {registry} does not name it, so it never runs; add it there."


def _uses(tree: Tree, folder: str, name: str) -> Iterator[str]:
    """Names of the siblings that a file imports, in whichever of its forms the package is named."""
    path = f"{folder}/{name}.py"
    siblings = tree.names(folder)
    package = module_name(path).rsplit(".", 1)[0]
    # Packages under tests/ are imported from there, without the collection's name.
    packages = (package, package.partition(".tests.")[2] or package)
    for _line, target in imported(path, tree.files[path]):
        for prefix in packages:
            rest = target.removeprefix(f"{prefix}.").split(".")[0]
            if target.startswith(f"{prefix}.") and rest in siblings:
                yield rest


def _reach(uses: dict[str, set[str]], start: str) -> set[str]:
    """Everything that `start` imports, and what that imports."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in uses.get(waiting.pop(), set()) - reached:
            reached.add(name)
            waiting.append(name)
    return reached

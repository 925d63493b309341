# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Python file of the collection imports, by full names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from unit.architecture.tree import parse

COLLECTION = "ansible_collections.virtops.kubevirt"
PLUGINS = f"{COLLECTION}.plugins"


def module_name(path: str) -> str:
    """Full name under which a file of the repository is imported."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join((COLLECTION, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imported(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, full name) of each import, also of those inside functions and for type checkers.

    `from a import b` gives `a.b`: whether b is a module or a name in a does not matter to rules about packages.
    """
    package = ".".join(module_name(path).split(".")[:-1]) if not path.endswith("/__init__.py") else module_name(path)
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join((*parents, base) if base else parents)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def uses(files: Mapping[str, str]) -> dict[str, set[str]]:
    """By the paths of Python files, with their texts given, which of the others each imports."""
    paths = {module_name(path): path for path in files}
    return {path: {*_used(path, text, paths)} for path, text in files.items()}


def _used(path: str, text: str, paths: Mapping[str, str]) -> Iterator[str]:
    for _line, name in imported(path, text):
        # `from a import b` means the file a.b if there is one, else something in a.
        target = paths.get(name) or paths.get(name.rpartition(".")[0])
        if target is not None:
            yield target


def within(name: str, package: str) -> bool:
    """Whether a full name is a package or something in it."""
    return name == package or name.startswith(f"{package}.")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module, filter, test and inventory plugin names the Python libraries that it needs, in its `requirements`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import yaml

from unit.architecture.imports import COLLECTION, imported, module_name
from unit.architecture.tree import Tree, parse

# By the name of the import; `urllib3` comes with `kubernetes`.
LIBRARIES = {"jmespath": "jmespath", "kubernetes": "kubernetes", "numpy": "numpy", "yaml": "PyYAML"}
# It plans without policies, which alone may have expressions.
NEVER = {"plugins/modules/rebalance_plan.py": {"jmespath"}}
FRAGMENTS = {f"{COLLECTION.removeprefix('ansible_collections.')}._connection": "plugins/doc_fragments/_connection.py"}


def check(tree: Tree) -> Iterator[str]:
    files = {module_name(path): path for path, _text in tree.matching("plugins/*.py")}
    imports = {path: list(imported(path, tree.files[path])) for path in files.values()}
    for path, text in tree.matching(*(f"plugins/{kind}/*.py" for kind in ("modules", "filter", "test", "inventory"))):
        documentation = _documentation(text)
        named = {entry.split()[0] for entry in _requirements(tree, documentation)}
        for library in sorted(_reached(path, files, imports) - named - NEVER.get(path, set())):
            yield f"{path}: it may use {library}, which the requirements of its documentation do not name."


def _requirements(tree: Tree, documentation: dict[str, Any]) -> Iterator[str]:
    yield from documentation.get("requirements", ())
    for fragment in documentation.get("extends_documentation_fragment", ()):
        if fragment in FRAGMENTS:
            yield from _documentation(tree.files[FRAGMENTS[fragment]])["requirements"]


def _documentation(text: str) -> dict[str, Any]:
    for node in ast.walk(parse(text)):
        match node:
            case ast.Assign(targets=[ast.Name(id="DOCUMENTATION")], value=ast.Constant(value=str() as source)):
                found: dict[str, Any] = yaml.safe_load(source)
                return found
    return {}


def _reached(path: str, files: dict[str, str], imports: dict[str, list[tuple[int, str]]]) -> set[str]:
    """Libraries that the file imports, or one that it imports."""
    seen, waiting, found = {path}, [path], set()
    while waiting:
        for _line, name in imports[waiting.pop()]:
            found |= {LIBRARIES[top] for top in [name.split(".")[0]] if top in LIBRARIES}
            # Either a module, or a name in one.
            inner = files.get(name) or files.get(name.rpartition(".")[0])
            if inner and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return found

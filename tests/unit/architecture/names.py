# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One name, one meaning: no two files of module_utils define public classes, types or constants of the same name.

Whoever reads `Rule`, `Change` or `SCHEMA` far from its import shall not have to ask which one. Functions of the same
name are told apart by their modules, as `plan_file.write` is: by its name alone only one of them is imported.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

from unit.architecture.imports import imported, module_name
from unit.architecture.tree import Tree, parse

# Names that mean two things for a good reason, with the reason.
KNOWN: Mapping[str, str] = {
    "REASON": "each filter of the scheduler has one",
    "RULE": "each rule of the linter is one",
    "each": "shapes and projections, which are two of the same objects, are written in the same words",
    "resource": "as `each`",
}
# Files that are only read as `shapes.VM`, and name what all of them have in common.
SERIES = ("plugins/module_utils/_model/shapes_*.py", "plugins/module_utils/_model/projection_*.py")

_TYPE = re.compile(r"[A-Z]\w*[a-z]\w*")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")


def check(tree: Tree) -> Iterator[str]:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in tree.matching("plugins/module_utils/*.py"):
        body = parse(text).body
        for name in filter(None, map(_defined, body)):
            if not name.startswith("_"):
                homes[name].append(path)
        if not any(fnmatch(path, series) for series in SERIES):
            for name in {name for node in body for name in _constants(node)}:
                homes[name].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1 and name not in KNOWN:
            yield f"{paths[1]}: {name} is defined in {paths[0]} too; import it, or give one of them another name."
    yield from _by_name_alone(tree)


def _by_name_alone(tree: Tree) -> Iterator[str]:
    """Functions that are imported without their modules, and are not the only ones of their names that are."""
    functions = {
        f"{module_name(path)}.{node.name}": path
        for path, text in tree.matching("plugins/module_utils/*.py")
        for node in parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    homes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path, text in tree.matching("plugins/*.py"):
        for _line, full in imported(path, text):
            if full in functions:
                homes[full.rpartition(".")[2]].setdefault(functions[full], path)
    for name, found in sorted(homes.items()):
        if len(found) > 1 and name not in KNOWN:
            (first, _path), (second, path) = sorted(found.items())[:2]
            yield f"{path}: {name} of {second} is imported by its name alone, as that of {first} is; import its module."


def _defined(node: ast.stmt) -> str | None:
    """The class or the name of a type, or of a type variable, that a statement defines."""
    match node:
        case ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name if _TYPE.fullmatch(name) else None
    return None


def _constants(node: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets += node.targets
        case ast.AnnAssign():
            targets.append(node.target)
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Name) and _CONSTANT.fullmatch(part.id):
                yield part.id

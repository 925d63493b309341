# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small mistakes that a programmer could have made, put into a source one at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# Arguments that only make a mistake noticed, and where types are written.
HARMLESS = ("strict", "frozen", "slots", "dtype", "count")


@dataclass(frozen=True)
class Mutation:
    """`line`: of the original source; `source`: the whole module with the one mistake."""

    line: int
    what: str
    source: str


def mutations(source: str) -> Iterator[Mutation]:
    """All the mistakes that this knows to make in a module, in the order of its lines."""
    tree = ast.parse(source)
    _drop_annotations(tree)
    for number, node in enumerate(ast.walk(tree)):
        wrong = copy.deepcopy(tree)
        mistaken = list(ast.walk(wrong))[number]
        what = _spoil(mistaken)
        if what:
            yield Mutation(getattr(node, "lineno", 0), what, ast.unparse(wrong))


def _spoil(node: ast.AST) -> str | None:
    """Make a mistake in the node; what it was, or None when there is none to make."""
    if isinstance(node, ast.Compare):
        return _swap(node, "ops")
    if isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign):
        return _swap(node, "op")
    if isinstance(node, ast.If) and isinstance(node.test, ast.Call | ast.Name | ast.Attribute):
        was, node.test = ast.unparse(node.test), ast.UnaryOp(ast.Not(), node.test)
        return f"if {was} is negated"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        was = ast.unparse(node)
        # Twice negated is not negated.
        node.operand = ast.UnaryOp(node.op, node.operand)
        return f"{was} without its negation"
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        was = repr(node.value)
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return f"{was} is {node.value}"
    return None


def _swap(node: ast.AST, field: str) -> str | None:
    was = ast.unparse(node)
    held = getattr(node, field)
    operator = held[0] if isinstance(held, list) else held
    other = SWAPPED.get(type(operator))
    if other is None:
        return None
    setattr(node, field, [other(), *held[1:]] if isinstance(held, list) else other())
    return f"{was} is {ast.unparse(node)}"


def _drop_annotations(tree: ast.Module) -> None:
    """Types have no effect when the module runs: `A | B` in them is no rule."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns, node.decorator_list = None, [d for d in node.decorator_list if not isinstance(d, ast.Call)]
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in HARMLESS and isinstance(keyword.value, ast.Constant):
                    keyword.value = ast.Name(repr(keyword.value.value))
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.expr):
            node.annotation = ast.Constant("object")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that derive labels from a Node object, by JMESPath expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:
    HAS_JMESPATH = False
    _ERRORS: tuple[type[Exception], ...] = ()
else:
    HAS_JMESPATH = True
    _ERRORS = (JMESPathError,)


class RuleError(ValueError):
    """An expression cannot be understood, or not be applied to a node; the text is a clause that says why."""


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Expressions by the key of the label they give, and the one that says for which nodes (None: for all)."""

    source: str
    condition: Any
    labels: Mapping[str, Any]

    def applies(self, node: Object) -> bool:
        """Raises RuleError."""
        return self.condition is None or bool(self._ask(self.condition, node))

    def derive(self, node: Object) -> JsonObject:
        """The labels for a node, without those whose expression gives null. Raises RuleError."""
        if not self.applies(node):
            return {}
        found = {key: self._ask(expression, node) for key, expression in self.labels.items()}
        return {key: value for key, value in found.items() if value is not None}

    def _ask(self, expression: Any, node: Object) -> Any:
        try:
            return expression.search(node)
        except _ERRORS as error:
            name = node["metadata"]["name"]
            raise RuleError(f"{self.source} cannot be applied to node {name}, {_line(error)}") from error


def compile_rule(source: str, condition: str | None, labels: Mapping[str, str]) -> LabelRule:
    """source: where in the task it stands. Raises RuleError, MissingLibrary."""
    if not HAS_JMESPATH:
        raise MissingLibrary("jmespath", f"for {source}")
    return LabelRule(
        source,
        None if condition is None else _compile(source, "condition", condition),
        {key: _compile(source, key, expression) for key, expression in labels.items()},
    )


def _compile(source: str, name: str, expression: object) -> Any:
    if not isinstance(expression, str):
        raise RuleError(f"{source} has for {name} no expression but {expression!r}")
    try:
        return jmespath.compile(expression)
    except _ERRORS as error:
        raise RuleError(f"{source} has for {name} the malformed expression {expression!r}, {_line(error)}") from error


def _line(error: Exception) -> str:
    """The library draws an arrow under the expression, on lines of its own."""
    lines: Sequence[str] = str(error).strip().splitlines()
    return lines[0].rstrip(":.") if lines else type(error).__name__

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are meant, and whether the labels that are asked for exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import is_qualified_name
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.rules import RuleError, compile_rule

_SELECT, _GROUP = "select nodes", "group nodes by their labels"


def selected(nodes: Sequence[Object], expression: str | None) -> list[Object]:
    """Those of which a JMESPath expression is true. Raises InvalidRequest, MissingLibrary."""
    if expression is None:
        return list(nodes)
    try:
        rule = compile_rule("the option expression", expression, {})
        return [node for node in nodes if rule.applies(node)]
    except RuleError as error:
        remedy = "Give a JMESPath expression over a Node object, such as metadata.labels.rack == '7'."
        raise InvalidRequest(_SELECT, [str(error)], remedy) from error


def require_labels(nodes: Sequence[Object], keys: Iterable[str]) -> None:
    """See that some node has each label, as a misspelt one would just make no group. Raises InvalidRequest."""
    there = sorted({key for node in nodes for key in node["metadata"].get("labels") or {}})
    problems = [problem for key in keys if (problem := _problem(key, there, some=bool(nodes)))]
    if problems:
        remedy = "Correct group_by_labels; for a label that may be missing on all nodes use keyed_groups."
        raise InvalidRequest(_GROUP, problems, remedy)


def _problem(key: str, there: Sequence[str], *, some: bool) -> str | None:
    """`some`: whether there are nodes at all; without any nothing is known of their labels."""
    if key in there:
        return None
    if not is_qualified_name(key):
        return f"{key!r} cannot be the key of a label"
    near = get_close_matches(key, there, n=1)
    return f"no node has the label {key}" + (f" (do you mean {near[0]}?)" if near else "") if some else None

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions on labels as a task words them, and as the API does; all that is wrong with them is collected.

A task's words are lists of `{key, operator, values}` and maps of labels, as Ansible gives them: their values may be
anything that YAML takes for a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    int64,
    is_label_value,
    is_qualified_name,
)

Words = Mapping[str, Any]

WITH_VALUES = ("In", "NotIn")
WITHOUT_VALUES = ("Exists", "DoesNotExist")
COMPARING = ("Gt", "Lt")


def requirement(words: Words) -> dict[str, Any]:
    """Without an operator, values make it `In`, and no values `Exists`."""
    values = [str(value) for value in words["values"] or ()]
    stated = {"key": words["key"], "operator": _operator(words)}
    return {**stated, "values": values} if values else stated


def requirement_problems(words: Words) -> Iterator[str]:
    """Clauses on one requirement."""
    key, values, operator = words["key"], words["values"] or [], _operator(words)
    yield from key_problems(key)
    yield from _text_problems(key, values)
    if operator in WITH_VALUES and not values:
        yield f"the operator {operator} on {key} needs values"
    if operator in WITHOUT_VALUES and values:
        yield f"the operator {operator} on {key} takes no values"
    if operator in COMPARING and (len(values) != 1 or int64(str(values[0])) is None):
        yield f"the operator {operator} on {key} needs one integer as its value"


def label_problems(labels: Words) -> Iterator[str]:
    """Clauses on a map of labels."""
    for key, value in labels.items():
        yield from key_problems(key)
        yield from _text_problems(key, [value])


def key_problems(key: str) -> Iterator[str]:
    if not is_qualified_name(key):
        yield f"{key!r} cannot be the key of a label"


def _operator(words: Words) -> str:
    return words["operator"] or ("In" if words["values"] else "Exists")


def _text_problems(key: str, values: Sequence[object]) -> Iterator[str]:
    for value in values:
        # YAML reads yes, no, true and off without quotes as truth values, whose spelling is lost.
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            yield f"the value {value!r} of {key} is no text; put it in quotes"
        elif not is_label_value(str(value)):
            yield f"{value!r} cannot be the value of the label {key}"

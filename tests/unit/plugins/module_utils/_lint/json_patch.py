# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON patches (RFC 6902) applied to plain objects, as far as findings use them."""

from __future__ import annotations

import copy
from typing import Any

from testbed.api import Object


def patched(obj: Object, operations: list[Object]) -> Object:
    """A changed copy. Raises KeyError or IndexError where the API server would refuse the patch."""
    result = copy.deepcopy(obj)
    for operation in operations:
        match operation["op"]:
            case "add":
                _add(result, operation["path"], operation["value"])
            case "replace":
                _remove(result, operation["path"])
                _add(result, operation["path"], operation["value"])
            case "remove":
                _remove(result, operation["path"])
            case "move":
                _add(result, operation["path"], _remove(result, operation["from"]))
            case other:
                raise AssertionError(other)
    return result


def _parent(obj: Object, pointer: str) -> tuple[Any, Any]:
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
    node: Any = obj
    for part in parents:
        node = node[int(part) if isinstance(node, list) else part]
    return node, last


def _add(obj: Object, pointer: str, value: Any) -> None:
    parent, key = _parent(obj, pointer)
    if isinstance(parent, list):
        parent.insert(len(parent) if key == "-" else int(key), value)
    else:
        parent[key] = value


def _remove(obj: Object, pointer: str) -> Any:
    parent, key = _parent(obj, pointer)
    return parent.pop(int(key) if isinstance(parent, list) else key)

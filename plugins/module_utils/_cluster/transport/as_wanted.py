# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an object is as a request wanted it: how one sees that a write was done whose answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

# Whether an object that was found is as a body wanted it.
Alike: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]

# What is the server's to write, or tells one version of an object from another.
_STATUS = "status"
_METADATA = frozenset(
    """
    creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields resourceVersion selfLink uid
    """.split()
)


def is_as_wanted(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an object has all that a body has: what is null there it has not, and what the server adds counts not.

    Lists have to be alike. A server that writes a value in another form makes this false, never true.
    """
    return _has(found, _written(wanted))


def is_just_as_wanted(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an object is what a body says and nothing more, but for what only the server writes.

    A server that adds to a spec, or a webhook, makes this false, never true.
    """
    return _said(found) == _said(wanted)


def _has(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        there = found if isinstance(found, Mapping) else {}
        return all(_has(there.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        alike = isinstance(found, list) and len(found) == len(wanted)
        return alike and all(map(_has, found, wanted))
    return bool(found == wanted)


def _written(item: Mapping[str, Any]) -> JsonObject:
    """What is not the server's. Below a label or in a template the same words are anybody's."""
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if key not in _METADATA}
    return {**{key: value for key, value in item.items() if key != _STATUS}, "metadata": metadata}


def _said(item: Mapping[str, Any]) -> JsonObject:
    """Without what says nothing. In a spec an empty part may say something: that there is one."""
    written = _without_nulls(_written(item))
    return _filled({**written, "metadata": _filled(written["metadata"])})


def _filled(parts: Mapping[str, Any]) -> JsonObject:
    return {key: value for key, value in parts.items() if value not in ({}, [])}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value

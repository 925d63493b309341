# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what guests are told in confidence out of results and diffs.

kubectl leaves a copy of all that it applied in an annotation, a string in which no secret can be told from the rest; it
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.secret_fields import (
    LAST_APPLIED,
    SECRET_ANNOTATIONS,
    SECRET_FIELDS,
)

_SECRET = SECRET_FIELDS | SECRET_ANNOTATIONS
# In which users may call anything as they like.
_LABELS = frozenset({"labels", "matchLabels", "nodeSelector"})
HIDDEN = "(hidden)"


def without_secrets(value: Any, before: Any = None) -> Any:
    """The value with secrets hidden. `before`: the value they had; one that differs from it is said to be changed."""
    if isinstance(value, Mapping):
        old = before if isinstance(before, Mapping) else {}
        return {key: _shown(key, part, old.get(key)) for key, part in value.items() if key != LAST_APPLIED}
    if isinstance(value, list):
        return [without_secrets(part, _predecessor(part, place, before)) for place, part in enumerate(value)]
    return value


def secrets(value: Any) -> Iterator[str]:
    """The secrets in it, for Ansible to strike out wherever else they turn up.

    Without the words of commands, which are everybody's: with a user called postgres a VM's name would be struck out.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in _SECRET:
                yield from _texts(part)
            elif key not in _LABELS:
                yield from secrets(part)
    elif isinstance(value, list):
        for part in value:
            yield from secrets(part)


def _shown(key: str, part: Any, before: Any) -> Any:
    if key in _LABELS:
        return part
    return _hidden(part, before) if key in _SECRET else without_secrets(part, before)


def _hidden(value: object, before: object) -> str:
    return HIDDEN if before is None or value == before else f"{HIDDEN[:-1]}, changed)"


def _predecessor(item: Any, place: int, before: Any) -> Any:
    """What stood in the list before, under the item's name or, as it has none, at its place."""
    others = before if isinstance(before, list) else []
    if isinstance(item, Mapping) and "name" in item:
        return next((one for one in others if isinstance(one, Mapping) and one.get("name") == item["name"]), None)
    return others[place] if place < len(others) else None


def _texts(secret: Any) -> Iterator[str]:
    """Of headers their values."""
    if not isinstance(secret, list):
        yield str(secret)
        return
    for part in secret:
        if isinstance(part, Mapping):
            yield str(part.get("value"))

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what guests are told in confidence out of results and diffs.

Cloud-init data stands in the template as text, Ignition's in an annotation of it. kubectl leaves a copy of all that it
applied in an annotation, a string in which none of it can be told from the rest; it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SECRET = frozenset(
    {"userData", "userDataBase64", "networkData", "networkDataBase64", "kubevirt.io/ignitiondata"},
)
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
HIDDEN = "(hidden)"


def without_secrets(value: Any, before: Any = None) -> Any:
    """The value with secrets hidden. `before`: the value they had; one that differs from it is said to be changed."""
    if isinstance(value, Mapping):
        old = before if isinstance(before, Mapping) else {}
        return {
            key: _hidden(part, old.get(key)) if key in _SECRET else without_secrets(part, old.get(key))
            for key, part in value.items()
            if key != _COPY
        }
    if isinstance(value, list):
        others = before if isinstance(before, list) and len(before) == len(value) else [None] * len(value)
        return [without_secrets(part, other) for part, other in zip(value, others, strict=True)]
    return value


def secrets(value: Any) -> Iterator[str]:
    """The secrets in it, for Ansible to strike out wherever else they turn up."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in _SECRET or key == _COPY:
                yield str(part)
            else:
                yield from secrets(part)
    elif isinstance(value, list):
        for part in value:
            yield from secrets(part)


def _hidden(value: object, before: object) -> str:
    return HIDDEN if before is None or value == before else f"{HIDDEN[:-1]}, changed)"

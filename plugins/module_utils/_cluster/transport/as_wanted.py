# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an object is as a request wanted it: how one sees that a write was done whose answer was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What is the server's to write, or tells one version of an object from another.
_SERVERS = frozenset({"status", "resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"})


def is_as_wanted(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an object has all that a body has: what is null there it has not, and what the server adds counts not.

    Lists have to be alike. A server that writes a value in another form makes this false, never true.
    """
    return all(_has(found.get(key), value) for key, value in wanted.items() if key not in _SERVERS)


def _has(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return is_as_wanted(found if isinstance(found, Mapping) else {}, wanted)
    if isinstance(wanted, list):
        alike = isinstance(found, list) and len(found) == len(wanted)
        return alike and all(map(_has, found, wanted))
    return bool(found == wanted)

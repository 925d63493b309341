# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What stands around VMIs in a snapshot, read once for the many calls that a `select` makes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import (
    Surroundings,
    surroundings,
)

# The last snapshot file asked about. The process of a task ends with it, and there are no threads.
_LAST: dict[tuple[object, ...], Surroundings] = {}


def surroundings_of(source: object) -> Surroundings:
    """Raises Failure, SnapshotError, QuantityError, SelectorError."""
    key = _key(source)
    if key is None:
        return surroundings(load(source).lists)
    if key not in _LAST:
        read = surroundings(load(source).lists)
        _LAST.clear()
        _LAST[key] = read
    return _LAST[key]


def _key(source: object) -> tuple[object, ...] | None:
    """What tells one state of one file from another; None for lists, whose comparison would cost more than it saves."""
    handle = source if isinstance(source, Mapping) else {"snapshot_path": source}
    path = handle.get("snapshot_path")
    if not isinstance(path, (str, os.PathLike)):
        return None
    try:
        found = Path(path).expanduser().stat()
    except OSError:
        return None
    return str(path), handle.get("sha256"), found.st_ino, found.st_mtime_ns, found.st_size

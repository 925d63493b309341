# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What is made of a snapshot, once for all the calls of a filter or test that a task makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot

Made = TypeVar("Made")


# The last snapshot file asked about. The process of a task ends with it, and there are no threads.
_LAST: dict[tuple[object, ...], Snapshot] = {}


def once(make: Callable[[Lists], Made], source: object) -> Made:
    """What `make` makes of the lists of a snapshot; whoever changes it undoes that.

    Raises Failure, SnapshotError, and what `make` raises.
    """
    key = _key(source)
    if key is None:
        return make(load(source).lists)
    if key not in _LAST:
        snapshot = load(source)
        _LAST.clear()
        _LAST[key] = snapshot
    return _LAST[key].once(make)


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

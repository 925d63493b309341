# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshot files on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.collector import (
    paused_collector,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import snapshot_format
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import (
    Header,
    Snapshot,
    SnapshotError,
    from_plain,
)

_WHAT = "the snapshot"
_CHUNK = 2**20


def load(source: object) -> Snapshot:
    """A snapshot from its handle, from a path, or from lists in plain form. Raises SnapshotError, Failure.

    A handle is what cluster_snapshot returns; its file must still be the one that was returned then.
    """
    if isinstance(source, (str, os.PathLike)):
        return _read(Path(source))
    if not isinstance(source, Mapping) or "snapshot_path" not in source:
        return from_plain(source)
    path = source["snapshot_path"]
    if not isinstance(path, (str, os.PathLike)):
        raise SnapshotError(f"`snapshot_path` of a snapshot's handle is a path, got {path!r}.")
    snapshot = _read(Path(path))
    found = snapshot.header.sha256 if snapshot.header else None
    if source.get("sha256", found) != found:
        raise SnapshotError(
            f"{path}: the file is not the one that the handle is of (sha256 {found}, expected "
            f"{source['sha256']}): another run has replaced it, or cluster_snapshot ran in check mode. Take the "
            "snapshot again, with a path of its own."
        )
    return snapshot


def find_path(source: object) -> Path | None:
    """The path of what `load` takes; None for lists in plain form, and for what it refuses."""
    path = source.get("snapshot_path") if isinstance(source, Mapping) else source
    return Path(path) if isinstance(path, (str, os.PathLike)) and path else None


def find_header(path: Path) -> Header | None:
    """The header of the snapshot at a path; None if there is no file, or one that is no intact snapshot."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            header = snapshot_format.decode_header(stream.readline())
            digest = hashlib.sha256()
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except (OSError, SnapshotError):
        return None
    return header if digest.hexdigest() == header.sha256 else None


def find_nodes(path: Path) -> list[Object] | None:
    """The nodes of the snapshot at a path, and nothing else of it is read; None as for `find_header`.

    Whether the file is intact is not looked at: it is for what is only told.
    """
    try:
        with path.open("rb") as stream:
            snapshot_format.decode_header(stream.readline())
            return list(snapshot_format.decode_list(stream, "nodes"))
    except (OSError, SnapshotError):
        return None


def check_writable(path: Path) -> None:
    """Raise Failure for a path that `write` would fail on, as far as that can be told without writing."""
    private_file.check_writable(path, _WHAT)


def create_folder(path: Path) -> None:
    """Raises Failure."""
    private_file.create_folder(path, _WHAT)


def write(path: Path, document: snapshot_format.Document) -> int:
    """Replace a file and return its size in bytes. Raises Failure, with all as it was."""
    return private_file.write(path, document.chunks(), _WHAT)


def _read(path: Path) -> Snapshot:
    content = private_file.read(path, _WHAT, "cluster_snapshot")
    try:
        with paused_collector():
            return snapshot_format.decode(content)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error

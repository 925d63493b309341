# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshot files on disk: written as a whole or not at all, readable by their owner only."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.collector import paused_collector
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import (
    Header,
    Snapshot,
    SnapshotError,
    from_plain,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import (
    Document,
    decode,
    decode_header,
)

MODE = 0o600
_CHUNK = 2**20

_WRITE_REMEDIES = {
    errno.ENOSPC: "Free some space there, or give a path on another file system.",
    errno.EDQUOT: "Free some space within the quota, or give a path on another file system.",
    errno.EFBIG: "Raise the limit on the size of files, or give a path on another file system.",
    errno.ENOENT: "Create its folder first, or correct the path.",
    errno.ENOTDIR: "Correct the path: one of its folders is a file.",
    errno.EISDIR: "Give the path of a file: this is a folder.",
    errno.EROFS: "Give a path on a file system that is not read-only.",
}
_PERMISSION_REMEDY = "Give a path in a folder that the user of the task may write to."


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


def find_header(path: Path) -> Header | None:
    """The header of the snapshot at a path; None if there is no file, or one that is no intact snapshot."""
    try:
        with path.open("rb") as stream:
            header = decode_header(stream.readline())
            digest = hashlib.sha256()
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except (OSError, SnapshotError):
        return None
    return header if digest.hexdigest() == header.sha256 else None


def has_mode(path: Path) -> bool:
    """Whether a file exists that its owner alone can read."""
    return path.is_file() and stat.S_IMODE(path.stat().st_mode) == MODE


def check_writable(path: Path) -> None:
    """Raise Failure for a path that `write` would fail on, as far as that can be told without writing."""
    folder = path.resolve().parent
    if path.is_dir():
        raise _failure(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _failure(path, error) from error
    except PermissionError:
        pass  # a folder can be writable without being readable
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _failure(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def write(path: Path, document: Document) -> int:
    """Replace a file, or the one a link leads to, and return its size in bytes. Raises Failure, with all as it was."""
    target = path.resolve()
    try:
        # Beside the target, as a file cannot be moved at once between file systems. It is private from the start.
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines(document.chunks())
                stream.flush()
                os.fsync(stream.fileno())
                size = stream.tell()
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise _failure(path, error) from error
    return size


def _read(path: Path) -> Snapshot:
    try:
        content = path.expanduser().read_bytes()
    except OSError as error:
        raise Failure(
            "read the snapshot",
            str(path),
            error.strerror or str(error),
            "Check the path, and that cluster_snapshot has written it on this machine, outside check mode.",
            reason=errno.errorcode.get(error.errno or 0, ""),
        ) from error
    try:
        with paused_collector():
            return decode(content)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error


def _failure(path: Path, error: OSError) -> Failure:
    remedy = _WRITE_REMEDIES.get(error.errno or 0, _PERMISSION_REMEDY)
    reason = errno.errorcode.get(error.errno or 0, "")
    return Failure("write the snapshot", str(path), error.strerror or str(error), remedy, reason=reason)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that tell of a whole cluster: written as a whole or not at all, readable by their owner only.

`what` is what a file holds, with its article, as in "the snapshot"; errors say it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

MODE = 0o600
# Reading and writing, by group and others.
_OTHERS = 0o066
# The user whose links everybody trusts.
_SYSTEM = 0

_WRITE_REMEDIES = {
    errno.ENOSPC: "Free some space there, or give a path on another file system.",
    errno.EDQUOT: "Free some space within the quota, or give a path on another file system.",
    errno.EFBIG: "Raise the limit on the size of files, or give a path on another file system.",
    errno.ENOENT: "Create its folder first, or correct the path.",
    errno.ENOTDIR: "Correct the path: one of its folders is a file.",
    errno.EISDIR: "Give the path of a file: this is a folder.",
    errno.ELOOP: "Give the path of the file itself, in a folder that nobody else may write to.",
    errno.EROFS: "Give a path on a file system that is not read-only.",
}
_PERMISSION_REMEDY = "Give a path in a folder that the user of the task may write to."


def has_mode(path: Path) -> bool:
    """Whether a file exists that is this user's, and that nobody else can read."""
    if not path.is_file():
        return False
    found = path.stat()
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == MODE


def check_writable(path: Path, what: str) -> None:
    """Raise Failure for a path that `write` would fail on, as far as that can be told without writing."""
    try:
        folder = _target(path).parent
    except OSError as error:
        raise _failure(path, what, error) from error
    if path.is_dir():
        raise _failure(path, what, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _failure(path, what, error) from error
    except PermissionError:
        pass  # a folder can be writable without being readable
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _failure(path, what, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def create_folder(path: Path, what: str) -> None:
    """Make the folder of a file, where it is missing, for this user only. Raises Failure."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _failure(path, what, error) from error


def read(path: Path, what: str, writer: str, *, private: bool = False) -> bytes:
    """Raises Failure. writer: the module that writes such files. private: whether nobody else may read or change it."""
    try:
        file = expanded(path)
        if file.exists() and not file.is_file() and not file.is_dir():
            # To read from a pipe or device may never end.
            raise OSError(errno.EINVAL, "it is no regular file")
        with file.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            content = stream.read()
    except OSError as error:
        raise Failure(
            f"read {what}",
            str(path),
            error.strerror or str(error),
            f"Check the path, and that {writer} has written it on this machine, outside check mode.",
            reason=errno.errorcode.get(error.errno or 0, ""),
        ) from error
    if private and mode & _OTHERS:
        raise Failure(
            f"read {what}",
            str(path),
            f"its mode is {mode:04o}, so that others may read or change it",
            f"Run `chmod 600 {path}` once it is what you expect, as after a checkout or download.",
        )
    return content


def write(path: Path, chunks: Iterable[bytes], what: str) -> int:
    """Replace a file, or the one a link leads to, and return its size in bytes. Raises Failure, with all as it was."""
    try:
        target = _target(path)
        # Beside the target, as a file cannot be moved at once between file systems. It is private from the start.
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines(chunks)
                stream.flush()
                os.fsync(stream.fileno())
                size = stream.tell()
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise _failure(path, what, error) from error
    return size


def check_removable(path: Path, what: str) -> None:
    """Raise Failure where `remove` would, as far as that can be told without removing."""
    try:
        folder = expanded(path).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _failure(path, what, error, "remove") from error


def remove(path: Path, what: str) -> None:
    """Of a link that alone. One that is gone already is removed. Raises Failure."""
    try:
        expanded(path).unlink(missing_ok=True)
    except OSError as error:
        raise _failure(path, what, error, "remove") from error


def _target(path: Path) -> Path:
    """The file, or the one that a link leads to, if the link is this user's or the system's.

    In a folder that many may write to, such as /tmp, anybody could have what is written put in the place of any file of
    this user's. Raises OSError.
    """
    path = expanded(path)
    if path.is_symlink() and path.lstat().st_uid not in (os.geteuid(), _SYSTEM):
        raise OSError(errno.ELOOP, "it is a link that another user has made")
    return resolved(path)


def expanded(path: Path) -> Path:
    """With the home of whom it begins with. Raises OSError."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise OSError(errno.ENOENT, f"nobody knows the home of {path.parts[0]}") from error


def resolved(path: Path) -> Path:
    """Where links lead. Raises OSError, also where they lead to each other, which 3.13 takes for a path like others."""
    try:
        found = path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def _failure(path: Path, what: str, error: OSError, tried: str = "write") -> Failure:
    remedy = _WRITE_REMEDIES.get(error.errno or 0, _PERMISSION_REMEDY)
    reason = errno.errorcode.get(error.errno or 0, "")
    return Failure(f"{tried} {what}", str(path), error.strerror or str(error), remedy, reason=reason)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks between processes. The system lets go of one when its holder ends, however that happens."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock; yields whether it is held, which is False only when `wait` is False and somebody else has it.

    The file is removed at the end, so that locks leave nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = _acquire(path, wait)
    if stream is None:
        yield False
        return
    with stream:
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def _acquire(path: Path, wait: bool) -> IO[str] | None:
    while True:
        stream = path.open("w")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Whoever had the lock before may have removed the file: then this lock is one that nobody else sees.
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        except BlockingIOError:
            stream.close()
            return None
        except FileNotFoundError:
            pass
        stream.close()

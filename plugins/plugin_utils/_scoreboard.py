# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""One board for all tasks of an ansible-playbook, each of which has a process of its own: a file in its own folder.

So three nodes that are drained at once have one line of totals, and not three; and it tells how long earlier batches
took. The file goes with the folder when ansible-playbook ends. Nobody is kept waiting by it: whoever cannot have it,
for whatever reason, has a board of his own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Scoreboard, Standing

_NAME = "virtops-kubevirt-totals"
# How often, and how many seconds apart, the file is asked for that others have for a moment.
_ATTEMPTS, _PAUSE = 50, 0.01


class SharedScoreboard:
    """folder: of this ansible-playbook. clock: the same for all processes of the machine, in seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / _NAME
        self._clock = clock
        self._own = Scoreboard()

    def post(self, standing: Standing) -> str:
        """The line of totals that is to be shown now, empty if none is."""
        lines: list[str] = []

        def post(board: Scoreboard) -> Scoreboard:
            after, line = board.posted(standing, self._clock())
            lines.append(line)
            return after

        self._change(post)
        return lines[-1]

    def leave(self, standing: Standing) -> None:
        """After the drain has ended."""
        self._change(lambda board: board.left(standing))

    def _change(self, change: Callable[[Scoreboard], Scoreboard]) -> None:
        try:
            with _locked(self._path) as file:
                content = change(_board(file.read())).encoded().encode()
                file.seek(0)
                file.truncate()
                file.write(content)
        except OSError:
            self._own = change(self._own)


def _board(content: bytes) -> Scoreboard:
    """Whoever was killed while writing has left half of it: then everybody tells anew."""
    try:
        return Scoreboard.decoded(content.decode())
    except ValueError:
        return Scoreboard()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Raises OSError, also if others do not let go of it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "r+b") as file:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(_PAUSE)
            else:
                break
        yield file

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Show what a module tells while it runs; module_utils/_module/progress.py is the side that tells.

The lines go to stderr: on stdout they would break callbacks that print JSON.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.utils.display import Display
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import decode_line, find_standing
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._scoreboard import SharedScoreboard

display = Display()

# What the FIFO holds at most fits into one read.
_ALL = 1 << 20


def _survive_deaf_ears() -> None:
    """Let a run outlive whoever takes its output, as with `ansible-playbook ... 2>&1 | head`, or on a full disk.

    What workers display is written by the main process, in its thread that receives their results. ansible-core (2.19
    to 2.21) leaves that thread at the first error of the system, or dies there of another one, and then waits for
    results for ever. Strategies load an action in the main process before they start a worker for it, so this holds
    there. In the main thread the error stays one, and ends the run as ever.
    """

    def display_to_whoever_listens(*args: Any, **kwargs: Any) -> None:
        try:
            Display.display(display, *args, **kwargs)
        except Exception:
            if threading.current_thread() is threading.main_thread():
                raise

    setattr(display, "display", display_to_whoever_listens)  # noqa: B010 - a method is not to be assigned otherwise


_survive_deaf_ears()


class Screen:
    """Shows what the module of one task tells."""

    def __init__(self, board: SharedScoreboard) -> None:
        self._board = board
        self._last: Standing | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._last is not None:
            self._board.leave(self._last)

    def show(self, message: bytes) -> None:
        """Raises ValueError for what no module says."""
        standing = find_standing(message)
        if standing is None:
            line, is_detail = decode_line(message)
            if not is_detail or display.verbosity > 0:
                display.display(line, stderr=True)
            return
        self._last, totals = standing, self._board.post(standing)
        if totals:
            display.display(f"{time.strftime('%H:%M:%S')} {totals}", stderr=True)


def screen() -> Screen:
    """Of one task."""
    return Screen(SharedScoreboard(Path(constants.DEFAULT_LOCAL_TMP)))


@contextlib.contextmanager
def listening(tell: Callable[[bytes], None]) -> Iterator[str | None]:
    """The path of a FIFO whose messages are told from a thread meanwhile, or None where none can be made."""
    folder = None
    try:
        # Private to this user. Ansible removes what is around it even if this process is killed.
        folder = tempfile.mkdtemp(prefix="progress-", dir=constants.DEFAULT_LOCAL_TMP)
        path = str(Path(folder, "fifo"))
        os.mkfifo(path, 0o600)
        # For writing too: so it neither waits for a writer nor ends with one.
        fifo = os.open(path, os.O_RDWR)
    except OSError:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        yield None
        return
    end = secrets.token_hex().encode()
    thread = threading.Thread(target=_listen, args=(fifo, tell, end), daemon=True)
    thread.start()
    try:
        yield path
    finally:
        # Nobody opens it any more from here on.
        shutil.rmtree(folder, ignore_errors=True)
        # A line of its own, whatever a module that was killed has left half written.
        os.write(fifo, b"\n%s\n" % end)
        thread.join()
        os.close(fifo)


def _listen(fifo: int, tell: Callable[[bytes], None], end: bytes) -> None:
    """Until the end mark, whatever becomes of the lines: who does not read on would let the task wait."""
    rest = b""
    while True:
        *messages, rest = (rest + os.read(fifo, _ALL)).split(b"\n")
        for message in messages:
            if message == end:
                return
            if message:
                with contextlib.suppress(Exception):
                    tell(message)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module tells its news while it runs; see plugin_utils/_progress.py for the side that listens.

The action plugin makes a FIFO on the controller and gives its path by the option `_progress`. Each message is one write
of one line: its kind, then the text, never longer than what the system writes in one piece, so that the lines of
several writers do not mix. A drain tells where it stands in numbers, of which the listening side makes one line of
totals for all drains of a batch. Telling is a courtesy: it never waits and never fails. Where there is no FIFO, as on
another host, or nobody reads it, the task goes on in silence.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import TOTALS_EVERY, Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable

# Seconds after which a standing that has not changed is told again: time alone changes what is left of it.
_STANDS_EVERY = 5.0
# Bytes that are written as a whole or not at all; a message has its kind before and its end after the text.
_AT_ONCE = select.PIPE_BUF
_TOLD, _DETAIL, _STANDING = b"=", b"-", b"#"
_CUT = "…"


def is_heard(params: Mapping[str, Any]) -> bool:
    """Whether the module's action plugin listens, and can be reached: not from another host, nor as another user."""
    return os.access(params.get("_progress") or "", os.W_OK)


class Progress:
    """Lines on a task for people. Not thread-safe.

    deliver: takes a message. about: what all lines begin with, such as "node n1". clock: monotonic, in seconds.
    """

    def __init__(
        self, deliver: Callable[[bytes], object], about: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._deliver = deliver
        self._prefix = f"{about}: " if about else ""
        self._clock = clock
        # A task that takes less time than that needs no totals.
        self._next_totals = clock() + TOTALS_EVERY
        self._last_totals = ""
        self._next_standing = float("-inf")
        self._last_standing: Standing | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any], about: str = "") -> Progress:
        """To whom the action plugin of a module listens for, or to nobody."""
        path = params.get("_progress")
        return cls(_Fifo(path) if path else _nobody, about)

    def tell(self, line: str) -> None:
        self._deliver(encode_line(self._prefix + line, detail=False))

    def detail(self, line: str) -> None:
        """Only shown with -v."""
        self._deliver(encode_line(self._prefix + line, detail=True))

    def totals(self, text: str) -> None:
        """How far the task is, with the time of day before it: seldom, and only if it is further than at the last."""
        now = self._clock()
        if now < self._next_totals or text in ("", self._last_totals):
            return
        self._next_totals, self._last_totals = now + TOTALS_EVERY, text
        self._deliver(encode_line(f"{time.strftime('%H:%M:%S')} {self._prefix}{text}", detail=False))

    def stands(self, standing: Standing) -> None:
        """Where a drain stands, for the totals of its batch: at once if that is new, else now and then."""
        now = self._clock()
        if standing != self._last_standing or now >= self._next_standing:
            self._next_standing, self._last_standing = now + _STANDS_EVERY, standing
            self._deliver(_STANDING + standing.encoded().encode() + b"\n")


def encode_line(line: str, *, detail: bool) -> bytes:
    """One message, cut to what is written in one piece."""
    content, room = printable(line).encode(errors="replace"), _AT_ONCE - 2
    if len(content) > room:
        content = content[: room - len(_CUT.encode())].decode(errors="ignore").encode() + _CUT.encode()
    return (_DETAIL if detail else _TOLD) + content + b"\n"


def decode_line(message: bytes) -> tuple[str, bool]:
    """The line of a message, without its end, and whether it is detail."""
    return printable(message[1:].rstrip(b"\n").decode(errors="replace")), message[:1] == _DETAIL


def find_standing(message: bytes) -> Standing | None:
    """What a message says of a drain, None if it is a line. Raises ValueError."""
    return Standing.decoded(message[1:].decode()) if message[:1] == _STANDING else None


class _Fifo:
    """Opened for each line, so that nothing is left to be closed when the module ends, however it does."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, message: bytes) -> None:
        if len(message) > _AT_ONCE:  # in pieces it would mix with others
            return
        try:
            fifo = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:  # not on this host, or nobody reads
            return
        try:
            if stat.S_ISFIFO(os.fstat(fifo).st_mode):
                os.write(fifo, message)
        except OSError:  # the reader has gone, or has stopped reading: the line is lost, and not the time
            return
        finally:
            os.close(fifo)


def _nobody(_message: bytes) -> None: ...

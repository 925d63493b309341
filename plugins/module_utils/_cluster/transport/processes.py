# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell processes apart: the one that a number means now, and whether it still lives."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import embedded

_DEAD = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Process:
    """`started`: by the system's own count, empty where there is no /proc. `place`: where its number means anything."""

    pid: int
    started: str
    place: str

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, _stat(pid)[1], place())

    @classmethod
    def told(cls, text: str) -> Process | None:
        """The one that somebody has written of as JSON; None if that tells of none."""
        try:
            process = cls(**embedded(text))
        except TypeError:
            return None
        return process if isinstance(process.pid, int) and isinstance(process.place, str) else None

    @property
    def here(self) -> bool:
        """Whether its number means anything in this place. A machine that has woken elsewhere may have another name."""
        return _nameless(self.place) == _nameless(place())

    @property
    def alive(self) -> bool:
        """False as well for one that has ended and that its parent has not asked for yet; True if it is elsewhere."""
        if not self.here:
            return True
        state, started = _stat(self.pid)
        if state:
            return state not in _DEAD and started == self.started
        if self.started:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def end(self, words: str) -> None:
        """End it, with a line on its stderr if that takes one at once."""
        if not (self.here and self.alive):
            return
        with contextlib.suppress(OSError):
            stderr = os.open(f"/proc/{self.pid}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
            with os.fdopen(stderr, "w", encoding="utf-8") as stream:
                stream.write(f"{words}\n")
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)

    def dismiss(self, words: str) -> None:
        """End it without a word, if `words` are part of the command by which it was begun."""
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{self.pid}/cmdline").read_text(encoding="utf-8", errors="replace")
            if self.here and self.alive and words in command:
                os.kill(self.pid, signal.SIGTERM)


def can_dismiss() -> bool:
    """Whether this system tells by which commands processes were begun."""
    return Path("/proc/self/cmdline").exists()


def place() -> str:
    """Names a boot of a machine and a container in it: the ones that this process is in."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _nameless(place: str) -> list[str]:
    """Without the machine's name, if there is more to tell it by."""
    return place.split()[1:] or [place]


def _stat(pid: int) -> tuple[str, str]:
    """State and start of a process, empty if they cannot be told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    # The name before it is in parentheses, and may hold any characters.
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which test run a process belongs to: told in its environment, so that what a killed run leaves behind is found."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "VIRTOPS_RUN"


def name_of_this() -> str:
    """PID and start of this process; an id alone is used again."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def goes_on(run: str) -> bool:
    """Whether the process of that name still runs."""
    number, _colon, start = run.partition(":")
    try:
        return _started(int(number)) == start
    except (OSError, ValueError):
        return False


def _started(number: int) -> str:
    """In ticks since the machine was started. Raises OSError when there is no such process."""
    content = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    # The second field is the program's name in parentheses, which may hold anything.
    return content.rpartition(")")[2].split()[19]

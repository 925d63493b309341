# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, find and stop the processes of a testbed.

Each process carries its testbed's folder and its part's name in its environment. Looking there, instead of into a list
of process ids, finds every process whatever was killed in between and never touches a stranger that got a used id.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from testbed import runs
from testbed.home import Home

FOLDER = "VIRTOPS_TESTBED_FOLDER"
PART = "VIRTOPS_TESTBED_PART"


@dataclass(frozen=True)
class Running:
    """A live process of a testbed."""

    folder: str
    part: str
    process: psutil.Process


def spawn(home: Home, part: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start a part in the background, its output going to its log."""
    variables = {**os.environ, **environment, "TMPDIR": str(home.temporary), FOLDER: str(home.root), PART: part}
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # Not subprocess: the part outlives the command that starts it, and nobody here waits for it.
    process = psutil.Process(
        os.posix_spawn(
            command[0],
            list(command),
            variables,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(home.log(part)), append, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            # Its own session: Ctrl-C at the terminal stops the command at hand, not the testbed.
            setsid=True,
        )
    )
    # For a moment after its start a process shows an empty environment, and would not be found.
    while process.status() != psutil.STATUS_ZOMBIE and FOLDER not in process.environ():
        time.sleep(0.002)


def scan() -> list[Running]:
    """Every live process of every testbed of this user."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if FOLDER in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Running(environment[FOLDER], environment[PART], process))
    return found


def running(home: Home) -> dict[str, psutil.Process]:
    """The live processes of one testbed by part; a part's own children are not listed."""
    mine = [entry for entry in scan() if entry.folder == str(home.root)]
    ids = {entry.process.pid for entry in mine}
    parts = {}
    for entry in mine:
        with contextlib.suppress(psutil.NoSuchProcess):
            if entry.process.ppid() not in ids:
                parts[entry.part] = entry.process
    return parts


def stop(processes: Iterable[psutil.Process], grace: float = 5) -> None:
    """Ask the processes to end, and end those that have not after `grace` seconds."""
    remaining = list(processes)
    for process in remaining:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _gone, stubborn = psutil.wait_procs(remaining, timeout=grace)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=grace)


def stop_all(home: Home) -> None:
    """End every process of a testbed, children included."""
    stop(entry.process for entry in scan() if entry.folder == str(home.root))


def orphans() -> list[psutil.Process]:
    """Processes of test runs that were killed and left them behind; not those of testbeds, which have owners."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            run = environment.get(runs.VARIABLE)
            if run and FOLDER not in environment and not runs.goes_on(run):
                found.append(process)
    return found


def alive(owner: tuple[int, float]) -> bool:
    """Whether a process, known by id and creation time, still runs."""
    try:
        return abs(psutil.Process(owner[0]).create_time() - owner[1]) < 1
    except psutil.NoSuchProcess:
        return False


def tail(home: Home, part: str, lines: int = 8, width: int = 300) -> str:
    """The last lines of a part's log, long ones cut."""
    try:
        content = home.log(part).read_text(errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(line[:width] for line in content.splitlines()[-lines:]) or "(its log is empty)"

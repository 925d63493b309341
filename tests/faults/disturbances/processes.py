# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run's own processes, and the disk under them."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

import psutil

from faults.invocation import Going
from faults.scene import Scene


def killed(scene: Scene, going: Going) -> str:
    """The whole run at once, as when its machine is lost."""
    scene.killed = True
    _signal(going, signal.SIGKILL)
    return "run killed"


def terminated(scene: Scene, going: Going) -> str:
    """As AWX cancels a job."""
    scene.killed = True
    _signal(going, signal.SIGTERM)
    return "run terminated"


def interrupted(scene: Scene, going: Going) -> str:
    scene.killed = True
    _signal(going, signal.SIGINT)
    return "Ctrl-C"


def one_worker_killed(scene: Scene, going: Going) -> str:
    """One process of it, which may be a module."""
    scene.killed = True
    family = _family(going)[1:]
    if not family:
        return "nothing: no process to kill"
    chosen = scene.random.choice(family)
    try:
        chosen.kill()
    except psutil.NoSuchProcess:
        return "nothing: the process had ended"
    return "one worker killed"


def paused(scene: Scene, going: Going) -> str:
    """Its machine stands still for longer than the run's Lease lasts."""
    scene.killed = True
    _signal(going, signal.SIGSTOP)
    time.sleep(40)
    _signal(going, signal.SIGCONT)
    return "paused for 40 s"


def disk_full(scene: Scene, going: Going) -> str:
    """For a while no file of it may grow beyond a size, which is what a full disk and a quota come to."""
    scene.killed = True
    size, seconds = scene.random.choice((0, 4096, 65536)), scene.random.uniform(3, 15)
    _limit_files(going, size)
    time.sleep(seconds)
    _limit_files(going, resource.RLIM_INFINITY)
    return f"no file beyond {size} bytes for {seconds:.0f} s"


def _signal(going: Going, number: signal.Signals) -> None:
    """To the whole process group of the run; modules of an ended task may have one of their own."""
    try:
        os.killpg(going.pid, number)
    except ProcessLookupError:
        return


def _family(going: Going) -> list[psutil.Process]:
    """The run's first process, and all that it has started."""
    try:
        first = psutil.Process(going.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _limit_files(going: Going, size: int) -> None:
    for process in _family(going):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.rlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

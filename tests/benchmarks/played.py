# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play a playbook, and tell what it has printed, and what it and each of its tasks has cost."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import ansible_collections

from testbed.api import Object

DRAIN = "virtops.kubevirt.node_drain"
# With the state that it has by default, and with that by name.
DRAINS = ((DRAIN, ""), (DRAIN, "drained"))
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Played:
    """A playbook that has ended well. tasks: as callback/task_times.py has them. memory: when, and MiB then."""

    stdout: list[str]
    stderr: list[str]
    tasks: list[Object]
    memory: list[tuple[float, float]]

    @property
    def drains(self) -> list[Object]:
        """Those that empty nodes: node_drain also sees that a node is empty, and starts what was stopped for one."""
        return [entry for entry in self.tasks if (entry["action"], entry["state"]) in DRAINS]

    @property
    def printed(self) -> tuple[int, int]:
        """Lines and bytes, of stdout and stderr."""
        lines = [*self.stdout, *self.stderr]
        return len(lines), sum(len(line.encode()) + 1 for line in lines)

    def most_memory(self, begin: float = 0.0, end: float = math.inf) -> float:
        return max((size for moment, size in self.memory if begin <= moment <= end), default=0.0)


def play(folder: Path, name: str, plays: list[Object], variables: dict[str, Any], *words: str) -> Played:
    """Run a playbook, and end all if it fails."""
    playbook, times = folder / f"{name}.yml", folder / f"{name}-times"
    playbook.write_text(json.dumps(plays))
    settings = {
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_COLLECTIONS_PATH": str(Path(next(iter(ansible_collections.__path__))).parent),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("callback")),
        "ANSIBLE_CALLBACKS_ENABLED": "task_times",
        "VIRTOPS_TASK_TIMES": str(times),
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    given = json.dumps({**variables, "ansible_python_interpreter": sys.executable})
    command = [str(Path(sys.executable).with_name("ansible-playbook")), str(playbook), "--extra-vars", given, *words]
    memory = []
    environment, piped = {**inherited, **settings}, subprocess.PIPE
    # With a terminal for its input a pause would ask there.
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=piped, stderr=piped, text=True
    ) as going:
        while True:
            try:
                stdout, stderr = going.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                memory.append((time.time(), memory_of(going.pid)))
    if going.returncode:
        sys.exit(stdout + stderr)
    tasks = [json.loads(line) for line in times.read_text().splitlines()]
    return Played(stdout.splitlines(), stderr.splitlines(), tasks, memory)


def memory_of(pid: int) -> float:
    """MiB that a process and its descendants have now; what processes share is divided among them."""
    size = 0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                size += process.memory_full_info().pss
    return size / MEBIBYTE


def used() -> float:
    """Seconds of the processor that the playbooks so far have taken, user and system, all their processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machine was like during a run, for whoever reads why it was red: load, pressure on processors, memory."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PERIOD = 10.0
_PRESSURE = re.compile(r"some avg10=([\d.]+)")
_AVAILABLE = re.compile(r"MemAvailable:\s+(\d+) kB")


@dataclass
class Machine:
    """Samples: load average of a minute, pressure in percent of the last ten seconds, available memory in GiB."""

    loads: list[float] = field(default_factory=list)
    pressures: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def sample(self) -> None:
        self.loads.append(os.getloadavg()[0])
        self.pressures += _number(_PRESSURE, Path("/proc/pressure/cpu"))
        self.memory += [kib / 2**20 for kib in _number(_AVAILABLE, Path("/proc/meminfo"))]

    def told(self) -> list[str]:
        lines = [f"machine: {os.cpu_count()} processors, load {_range(self.loads)}"]
        if self.pressures:
            lines.append(f"machine: work waited for a processor in {_range(self.pressures)} % of the time")
        if self.memory:
            lines.append(f"machine: {min(self.memory):.1f} GiB of memory were available at least")
        return lines


@contextmanager
def watched() -> Iterator[Machine]:
    """The machine, looked at from time to time until the end of the block."""
    machine, over = Machine(), threading.Event()

    def look() -> None:
        machine.sample()
        while not over.wait(PERIOD):
            machine.sample()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield machine
    finally:
        over.set()
        thread.join()


def _number(pattern: re.Pattern[str], path: Path) -> list[float]:
    """The number in a file of the kernel, or none where there is no such file or number."""
    try:
        found = pattern.search(path.read_text(encoding="utf-8"))
    except OSError:
        return []
    return [float(found[1])] if found else []


def _range(values: list[float]) -> str:
    return (
        f"{min(values):.1f} to {max(values):.1f}, {sum(values) / len(values):.1f} on average" if values else "unknown"
    )

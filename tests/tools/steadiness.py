# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make steady TESTS=…`: tests on a testbed many times, half of them beside busy loops, before the gate gets them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tools import workspace as workspaces
from tools.report import clock
from tools.stacks import Stack

BUSY_LOOPS = 2


def steady(stack: Stack, tests: Sequence[str], times: int) -> bool:
    """Run the tests so many times, each on a new testbed; whether all of them passed each time. Raises ToolsError."""
    workspace = workspaces.prepare(stack)
    variables = {**workspace.variables(), "PYTHONPATH": str(workspace.stack.tree)}
    rows, failures = [], 0
    for turn in range(times):
        busy = turn >= times // 2
        command = workspace.command("python", "-m", "pytest", *tests)
        began = time.monotonic()
        with loops(BUSY_LOOPS if busy else 0):
            code = subprocess.run(command.argv, cwd=command.cwd, env=variables, check=False).returncode
        failures += bool(code)
        where = "beside busy loops" if busy else "by itself"
        took, result = clock(time.monotonic() - began), "FAILED" if code else "passed"
        rows.append(f"turn {turn + 1:2} {where:18} {took:>6}  {result}")
        print(f"\n{rows[-1]}\n", flush=True)
    print("", *rows, f"\n{times - failures} passed, {failures} failed", sep="\n", flush=True)
    return failures == 0


@contextmanager
def loops(number: int) -> Iterator[None]:
    """Processes that take what processor time they get."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _each in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()

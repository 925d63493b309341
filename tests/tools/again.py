# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.again WORDS…`: pytest with these words; a test that failed gets a second try by itself.

A test that passes then is unsteady: the run stays green, says so in its last lines and keeps the first try's words.
Each is a defect that somebody has to understand; with three the run is red, as it is for a test that fails twice.
Who ends it, as at its limit, ends pytest, and is still told what had failed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from tools.report import FAILED, UNSTEADY, told
from tools.stacks import REPOSITORY

MOST_UNSTEADY = 2

Failures = dict[str, list[str]]


def main(words: Sequence[str]) -> int:
    code, failed = attempt(words)
    if code == 0:
        return 0
    if not failed or code != 1 or len(failed) > MOST_UNSTEADY:
        ended = [] if code == 1 and failed else [f"{FAILED} pytest ended with exit code {code}"]
        # A run that was ended has not ended its last line.
        print("", *told(FAILED, failed), *ended, sep="\n")
        return code
    twice = {}
    for name, why in failed.items():
        again = attempt([name])[0]
        if again < 0:  # ended, as the time is over
            print("", *told(FAILED, failed), sep="\n")
            return again
        if again:
            twice[name] = why
    once = {name: ["first failed with", *why] for name, why in failed.items() if name not in twice}
    print("\n".join((*told(FAILED, twice), *told(UNSTEADY, once))))
    return 1 if twice else 0


def attempt(words: Sequence[str]) -> tuple[int, Failures]:
    """Run pytest; its exit code and what failed. If on a testbed then on one of its own, as each process has one."""
    with tempfile.TemporaryDirectory(prefix="failures-") as folder:
        path = Path(folder) / "failures.json"
        command = [sys.executable, "-m", "pytest", *words, f"--failures={path}"]
        with subprocess.Popen(command, cwd=REPOSITORY) as process, _ended_with(process):
            code = process.wait()
        failed: Failures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return code, failed


@contextlib.contextmanager
def _ended_with(process: subprocess.Popen[bytes]) -> Generator[None]:
    """Who is told to end ends the program, and goes on to tell how that was."""
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: process.terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

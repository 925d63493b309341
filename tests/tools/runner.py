# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run parts, show what they say as they say it, and sum up at the end."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tools import workspace as workspaces
from tools.environment import MissingPythonError
from tools.parts import PARTS, Job, Scope
from tools.stacks import REPOSITORY, Stack, ToolsError
from tools.workspace import Command, Workspace

SIDE_BY_SIDE = 2
REPEATED_LINES = 80
# What keeps programs from colours, which only a terminal shows.
COLOURLESS = ("NO_COLOR", "ANSIBLE_NOCOLOR")


@dataclass(frozen=True)
class Outcome:
    """How a part ended. `missing`: why it could not be started; `tail`: the last lines of each program that failed."""

    title: str
    seconds: float = 0.0
    missing: str = ""
    tail: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.missing and not self.tail


def run(wanted: Sequence[Job]) -> bool:
    """Run the jobs and print the summary; whether all went well.

    Parts that need the machine for themselves come last, one after the other; the rest runs side by side.
    """
    started = time.monotonic()
    ready = {stack: _prepare(stack) for stack in dict.fromkeys(job.stack for job in wanted)}

    def attempt(job: Job) -> Outcome:
        return _attempt(job, ready[job.stack])

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        outcomes = list(pool.map(attempt, (job for job in wanted if not job.part.alone)))
    outcomes += [attempt(job) for job in wanted if job.part.alone]
    return _report(outcomes, time.monotonic() - started)


def show(name: str, stack: Stack) -> bool:
    """Run a part with its output as it is, for a person who watches; whether all went well. Raises ToolsError."""
    workspace = workspaces.prepare(stack)
    variables = workspace.variables()
    if sys.stdout.isatty():
        variables = {key: value for key, value in variables.items() if key not in COLOURLESS}
    commands = PARTS[name].commands(workspace, Scope.ALL)
    codes = [
        subprocess.run(command.argv, cwd=command.cwd, env={**variables, **command.variables}, check=False).returncode
        for command in commands
    ]
    return not any(codes)


def _prepare(stack: Stack) -> Workspace | str:
    """The workspace, or why this machine can have none."""
    try:
        return workspaces.prepare(stack)
    except MissingPythonError as error:
        return str(error)


def _attempt(job: Job, workspace: Workspace | str) -> Outcome:
    """Run all programs of a part, also after one has failed, so that one run shows everything there is to mend."""
    title = f"{job.part.name} {job.stack.name}"
    if isinstance(workspace, str):
        return Outcome(title, missing=workspace)
    _say(title, f"begins: {job.part.summary}")
    started, tail = time.monotonic(), []
    try:
        for command in job.part.commands(workspace, job.scope):
            tail += _execute(title, command, workspace)
    except (ToolsError, OSError, subprocess.SubprocessError) as error:
        tail.append(f"{title} could not run: {error}")
    outcome = Outcome(title, time.monotonic() - started, tail=tuple(tail))
    _say(title, f"{'passed' if outcome.passed else 'FAILED'} after {_clock(outcome.seconds)}")
    return outcome


def _execute(title: str, command: Command, workspace: Workspace) -> list[str]:
    """Run one program and show its lines under the part's title; its last lines when it failed, else nothing."""
    words = shlex.join(str(word) for word in command.argv)
    words = words.replace(f"{workspace.venv}/bin/", "").replace(f"{REPOSITORY}/", "")
    _say(title, f"$ {words}")
    variables = {**workspace.variables(), **command.variables}
    last: deque[str] = deque(maxlen=REPEATED_LINES)
    with subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            last.append(line.rstrip())
            _say(title, line.rstrip())
    return [f"$ {words}", *last, f"exit code {process.returncode}"] if process.returncode else []


def _report(outcomes: Sequence[Outcome], seconds: float) -> bool:
    """Print failures once more, the table, and the count as the last line. In CI a part that cannot run has failed."""
    in_ci = os.environ.get("CI", "").lower() in ("1", "true", "yes")
    for outcome in outcomes:
        if outcome.tail:
            print(f"\n===== {outcome.title}: the last lines of what failed =====", *outcome.tail, sep="\n")
    print(f"\n{'part':<18} {'result':<8} {'time':>6}")
    for outcome in outcomes:
        result = "MISSING" if outcome.missing else "passed" if outcome.passed else "FAILED"
        print(f"{outcome.title:<18} {result:<8} {_clock(outcome.seconds):>6}  {outcome.missing}".rstrip())
    print(f"{'all':<18} {'':<8} {_clock(seconds):>6}")
    missing = sum(bool(outcome.missing) for outcome in outcomes)
    passed = sum(outcome.passed for outcome in outcomes)
    failed = len(outcomes) - passed - (0 if in_ci else missing)
    if missing:
        consequence = "which fails a CI run" if in_ci else "so that stack is NOT proved; CI would fail"
        print(f"\n!!! {missing} part(s) could not run on this machine, {consequence}. !!!")
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return failed == 0


def _say(title: str, text: str) -> None:
    print(f"[{title}] {text}", flush=True)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

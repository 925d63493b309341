# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run parts, show what they say as they say it, and hand all that a reader needs to the report at the end."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Timer

from testbed import runs
from tools import machine, report
from tools import workspace as workspaces
from tools.environment import MissingPythonError
from tools.parts import PARTS, Job, Scope
from tools.report import Outcome, Words, clock
from tools.stacks import REPOSITORY, Stack, ToolsError
from tools.workspace import Command, Workspace

SIDE_BY_SIDE = 2
# Seconds after which a program is killed that was told to end: pytest and Molecule take down their testbeds.
_GRACE = 5.0
# What tells a run to end: by its supervisor, by whoever started it, and as the terminal is closed.
_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What keeps programs from colours, which only a terminal shows.
COLOURLESS = ("NO_COLOR", "ANSIBLE_NOCOLOR")


def run(wanted: Sequence[Job]) -> bool:
    """Run the jobs and print the report; whether all went well.

    What the others need comes first, and parts on a testbed last; both these and the others run side by side.
    """
    started = time.monotonic()
    ready = {stack: _prepare(stack) for stack in dict.fromkeys(job.stack for job in wanted)}
    programs = _Programs()

    def attempt(job: Job) -> Outcome:
        return _attempt(job, ready[job.stack], programs)

    with machine.watched() as seen, ThreadPoolExecutor(SIDE_BY_SIDE) as pool, programs.ended_with_this():
        outcomes = [attempt(job) for job in wanted if job.part.first]
        outcomes += pool.map(attempt, [job for job in wanted if not (job.part.first or job.part.last)])
        outcomes += pool.map(attempt, [job for job in wanted if job.part.last])
    return report.show(outcomes, time.monotonic() - started, seen.told())


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


class _Programs:
    """Those that run, each with what it has started in a session of its own, where nobody else ends them."""

    def __init__(self) -> None:
        self._lock, self._groups, self._stop = Lock(), set[int](), Event()

    def check(self) -> None:
        """Raises ToolsError if no program is to run any more."""
        if self._stop.is_set():
            raise ToolsError("it was interrupted")

    @contextlib.contextmanager
    def running(self, process: subprocess.Popen[str]) -> Generator[None]:
        """One that may have begun when all were ended. Raises as `check`."""
        with self._lock:
            self._groups.add(process.pid)
        try:
            self.check()
            yield
        except BaseException:
            _end(process.pid)
            raise
        finally:
            with self._lock:
                self._groups.discard(process.pid)

    @contextlib.contextmanager
    def ended_with_this(self) -> Generator[None]:
        """Whoever is interrupted, told to end, or left alone, ends them all, and begins no others.

        But not by what is to be ignored, as with nohup. Raises KeyboardInterrupt.
        """
        heard = [number for number in _TO_END if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, signal.default_int_handler) for number in heard}
        try:
            yield
        except KeyboardInterrupt:
            self._stop.set()
            with self._lock:
                groups = list(self._groups)
            with ThreadPoolExecutor() as pool:
                list(pool.map(_end, groups))
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _attempt(job: Job, workspace: Workspace | str, programs: _Programs) -> Outcome:
    """Run all programs of a part, also after one has failed, so that one run shows everything there is to mend."""
    title = f"{job.part.name} {job.stack.name}"
    if isinstance(workspace, str):
        return Outcome(title, missing=workspace)
    _say(title, f"begins: {job.part.summary}")
    started, ended = time.monotonic(), list[Words]()
    limit = job.part.limit * 60
    try:
        for command in job.part.commands(workspace, job.scope):
            ended.append(_execute(title, command, workspace, limit, programs))
    except (ToolsError, OSError, subprocess.SubprocessError) as error:
        ended.append(Words(f"{title} could not run: {error}", failed=True))
    outcome = Outcome(title, time.monotonic() - started, programs=tuple(ended))
    _say(title, f"{'passed' if outcome.passed else 'FAILED'} after {clock(outcome.seconds)}")
    return outcome


def _execute(title: str, command: Command, workspace: Workspace, limit: float, programs: _Programs) -> Words:
    """Run one program and show its lines under the part's title; what of them is worth repeating."""
    programs.check()
    words = shlex.join(str(word) for word in command.argv)
    words = words.replace(f"{workspace.venv}/bin/", "").replace(f"{REPOSITORY}/", "")
    _say(title, f"$ {words}")
    variables = {**workspace.variables(), runs.VARIABLE: runs.name_of_this(), **command.variables}
    said: deque[str] = deque(maxlen=report.KEPT_LINES)
    worth: list[str] = []
    with (
        subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that all of it can be ended at its limit
        ) as process,
        programs.running(process),
    ):
        late = Timer(limit, _end, [process.pid, worth, f"{words} was ended after {clock(limit)}, as it seemed to hang"])
        late.daemon = True
        late.start()
        try:
            for line in process.stdout or ():
                said.append(line.rstrip())
                if line.startswith(report.REPEATED):
                    worth.append(line.rstrip())
                _say(title, line.rstrip())
        finally:
            late.cancel()
    return Words(f"$ {words}", bool(process.returncode), process.returncode, tuple(said), tuple(worth))


def _end(group: int, worth: list[str] | None = None, why: str = "") -> None:
    """End a program and all that it has started."""
    if worth is not None:
        worth.append(f"{report.FAILED} {why}")
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
    time.sleep(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _say(title: str, text: str) -> None:
    print(f"[{title}] {text}", flush=True)

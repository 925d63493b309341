# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make test-all` runs everything, the gate one of everything; both show what failed, and cannot pass in silence."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import parts, runner, searching, workspace
from tools.environment import MissingPythonError
from tools.interpreters import Interpreter
from tools.parts import EVERYTHING, GATE, PARTS, Job, Part, Scope
from tools.stacks import MAIN, NEXT, Stack
from tools.workspace import Command, Workspace


def python(*programs: str) -> Part:
    """A part that runs Python programs."""

    def commands(place: Workspace, _scope: Scope) -> Iterator[Command]:
        for program in programs:
            yield place.command("python", "-c", program)

    return Part("part", "", commands)


@pytest.fixture(autouse=True)
def stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main stack is the one that runs this test; for the next one the machine has no Python."""

    def prepare(stack: Stack) -> Workspace:
        if stack is NEXT:
            raise MissingPythonError("no Python 3.13 was found")
        return Workspace(stack, Interpreter(Path(sys.executable), "3"), Path(sys.prefix), Path())

    monkeypatch.setattr(workspace, "prepare", prepare)
    monkeypatch.delenv("CI", raising=False)


def test_a_failure_is_shown_again_and_fails_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = python("print('why'); raise SystemExit(3)", "print('still runs')")
    good = python("print('fine')")
    assert runner.run([Job(bad, MAIN), Job(good, MAIN)]) is False
    lines = capsys.readouterr().out.splitlines()
    assert "[part 2.19] still runs" in lines
    assert lines[lines.index("why") :][:2] == ["why", "exit code 3"]
    assert lines[-1] == "1 passed, 1 failed"


def test_a_program_that_cannot_be_started_fails_its_part(capsys: pytest.CaptureFixture[str]) -> None:
    bad = Part("part", "", lambda place, _scope: [place.command("no-such-program")])
    assert runner.run([Job(bad, MAIN)]) is False
    assert "part 2.19 could not run" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_is_told_to_end_ends_what_runs_and_begins_nothing_else(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "_GRACE", 0.1)
    begun = tmp_path / "begun"
    sleeper = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    killer = (
        f"import os, pathlib, time\nwhile not pathlib.Path({str(begun)!r}).exists():\n    time.sleep(0.01)\n"
        f"os.kill(os.getppid(), {number.value})\ntime.sleep(600)"
    )
    before = signal.signal(number, signal.SIG_DFL)  # this run may be one that is to ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.run(
                [Job(python(sleeper, "print('never')"), MAIN), Job(python(killer), MAIN), Job(python("print(7)"), MAIN)]
            )
    finally:
        signal.signal(number, before)
    said = capsys.readouterr().out
    assert {word: word in said for word in ("never", "print(7)")} == {"never": False, "print(7)": False}


def test_a_run_that_is_to_outlast_its_terminal_does(capsys: pytest.CaptureFixture[str]) -> None:
    """As with nohup."""
    hang_up = f"import os, time; os.kill(os.getppid(), {signal.SIGHUP.value}); time.sleep(0.2); print('goes on')"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert runner.run([Job(python(hang_up), MAIN)])
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "[part 2.19] goes on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ci", "passes", "last"), [("", True, "1 passed, 0 failed"), ("true", False, "1 passed, 1 failed")]
)
def test_a_missing_python_is_loud_and_fails_in_ci(
    ci: str, passes: bool, last: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    good = python("")
    assert runner.run([Job(good, MAIN), Job(good, NEXT)]) is passes
    out = capsys.readouterr().out
    assert "no Python 3.13 was found" in out
    assert "!!! 1 part(s) could not run on this machine" in out
    assert out.splitlines()[-1] == last


def test_nothing_of_the_persons_configuration_reaches_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KUBECONFIG", "K8S_AUTH_HOST", "ANSIBLE_CONFIG"):
        monkeypatch.setenv(name, "personal")
    show = python("import os; print(sorted(v for v in os.environ.values() if v == 'personal'))")
    assert runner.run([Job(show, MAIN)])
    assert "[part 2.19] []" in capsys.readouterr().out


def test_a_part_that_is_shown_speaks_for_itself(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PARTS, "good", python("print('as it is')"))
    monkeypatch.setitem(PARTS, "bad", python("raise SystemExit(3)", "print('still runs')"))
    assert runner.show("good", MAIN)
    assert capfd.readouterr().out == "as it is\n"
    assert not runner.show("bad", MAIN)
    assert capfd.readouterr().out == "still runs\n"


def test_every_part_runs_and_the_next_stack_repeats_what_depends_on_it() -> None:
    assert {job.part.name for job in EVERYTHING if job.stack is MAIN} == set(parts.PARTS)
    assert {job.part.name for job in EVERYTHING if job.stack is NEXT} == {"unit", "sanity", "molecule", "demo"}
    assert {job.scope for job in EVERYTHING} == {Scope.ALL}


def test_the_gate_has_one_of_everything() -> None:
    assert {job.part.name for job in GATE} == set(parts.PARTS)
    assert {job.scope for job in GATE} == {Scope.GATE}


def words(part: str, stack: Stack, scope: Scope) -> list[list[str]]:
    place = workspace.prepare(MAIN)
    place = Workspace(stack, place.python, place.venv, place.wheels)
    return [[str(word) for word in command.argv] for command in PARTS[part].commands(place, scope)]


def test_the_gate_chooses_from_long_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTOPS_TESTBED", raising=False)
    assert words("integration", MAIN, Scope.GATE)[0][3:6] == ["tests/integration", "-m", "gate"]
    whole = words("integration", MAIN, Scope.ALL)[0]
    assert ("-m" in whole[3:], whole[4:6]) == (False, ["-n", parts.TESTBEDS])
    monkeypatch.setenv("VIRTOPS_TESTBED", "mine")
    assert "-n" not in words("integration", MAIN, Scope.ALL)[0], "two tests would share it"
    assert words("molecule", MAIN, Scope.ALL)[0][2:] == ["--all"]
    assert "--all" not in words("molecule", MAIN, Scope.GATE)[0]


def test_a_search_goes_on_for_its_time_and_tells_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def searches(place: Workspace, seed: int) -> Iterator[Command]:
        yield place.command("python", "-c", f"raise SystemExit({seed} == 8)")

    monkeypatch.setattr(searching, "searches", searches)
    assert searching.search(MAIN, seconds=0, seed=7)
    assert capfd.readouterr().out.splitlines()[-1] == "1 searches, 0 of them found something"
    assert not searching.search(MAIN, seconds=0, seed=8)
    assert capfd.readouterr().out.splitlines()[-1] == "exit code 1: python -c raise SystemExit(8 == 8)"

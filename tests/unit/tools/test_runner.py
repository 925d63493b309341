# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make test` runs everything, shows what failed, and cannot pass in silence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import parts, runner, workspace
from tools.environment import MissingPythonError
from tools.interpreters import Interpreter
from tools.parts import EVERYTHING, PARTS, Part
from tools.stacks import MAIN, NEXT, Stack
from tools.workspace import Command, Workspace


def python(*programs: str) -> Part:
    """A part that runs Python programs."""

    def commands(place: Workspace) -> Iterator[Command]:
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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PARTS, "bad", python("print('why'); raise SystemExit(3)", "print('still runs')"))
    monkeypatch.setitem(PARTS, "good", python("print('fine')"))
    assert runner.run([("bad", MAIN), ("good", MAIN)]) is False
    lines = capsys.readouterr().out.splitlines()
    assert "[part 2.19] still runs" in lines
    assert lines[lines.index("why") :][:2] == ["why", "exit code 3"]
    assert lines[-1] == "1 passed, 1 failed"


def test_a_program_that_cannot_be_started_fails_its_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PARTS, "bad", Part("part", "", lambda place: [place.command("no-such-program")]))
    assert runner.run([("bad", MAIN)]) is False
    assert "part 2.19 could not run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ci", "passes", "last"), [("", True, "1 passed, 0 failed"), ("true", False, "1 passed, 1 failed")]
)
def test_a_missing_python_is_loud_and_fails_in_ci(
    ci: str, passes: bool, last: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setitem(PARTS, "good", python(""))
    assert runner.run([("good", MAIN), ("good", NEXT)]) is passes
    out = capsys.readouterr().out
    assert "no Python 3.13 was found" in out
    assert "!!! 1 part(s) could not run on this machine" in out
    assert out.splitlines()[-1] == last


def test_nothing_of_the_persons_configuration_reaches_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KUBECONFIG", "K8S_AUTH_HOST", "ANSIBLE_CONFIG"):
        monkeypatch.setenv(name, "personal")
    monkeypatch.setitem(
        PARTS, "show", python("import os; print(sorted(v for v in os.environ.values() if v == 'personal'))")
    )
    assert runner.run([("show", MAIN)])
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
    assert {name for name, stack in EVERYTHING if stack is MAIN} == set(parts.PARTS)
    assert {name for name, stack in EVERYTHING if stack is NEXT} == {"unit", "sanity", "molecule", "demo"}

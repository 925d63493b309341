# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test that fails in one turn of many is told, and so is whether the machine was busy then."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tools import steadiness, workspace
from tools.interpreters import Interpreter
from tools.stacks import MAIN, Stack
from tools.workspace import Workspace


@pytest.fixture(autouse=True)
def _this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(stack: Stack) -> Workspace:
        return Workspace(stack, Interpreter(Path(sys.executable), "3"), Path(sys.prefix), Path())

    monkeypatch.setattr(workspace, "prepare", prepare)


@pytest.mark.slow
def test_a_failure_in_one_turn_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    left = tmp_path / "left"
    left.write_text("3")
    test = tmp_path / "test_it.py"
    test.write_text(
        "from pathlib import Path\n"
        "def test_it():\n"
        f"    left = Path({str(left)!r})\n"
        "    left.write_text(str(int(left.read_text()) - 1))\n"
        "    assert left.read_text() != '0'\n"
    )
    words = [str(test), "-p", "no:cacheprovider"]
    assert not steadiness.steady(MAIN, words, times=4)
    lines = capfd.readouterr().out.splitlines()[-6:]
    assert [line.split()[-1] for line in lines[:4]] == ["passed", "passed", "FAILED", "passed"]
    assert ["beside busy loops" in line for line in lines[:4]] == [False, False, True, True]
    assert lines[-1] == "3 passed, 1 failed"


def test_busy_loops_end() -> None:
    with steadiness.loops(1):
        (loop,) = (child for child in psutil.Process().children() if "while True" in " ".join(child.cmdline()))
    assert not loop.is_running()

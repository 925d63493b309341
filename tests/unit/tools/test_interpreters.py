# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python is found where it works, past the dead names that version managers leave on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import interpreters
from tools.interpreters import Interpreter

LAUNCHER = Path(__file__).resolve().parents[2] / "tools/python"


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH and version manager hold only what the test puts there."""
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in ("shims", "one", "two")))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_a_dead_name_is_passed_over(machine: Path) -> None:
    script(machine / "one/python3.99", "exit 127")
    alive = script(machine / "two/python3.99", "echo 3.99")
    assert interpreters.find(["3.99"]) == Interpreter(alive, "3.99")


def test_the_preferred_version_wins(machine: Path) -> None:
    script(machine / "one/python3.98", "echo 3.98")
    alive = script(machine / "two/python3.99", "echo 3.99")
    assert interpreters.find(["3.99", "3.98"]) == Interpreter(alive, "3.99")


def test_a_name_that_lies_about_its_version_is_passed_over(machine: Path) -> None:
    script(machine / "one/python3.99", "echo 3.98")
    assert interpreters.find(["3.99"]) is None


def test_the_version_manager_is_asked_past_its_shims(machine: Path) -> None:
    script(machine / "shims/python3.99", "echo 3.99")
    kept = script(machine / "pyenv/versions/3.99.1/bin/python3.99", "echo 3.99")
    assert interpreters.find(["3.99"]) == Interpreter(kept, "3.99")
    assert "shims" not in interpreters.clean_path()


def test_the_launcher_runs_the_first_python_that_works(machine: Path) -> None:
    script(machine / "one/python3", "exit 127")
    (machine / "two").mkdir()
    (machine / "two/python3.12").symlink_to(sys.executable)
    said = launch("-c", "print('works')")
    assert (said.returncode, said.stdout.strip()) == (0, "works")


def test_the_launcher_says_what_is_missing(machine: Path) -> None:
    script(machine / "one/python3", "exit 127")
    said = launch("-c", "print('works')")
    assert said.returncode == 1
    assert "No Python >= 3.11 was found on PATH" in said.stderr


def launch(*words: str) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("sh", path=os.defpath)
    assert shell
    return subprocess.run([shell, LAUNCHER, *words], capture_output=True, text=True, check=False)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments are made once for each state of their lock file, and never left half made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment
from tools.environment import MissingPythonError
from tools.interpreters import Interpreter
from tools.stacks import Stack, ToolsError

PYTHON = Interpreter(Path(sys.executable), f"{sys.version_info.major}.{sys.version_info.minor}")


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file without packages, and a cache of the test's own."""
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "lock.txt"
    path.write_text("# no packages\n")
    return path


@pytest.mark.slow
def test_an_environment_is_made_once(lock: Path) -> None:
    first = environment.venv("test", PYTHON, lock)
    assert subprocess.run([first / "bin/python", "-c", "import pip"], check=False).returncode == 0
    mark = first / "mark"
    mark.touch()
    assert environment.venv("test", PYTHON, lock) == first
    assert mark.exists()


@pytest.mark.slow
def test_another_lock_file_makes_another_environment(lock: Path) -> None:
    first = environment.venv("test", PYTHON, lock)
    lock.write_text("# still no packages\n")
    assert environment.venv("test", PYTHON, lock) != first


@pytest.mark.slow
def test_what_failed_half_way_is_made_anew(lock: Path) -> None:
    lock.write_text("./no-such-file.whl\n")
    with pytest.raises(ToolsError, match="exit code 1"):
        environment.venv("test", PYTHON, lock)
    (half,) = (path for path in (lock.parent / "cache/venv").iterdir() if path.is_dir())
    (half / "mark").touch()
    with pytest.raises(ToolsError, match="exit code 1"):
        environment.venv("test", PYTHON, lock)
    assert not (half / "mark").exists()


def test_a_missing_python_is_named() -> None:
    with pytest.raises(MissingPythonError, match=r"no Python 9\.8 or 9\.9 with venv and ensurepip was found"):
        environment.interpreter(Stack("9", pythons=("9.8", "9.9"), pip=""))

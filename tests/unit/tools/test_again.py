# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test on a testbed gets a second try by itself, which is said; twice or too often is red."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools import again
from tools.stacks import REPOSITORY

CONFTEST = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
from tools.failures import add_options as pytest_addoption, pytest_configure, pytest_terminal_summary
"""
# Fails as often as the file says.
TEST = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", {names})
def test_it(name):
    left = Path({folder!r}) / name
    number = int(left.read_text())
    left.write_text(str(max(0, number - 1)))
    assert number == 0, f"{{number}} left of {{name}}"
"""
HANGS = """
import time

def test_fails():
    raise AssertionError("before the limit")

def test_hangs():
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _without_options_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def attempted(folder: Path, **failures: int) -> int:
    for name, number in failures.items():
        (folder / name).write_text(str(number))
    test = folder / "test_it.py"
    test.write_text(TEST.format(names=sorted(failures), folder=str(folder)))
    return again.main([str(test), "-p", "no:cacheprovider"])


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the hooks that all tests have, in the place of the repository."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    monkeypatch.setattr(again, "REPOSITORY", tmp_path)
    return tmp_path


def test_all_is_well(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert attempted(tests, a=0, b=0) == 0
    assert "unsteady" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_test_that_passes_then_is_unsteady(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert attempted(tests, a=1, b=0) == 0
    out = capfd.readouterr().out.splitlines()
    (line,) = (line for line in out if line.startswith("unsteady: ") and "::" in line)
    assert line.endswith("test_it.py::test_it[a]")
    assert "unsteady:     AssertionError: 1 left of a" in out


@pytest.mark.slow
def test_a_test_that_fails_twice_is_red(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert attempted(tests, a=2, b=1) == 1
    out = capfd.readouterr().out
    assert "failed:     AssertionError: 2 left of a" in out
    assert "unsteady:     AssertionError: 1 left of b" in out


def test_three_are_red(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert attempted(tests, a=1, b=1, c=1) == 1
    assert capfd.readouterr().out.count("failed:     AssertionError: 1 left of") == 3


@pytest.mark.slow
def test_a_run_that_does_not_begin_is_red(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert again.main([str(tests / "nowhere.py")]) != 0
    assert "failed: pytest ended with exit code 4" in capfd.readouterr().out


@pytest.mark.parametrize("beside", [(), ("-n", "1")], ids=["alone", "by a worker"])
def test_what_failed_before_a_run_was_ended_is_told(tests: Path, beside: tuple[str, ...]) -> None:
    """At its limit a part is ended as a group: pytest has no time for its summary."""
    (tests / "test_it.py").write_text(HANGS)
    script = f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(REPOSITORY / "tests")!r})
        from tools import again
        again.REPOSITORY = Path({str(tests)!r})
        sys.exit(again.main(["test_it.py", "-v", "-s", "-p", "no:cacheprovider", *{beside}]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        out: list[str] = []
        for line in process.stdout or ():
            out.append(line.rstrip())
            if "test_it.py::test_fails" in line and "FAILED" in line:
                os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode not in (0, 1)
    said = out.index("failed: test_it.py::test_fails")
    assert out[said + 1] == "failed:     AssertionError: before the limit"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No check is lost: every test belongs to a part, and there are no fewer of them than there were.

Who takes tests away on purpose lowers the number here, in the same commit and with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools.parts import EVERYTHING, GATE, GATE_SCENARIOS, PARTS
from tools.stacks import MAIN, REPOSITORY

TESTS = REPOSITORY / "tests"
SCENARIOS = REPOSITORY / "extensions/molecule"
# What pytest runs, part by part; `gate`: the chosen few of integration.
FEWEST = {"unit": 2439, "differential": 58, "integration": 325, "gate": 41}


def collected(*words: str) -> tuple[str, ...]:
    """The names of the tests, parametrized ones one by one."""
    paths = os.pathsep.join((str(TESTS), *(path for path in sys.path if path.endswith(f".build/{MAIN.name}"))))
    variables = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", paths), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return tuple(line for line in done.stdout.splitlines() if "::" in line)


@pytest.mark.parametrize("part", ["unit", "differential", "integration"])
def test_no_fewer_tests_than_there_were(part: str) -> None:
    assert part in PARTS
    assert len(collected(f"tests/{part}")) >= FEWEST[part]


def test_the_gate_has_tests_on_a_testbed() -> None:
    assert len(collected("tests/integration", "-m", "gate")) >= FEWEST["gate"]


def test_every_test_file_belongs_to_a_part() -> None:
    homes = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py") if path.is_file()}
    assert homes == {"unit", "differential", "integration"}
    assert homes <= {job.part.name for job in GATE} & {job.part.name for job in EVERYTHING}


def test_scenarios_of_the_gate_exist() -> None:
    existing = {path.parent.name for path in SCENARIOS.glob("*/molecule.yml")}
    assert len(existing) >= 9
    assert {name for names in GATE_SCENARIOS.values() for name in names} <= existing

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No check is lost: every test belongs to a part, and there are no fewer of them than there were."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.census import FEWEST, FEWEST_IN_THE_GATE, check_all, check_chosen
from tools.parts import EVERYTHING, GATE, GATE_SCENARIOS
from tools.stacks import REPOSITORY

TESTS = REPOSITORY / "tests"
SCENARIOS = REPOSITORY / "extensions/molecule"
PARTS = {"unit", "differential", "integration"}


def test_each_part_is_counted() -> None:
    assert {f"tests/{part}" for part in PARTS} == set(FEWEST)
    assert set(FEWEST_IN_THE_GATE) <= set(FEWEST)


@pytest.mark.parametrize("folder", sorted(FEWEST))
def test_fewer_tests_than_there_were_are_not_run(folder: str) -> None:
    check_all([folder], FEWEST[folder])
    with pytest.raises(pytest.UsageError, match=f"{FEWEST[folder] - 1} tests were found in {folder}"):
        check_all([folder], FEWEST[folder] - 1)


def test_a_part_of_a_part_may_be_run() -> None:
    check_all(["tests/unit/tools"], 1)
    check_all(["tests/unit", "tests/integration"], 1)
    check_chosen(["tests/integration"], "not gate", 1)


@pytest.mark.parametrize("folder", sorted(FEWEST_IN_THE_GATE))
def test_the_gate_keeps_its_tests(folder: str) -> None:
    check_chosen([folder], "gate", FEWEST_IN_THE_GATE[folder])
    with pytest.raises(pytest.UsageError, match="tests marked gate"):
        check_chosen([folder], "gate", FEWEST_IN_THE_GATE[folder] - 1)


def test_pytest_counts() -> None:
    """As the parts run it: `differential` has its tests, and none of them is of the gate's chosen few."""
    folder = "tests/differential"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", folder]
    done = subprocess.run([*command, "--deselect", folder], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert f"({FEWEST[folder]} deselected)" in done.stdout, done.stdout + done.stderr
    done = subprocess.run(
        [*command, "--ignore-glob", "*/test_*.py"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert f"0 tests were found in {folder}" in done.stdout + done.stderr


def test_every_test_file_belongs_to_a_part() -> None:
    homes = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py") if path.is_file()}
    assert homes == PARTS
    assert homes <= {job.part.name for job in GATE} & {job.part.name for job in EVERYTHING}


def test_scenarios_of_the_gate_exist() -> None:
    existing = {path.parent.name for path in SCENARIOS.glob("*/molecule.yml")}
    assert len(existing) >= 9
    assert {name for names in GATE_SCENARIOS.values() for name in names} <= existing

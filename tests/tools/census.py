# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No check is lost: a run of a whole part stops when there are fewer tests than there were.

Counted where pytest has collected them anyway. Who takes tests away on purpose lowers the number here, in the same
commit and with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

# By the folder that pytest is asked to run, parametrized tests one by one.
FEWEST = {"tests/unit": 7462, "tests/differential": 71, "tests/integration": 608}
# What is left of them with `-m gate`.
FEWEST_IN_THE_GATE = {"tests/integration": 69}


def check_all(asked: Sequence[str], tests: int) -> None:
    """Before any test is left out. `asked`: what pytest was asked to run."""
    _check(FEWEST, asked, tests, "tests")


def check_chosen(asked: Sequence[str], mark: str, tests: int) -> None:
    """Of those that will run. `mark`: the expression that chose them."""
    if mark == "gate":
        _check(FEWEST_IN_THE_GATE, asked, tests, "tests marked gate")


def _check(fewest: dict[str, int], asked: Sequence[str], tests: int, what: str) -> None:
    for folder in asked:
        if len(asked) == 1 and tests < fewest.get(folder, 0):
            raise pytest.UsageError(
                f"{tests} {what} were found in {folder}, {fewest[folder]} there were; "
                "if some were taken away on purpose, lower the number in tests/tools/census.py"
            )

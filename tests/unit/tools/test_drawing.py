# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is drawn for a test is the same, whichever tests are run beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import run_plan

TESTS = Path(__file__).parents[2]
DRAWING = """
import conftest
{beside}
from hypothesis import given, strategies

@given(strategies.lists(strategies.integers() | strategies.text()))
def draw(values):
    print(values)

draw()
"""


def drawn(beside: str) -> str:
    script, environment = (
        DRAWING.format(beside=beside),
        {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    return subprocess.run(
        [sys.executable, "-c", script], cwd=TESTS, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_it_does_not_depend_on_what_is_imported() -> None:
    alone = drawn("")
    assert alone.count("\n") > 50
    assert drawn(f"from {run_plan.__name__} import PlanOptions") == alone

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role rebalance tells when it has moved what it was to move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

TASKS = Path(__file__).parents[3] / "roles/rebalance/tasks/main.yml"


def deviation(name: str, why: str) -> dict[str, Any]:
    told = {"planned": "comes back on n1", "done": "came back on n4", "why": why, "assumed": False}
    return {"kind": "pod", "namespace": "shop", "name": name, **told}


def told(folder: Path, result: dict[str, Any]) -> str:
    task = next(task for task in yaml.safe_load(TASKS.read_text()) if "not come true" in task["name"])
    content = {"hosts": "localhost", "gather_facts": False, "vars": {"rebalance_result": result}, "tasks": [task]}
    output, status = play(folder, yaml.safe_dump([content]))
    assert status == 0, output
    return output


def test_what_has_not_come_true_is_told_with_its_reason(tmp_path: Path) -> None:
    result = {"deviations": [deviation("cache-1", "n1 is cordoned"), deviation("cache-2", "")]}
    output = told(tmp_path, result)
    assert "not as planned: pod shop/cache-1 comes back on n1; instead: came back on n4, as n1 is cordoned" in output
    assert 'not as planned: pod shop/cache-2 comes back on n1; instead: came back on n4"' in output


@pytest.mark.parametrize(
    "result", [{"deviations": []}, {"skipped": True, "changed": False}], ids=["as planned", "none"]
)
def test_nothing_is_told_where_all_came_true_or_nothing_moved(tmp_path: Path, result: dict[str, Any]) -> None:
    assert "not as planned" not in told(tmp_path, result)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run, made of the variables of its hosts; all that it may say is tested where that is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play
from unit.plugins.module_utils._report.drained import CUT, MOVE, STARTED

pytestmark = pytest.mark.playbook

ROOT = Path(__file__).parents[3]


def report(folder: Path, batches: list[dict[str, dict[str, Any]]], *options: str) -> list[str]:
    """The lines. batches: the variables of their hosts, of which drain_result is as modules return it, no template."""
    hosts = {name: known for batch in batches for name, known in batch.items()}
    results = {name: known.pop("drain_result") for name, known in hosts.items() if "drain_result" in known}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (folder / "results.json").write_text(json.dumps(results))
    result = "{{ (lookup('ansible.builtin.file', '%s') | from_json)[inventory_hostname] }}" % (folder / "results.json")
    plan = {"plan_maintenance_plan": {"run": "kernel", "batches": [*map(list, batches)]}}
    task = yaml.safe_load((ROOT / "playbooks/steps/report.yml").read_text())[0]
    kept = {"dest": str(folder / "report"), "content": "{{ told.msg | to_json }}", "mode": "0600"}
    plays: list[dict[str, Any]] = [
        {"hosts": sorted(results), "tasks": [{"ansible.builtin.set_fact": {"drain_result": result}}]},
        {
            "hosts": "localhost",
            "vars": plan,
            "tasks": [{**task, "register": "told"}, {"ansible.builtin.copy": kept, "check_mode": False}],
        },
    ]
    content = yaml.safe_dump([{**each, "gather_facts": False, "connection": "local"} for each in plays])
    said, status = play(folder, content, "-i", str(folder / "hosts.json"), *options)
    assert status == 0, said
    lines: list[str] = json.loads((folder / "report").read_text())
    return lines


def test_a_run_that_has_failed(tmp_path: Path) -> None:
    """With the batch's doing for a node, a name of its own, and words that nobody takes for a template."""
    moved = {**MOVE, "node": "n3", "seconds": 6}
    hostile = {**MOVE, "name": "old", "outcome": "failed", "failure_reason": "{{ 1 + 1 }}\nn9: done"}
    first: dict[str, dict[str, Any]] = {
        "worker": {"_drain_name": "n1", "drain_result": {"failed": True}, "rolling_maintenance_failure": "it was lost"},
        "mate": {
            "drain_result": {"moves": [moved, hostile], "interrupted": [CUT], "as_planned": 2, "deviations": []},
            "uncordon_started": {"started": [STARTED]},
            "uncordon_given_back": True,
            "uncordon_done": True,
        },
    }
    assert report(tmp_path, [first, {"late": {}}]) == [
        "Run kernel:",
        "worker: failed; VMs: 1 failed, 1 migrated, 1 stopped",
        "     VM  shop/old failed, {{ 1 + 1 }} n9: done",
        "     VM  shop/db stopped",
        "mate: done; VMs: 1 started again",
        "late: not begun",
        "Of 2 virtual machines and pods 2 have left as planned.",
        "Where each virtual machine and pod went is told only by a run that is started with -v or --diff.",
    ]


@pytest.mark.parametrize("options", [["-v"], ["--diff"], ["--check", "--diff"]], ids="".join)
def test_each_is_named_to_who_asks_for_it(tmp_path: Path, options: list[str]) -> None:
    drained = {"moves": [{**MOVE, "node": "n3"}], "as_planned": 1, "deviations": []}
    state, verb = ("not begun", "would leave") if "--check" in options else ("done", "have left")
    assert report(tmp_path, [{"n1": {"uncordon_done": True, "drain_result": drained}}], *options) == [
        "Run kernel:",
        f"n1: {state}; VMs: 1 migrated",
        "     VM  shop/web -> n3",
        f"Of 1 virtual machines and pods 1 {verb} as planned.",
    ]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is counted of a playbook that a benchmark plays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.controller import cost_of_a_task
from benchmarks.played import DRAIN, Played, memory_of, play

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import busy_run


def test_memory_is_that_of_all_processes_in_a_span_of_time() -> None:
    assert memory_of(os.getpid()) > 1
    played = Played([], [], [], [(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)])
    assert (played.most_memory(), played.most_memory(2.5, 4.0)) == (9.0, 7.0)
    assert played.most_memory(3.5) == 0.0


def test_lines_and_bytes_of_both_outputs_are_counted() -> None:
    assert Played(["é", ""], ["abc"], [], []).printed == (3, 3 + 1 + 4)


@pytest.mark.playbook
def test_only_tasks_that_empty_nodes_are_drains(tmp_path: Path) -> None:
    states = [{}, {"state": "verified"}, {"state": "drained"}, {"state": "restored"}]
    tasks = [{DRAIN: {"name": "n1", "owner": "me", **state}, "when": False} for state in states]
    others = [{"ansible.builtin.file": {"path": "{{ playbook_dir }}", "state": "directory"}}]
    played = play(tmp_path, "tasks", [{"hosts": "localhost", "gather_facts": False, "tasks": tasks + others}], {})
    assert [entry["state"] for entry in played.tasks] == ["", "verified", "drained", "restored", "directory"]
    assert [entry["state"] for entry in played.drains] == ["", "drained"]


@pytest.mark.playbook
def test_a_task_that_is_measured_goes_by_the_plan_of_the_run(tmp_path: Path) -> None:
    authority, api = Authority(tmp_path), busy_run()
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        kubeconfig = tmp_path / "files" / write_kubeconfig(tmp_path, api, authority)
        planning = {
            "kubeconfig": str(kubeconfig),
            "run": "kernel",
            "nodes": ["n1"],
            "path": str(tmp_path / "plan.json"),
        }
        tasks = [{"virtops.kubevirt.maintenance_plan": planning}]
        play(tmp_path, "plan", [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}], {})
        api.requests.clear()
        assert cost_of_a_task(kubeconfig, "n1", tmp_path) > 0
    # The cluster is read once, for all drains, and the rights of a run are not asked for.
    assert sum("limit" in request.query for request in api.asked("nodes")) == 1
    assert not [request for request in api.requests if request.path.endswith("selfsubjectaccessreviews")]

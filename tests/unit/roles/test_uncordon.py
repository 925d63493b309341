# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the role waits."""

from __future__ import annotations

from pathlib import Path

import yaml

from unit.plugins.support.playbooks import Task, run_task

ROLE = Path(__file__).parents[3] / "roles/uncordon"
TIMED = "Begin to count the time"


def test_what_is_repeated_alone_has_all_its_time(tmp_path: Path) -> None:
    """Also on a host whose deadline of the role that has failed before is over."""
    given = {"uncordon_node": "n1", "uncordon_owner": "me", "uncordon_wait_timeout": 6000}
    restore = {"name": "virtops.kubevirt.uncordon", "tasks_from": "restore"}
    failed_before = {"ansible.builtin.set_fact": {"_uncordon_deadline": 1.0}}
    task: Task = {"block": [failed_before, {"ansible.builtin.include_role": restore, "vars": given}]}
    # There is no cluster to start anything in; with -vvv its last task tells what it was given.
    result, _lines = run_task(tmp_path, task, "-vvv", environment={"K8S_AUTH_KUBECONFIG": str(tmp_path / "missing")})
    assert 5000 < int(result["invocation"]["module_args"]["wait_timeout"]) <= 6000


def test_the_time_of_what_is_read_first_counts() -> None:
    names = [task["name"] for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text())]
    assert names.index(TIMED) < names.index("See that all that is to be done is allowed")

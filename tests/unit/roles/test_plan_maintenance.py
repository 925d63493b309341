# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role says of its plan, for plans as the filter makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.virtops.kubevirt.plugins.filter.drain_feasibility import drain_feasibility

from unit.plugins.module_utils._kubevirt.machines import kubevirt
from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.support.templates import evaluate

ROLE = Path(__file__).parents[3] / "roles/plan_maintenance"
TEMPLATE = ROLE / "templates/plan.txt.j2"


def told(folder: Path, *nodes: str, **migrations: Any) -> list[str]:
    """The lines on a run that maintains these nodes one by one; VMs are on `a`."""
    scene = Scene(*map(node, "abc"), kubevirts=[kubevirt(migrations=migrations)])
    for name in ("web-1", "web-2", "web-3"):
        scene.vm(name, "a")
    plan = {
        "run": "kernel",
        "done": [],
        "batches": [[name] for name in nodes],
        "steps": [drain_feasibility(scene.lists, [name]) for name in nodes],
    }
    variables = {"plan_maintenance_plan": plan, "_plan_maintenance_hosts": nodes, "plan_maintenance_batch": 1}
    (text,) = evaluate([f"lookup('ansible.builtin.template', '{TEMPLATE}')"], variables, folder)
    return [line.strip() for line in text.splitlines()]


def test_it_says_how_long_migrations_take(tmp_path: Path) -> None:
    lines = told(tmp_path, "a", "b")
    assert lines[1:3] == ["1. a", "migrations take about 24 s if the guests are idle"]
    assert lines[-1] == "2. b", "nothing migrates"


def test_it_says_that_the_caps_let_none_start(tmp_path: Path) -> None:
    lines = told(tmp_path, "a", parallelOutboundMigrationsPerNode=0)
    assert lines[2] == "migrations never start, as KubeVirt's caps allow none"


def test_it_says_which_migrations_take_too_long(tmp_path: Path) -> None:
    lines = told(tmp_path, "a", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=10)
    assert lines[3] == "VM  shop/web-1 -> b, which KubeVirt would abort as it takes too long"


def test_each_batch_has_a_step_of_its_own(tmp_path: Path) -> None:
    scene = Scene(*map(node, "abc"))
    scene.vm("web-1", "a")
    snapshot = tmp_path / "cluster.json"
    snapshot.write_text(json.dumps(scene.lists))
    variables = {
        **yaml.safe_load((ROLE / "vars/main.yml").read_text()),
        **yaml.safe_load((ROLE / "defaults/main.yml").read_text()),
        "plan_maintenance_nodes": ["host-a", "b", "c"],
        "plan_maintenance_node_names": {"host-a": "a"},
        "plan_maintenance_batch": 2,
        "_plan_maintenance_maintained": {"resources": []},
        "_plan_maintenance_cluster": str(snapshot),
    }
    batches, steps = evaluate(["_plan_maintenance_batches", "_plan_maintenance_steps"], variables, tmp_path)
    assert batches == [["host-a", "b"], ["c"]]
    assert steps == [drain_feasibility(scene.lists, names) for names in (["a", "b"], ["c"])]


def test_what_passes_is_said_and_no_obstacle(tmp_path: Path) -> None:
    scene = Scene(*map(node, "abc"))
    scene.vm("busy", "a", status={"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}})
    scene.vm(
        "fixed", "b", status={"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostModel"}]}
    )
    plan = {
        "run": "kernel",
        "done": [],
        "batches": [["a"], ["b"]],
        "steps": [drain_feasibility(scene.lists, [name]) for name in "ab"],
    }
    variables = {
        **yaml.safe_load((ROLE / "vars/main.yml").read_text()),
        "plan_maintenance_plan": plan,
        "_plan_maintenance_hosts": ["a", "b"],
        "plan_maintenance_batch": 1,
    }
    wanted = [f"lookup('ansible.builtin.template', '{TEMPLATE}')", "_plan_maintenance_obstacles"]
    text, obstacles = evaluate(wanted, variables, tmp_path)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[1:3] == ["1. a: has to wait a while", "VM  shop/busy has to be waited for"]
    assert lines[3:] == ["2. b: cannot be emptied now", "VM  shop/fixed cannot leave"]
    assert len(obstacles) == 1
    assert obstacles[0].startswith("b cannot be drained: VM shop/fixed")

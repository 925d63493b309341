# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain is asked for beside a plan has to be as the plan has it, and is what its own plan is made with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules import maintenance_plan

from testbed.pki import Authority
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, plan_in_force

STOP = [{"policy": "stop"}]


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        yield fake


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Any:
    plan = plan_in_force(run_module, connection, tmp_path)
    return drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)


def test_what_contradicts_a_plan_is_refused(drain: Any, api: RunApi) -> None:
    writes = len(api.writes())
    refused = drain(policies=STOP, avoid=["n3"], delete_emptydir_data=True, force=True, option_prefix="drain_")
    assert refused["error"]["problems"] == [
        'drain_policies is [{"policy": "stop"}], and the plan has []',
        'drain_avoid is ["n3"], and the plan has []',
        "drain_delete_emptydir_data is true, and the plan has false",
        "drain_force is true, and the plan has false",
    ]
    assert len(api.writes()) == writes


def test_what_is_given_as_by_default_contradicts_a_plan_as_well(
    drain: Any, run_module: ModuleRunner, connection: dict[str, Any], tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"policies": STOP, "avoid": ["n3"], "delete_emptydir_data": True, "force": True}
    given: dict[str, Any] = {"run": "kernel", "nodes": ["n1"], "path": str(tmp_path / "asked.json")}
    path = run_module(maintenance_plan.main, **connection, **given, **asked)["plan_path"]
    refused = drain(plan=path, policies=[], avoid=[], delete_emptydir_data=False, force=False)
    assert refused["error"]["problems"] == [
        'policies is [], and the plan has [{"policy": "stop"}]',
        'avoid is [], and the plan has ["n3"]',
        "delete_emptydir_data is false, and the plan has true",
        "force is false, and the plan has true",
    ]
    assert drain(plan=path, **asked)["left"] == []


def test_names_of_nodes_may_come_in_another_order(
    drain: Any, run_module: ModuleRunner, connection: dict[str, Any], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"run": "kernel", "nodes": ["n1"], "path": str(tmp_path / "asked.json")}
    path = run_module(maintenance_plan.main, **connection, **given, avoid=["n3", "n2"])["plan_path"]
    assert drain(plan=path, avoid=["n2", "n3"])["left"] == []


def test_a_node_to_avoid_is_taken_only_where_there_is_no_other(drain: Any, api: RunApi) -> None:
    """By a plan of the task's own."""
    foretell = partial(drain, plan=None, avoid=["n2"], check=True)
    assert foretell()["moves"][0]["target_node"] == "n3"
    api.node("n3")["spec"]["unschedulable"] = True
    assert foretell()["moves"][0]["target_node"] == "n2"
    assert drain(plan=None, avoid=["n22"])["error"]["problems"] == ["there is no node n22 (do you mean n2?)"]

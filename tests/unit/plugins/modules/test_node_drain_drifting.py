# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that the cluster has left behind is mended, or refused where it may not drift; its own drains are no drift."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.modules import cluster_snapshot, maintenance_plan

from testbed.pki import Authority
from unit.plugins.modules.test_node_drain_in_a_run import close, other, target
from unit.plugins.support.draining_api import pod_path
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import FAILURE, SUCCESS, vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, memory, plan_in_force


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        yield fake


@pytest.fixture
def store(api: RunApi, connection: dict[str, Any]) -> RunStore:
    return memory(connection)


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Any:
    plan = plan_in_force(run_module, connection, tmp_path)
    return drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)


def drifted(result: dict[str, Any], planned: str | None, why: str) -> bool:
    """Whether a drain was refused because `db` would go elsewhere than planned."""
    change = f"VM shop/db goes to {other(planned)}, as {why}; it was: goes to {planned}"
    assert result["error"]["problems"] == [change]
    assert f"the cluster has changed since it was made: {change}. Plan and approve anew, or set drift" in result["msg"]
    return bool(result["error"]["reason"] == "PlanDrifted")


def test_a_plan_that_may_not_drift_is_refused_before_anything_is_written(
    drain: Any, api: RunApi, store: RunStore
) -> None:
    planned = target(store)
    close(api, planned or "")
    before, writes = store.get("plan"), len(api.writes())
    assert drifted(drain(drift="fail"), planned, f"the scheduler says of {planned}: node(s) were unschedulable")
    assert (store.get("plan"), len(api.writes())) == (before, writes)
    assert not api.node("n1")["spec"].get("unschedulable")


def test_of_much_that_has_changed_the_first_is_told(drain: Any, api: RunApi) -> None:
    for number in range(12):
        api.add_vmi(f"new-{number}")
    refused = drain(drift="fail")
    problems = refused["error"]["problems"]
    assert len(problems) > 10
    assert f"{problems[9]}; and {len(problems) - 10} more. Plan and approve anew" in refused["msg"]
    assert problems[10] not in refused["msg"]


def test_a_plan_that_may_not_drift_is_carried_out_if_it_is_right(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    assert drain(drift="fail")["moves"][0]["target_node"] == planned


def test_a_plan_that_may_not_drift_ends_with_the_migration_that_fails(drain: Any, api: RunApi, store: RunStore) -> None:
    """What has begun is told, and what is kept of the plan stays as it was approved."""
    planned, before = target(store), store.get("plan")
    api.courses = [FAILURE, SUCCESS]
    result = drain(drift="fail")
    assert drifted(result, planned, f"its migration to {planned} has failed")
    assert [(move["target_node"], move["attempts"]) for move in result["moves"]] == [(planned, 1)]
    assert [entry["name"] for entry in result["left"] if entry["kind"] == "vm"] == ["db"]
    assert (len(api.migrations()), store.get("plan")) == (1, before)


@pytest.mark.parametrize("drift", ["repair", "fail"])
def test_what_a_drain_has_evicted_is_no_drift_to_who_goes_on_with_it(drain: Any, api: RunApi, drift: str) -> None:
    assert drain(drift=drift)["left"] == []
    with listener() as heard:
        again = drain(drift=drift, _progress=heard.path)
    assert (again["changed"], again["as_planned"]) == (False, 1), again
    # Where another one came up nobody can say for a pod that was gone and looks like no other one.
    assert [entry["why"] for entry in again["deviations"]] == ["it had gone before anybody looked"]
    assert [line for line in heard.told if "the plan has changed" in line] == []


def test_a_pod_that_others_have_ended_before_is_drift(drain: Any, api: RunApi) -> None:
    del api.objects[pod_path("api")]
    refused = drain(drift="fail")
    assert refused["error"]["problems"] == ["pod shop/api has nothing to do any more; it was: is evicted"]
    assert not api.node("n1")["spec"].get("unschedulable")


@pytest.fixture
def drain_of_two(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Any:
    """Of n1, or another node, in a batch with n2."""
    given: dict[str, Any] = {"run": "kernel", "batches": [["n1", "n2"]], "path": str(tmp_path / "plan.json")}
    made = run_module(maintenance_plan.main, **connection, **given)
    plan = {"plan_path": made["plan_path"], "sha256": made["sha256"]}
    return drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)


def test_a_batch_that_cannot_be_emptied_is_told_by_its_nodes(drain_of_two: Any, api: RunApi) -> None:
    """It is refused as a whole, for whichever of its nodes."""
    api.add_vm("pets")
    api.objects[vmi_path("pets")]["status"]["nodeName"] = "n2"
    for name in ("n1", "n2"):
        refused = drain_of_two(name=name)
        assert (refused["error"]["reason"], len(api.migrations())) == ("NotDrainable", 0)
        assert [(entry["name"], entry["for_node"]) for entry in refused["left"]] == [("pets", "n2")]


def test_a_batch_of_which_one_node_has_drifted_is_left_alone(drain_of_two: Any, api: RunApi) -> None:
    """The drain of one node cordons all of its batch, and sees to what has to leave others before."""
    drain = drain_of_two
    del api.objects[pod_path("api")]
    refused = drain(name="n2", drift="fail")
    assert refused["error"]["reason"] == "PlanDrifted", refused
    assert refused["error"]["problems"] == ["pod shop/api has nothing to do any more; it was: is evicted"]
    assert not any(api.node(name)["spec"].get("unschedulable") for name in ("n1", "n2"))
    assert drain(name="n2")["left"] == []


def test_a_later_batch_does_not_take_for_granted_that_those_before_came_about(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path
) -> None:
    """Its plan may be held against the very snapshot that it was made from, as nothing has happened since."""
    close(api, "n3")
    taken: dict[str, Any] = {"path": str(tmp_path / "cluster.json")}
    handle = run_module(cluster_snapshot.main, **connection, **taken)
    given: dict[str, Any] = {"run": "kernel", "nodes": ["n1", "n2"], "path": str(tmp_path / "plan.json")}
    made = run_module(maintenance_plan.main, **connection, **given, snapshot=handle)
    plan = {"plan_path": made["plan_path"], "sha256": made["sha256"]}
    drain = drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)
    result = drain(name="n2", snapshot=handle)
    # The pod in place of `api` was to come to n2 when n1 is drained.
    told = [(entry["name"], entry["done"]) for entry in result["deviations"]]
    assert (told, result["as_planned"]) == ([("api/replacement", "was not there")], 1)

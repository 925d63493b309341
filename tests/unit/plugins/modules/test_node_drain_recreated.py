# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made anew under its name between a plan and the look that it is carried out by is planned anew as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import MAINTAINED
from ansible_collections.virtops.kubevirt.plugins.modules import cluster_snapshot, maintenance_plan

from testbed.pki import Authority
from unit.plugins.support.draining_api import VMIS, act_path, pod_path
from unit.plugins.support.fake_api import Answer, Request
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.run_api import RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run

ANEW = "uid-of-the-next"


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        yield fake


@pytest.fixture
def drained(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Callable[..., Result]:
    """What becomes of node n1, after something was made anew, by a plan of the snapshot that the drain has, too."""

    def drain(path: str, policy: str = "fail", **settings: Any) -> Result:
        snapshot = run_module(cluster_snapshot.main, **connection, path=str(tmp_path / "cluster.json"))
        given: dict[str, Any] = {"run": "kernel", "nodes": ["n1"], "path": str(tmp_path / "plan.json")}
        given["policies"] = [{"policy": policy}]
        made = run_module(maintenance_plan.main, **connection, **given, snapshot=snapshot)
        api.objects[path]["metadata"]["uid"] = ANEW
        plan = {"plan_path": made["plan_path"], "sha256": made["sha256"]}
        again = drain_of_the_run(run_module, connection, plan=plan, snapshot=snapshot, cordon=True, wait_timeout=4)
        result: Result = again(**settings)
        return result

    return drain


def changes(told: list[str]) -> list[str]:
    return [line.partition("the plan has changed: ")[2] for line in told if "the plan has changed: VM" in line]


@pytest.mark.parametrize("check", [False, True])
def test_a_vm_that_can_migrate_does(drained: Any, api: RunApi, check: bool) -> None:
    with listener() as heard:
        result = drained(vmi_path("db"), check=check, _progress=heard.path)
    outcome = "would_migrate" if check else "migrated"
    assert (result["left"], [(move["name"], move["outcome"]) for move in result["moves"]]) == ([], [("db", outcome)])
    assert changes(heard.told) == ["VM shop/db is another one of the same name"]
    assert [(told["name"], told["planned"]) for told in result["deviations"] if told["kind"] == "vm"][1:] == [
        ("db", "nothing, as it was not there")
    ]
    assert len(api.migrations()) == (0 if check else 1)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("policy", ["stop", "restart"])
def test_a_vm_that_cannot_migrate_follows_its_policy(drained: Any, api: RunApi, policy: str, check: bool) -> None:
    api.add_vm("pets", "Manual")
    result = drained(vmi_path("pets"), policy, check=check)
    done = {"stop": "stopped", "restart": "restarted"}[policy]
    outcome = f"would_{policy}" if check else done
    assert (result["left"], [entry["outcome"] for entry in result["interrupted"]]) == ([], [outcome])
    assert [request.path for request in api.writes() if request.path == act_path(policy, "pets")]
    assert (vmi_path("pets") in api.objects) is (check or policy == "restart")


@pytest.mark.parametrize("check", [False, True])
def test_a_pod_does(drained: Any, api: RunApi, check: bool) -> None:
    """As of a StatefulSet, whose pods keep their names."""
    result = drained(pod_path("api"), check=check)
    assert (result["left"], [entry["outcome"] for entry in result["evicted"]]) == (
        [],
        ["would_evict" if check else "evicted"],
    )
    assert (pod_path("api") in api.objects) is check


@pytest.mark.parametrize("check", [False, True])
def test_a_vm_that_cannot_leave_is_told(drained: Any, api: RunApi, check: bool) -> None:
    def spoil(request: Request) -> Answer | None:
        """The next one of its name is not made like the one that was planned for."""
        if "limit" in request.query and api.objects[vmi_path("db")]["metadata"]["uid"] == ANEW:
            api.objects[vmi_path("db")]["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
        return None

    api.faults[VMIS] = spoil
    result = drained(vmi_path("db"), check=check)
    assert (result["failed"], [entry["name"] for entry in result["left"]]) == (True, ["db"])
    assert "the VMI cannot be live-migrated" in result["left"][0]["why"]


@pytest.mark.parametrize("check", [False, True])
def test_a_plan_that_may_not_drift_is_refused(drained: Any, api: RunApi, check: bool) -> None:
    result = drained(vmi_path("db"), drift="fail", check=check)
    assert result["error"]["reason"] == "PlanDrifted"
    assert "VM shop/db is another one of the same name" in result["error"]["problems"]
    assert api.migrations() == []


def test_a_pod_that_has_come_from_a_node_that_is_done_is_in_the_plan(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path
) -> None:
    """It had left that for this one of the batch, which was not cordoned yet; the plan has both under one id."""
    api.add_pod("web", "n2", owner="StatefulSet")
    given: dict[str, Any] = {"run": "kernel", "batches": [["n2", "n1"]], "path": str(tmp_path / "plan.json")}
    made = run_module(maintenance_plan.main, **connection, **given)
    api.objects[pod_path("web")]["metadata"]["uid"] = ANEW
    api.objects[pod_path("web")]["spec"]["nodeName"] = "n1"
    api.node("n2")["metadata"].setdefault("labels", {})[MAINTAINED] = "kernel"
    plan = {"plan_path": made["plan_path"], "sha256": made["sha256"]}
    result = drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=4)(drift="fail")
    assert result["error"]["problems"] == ["pod shop/web is evicted, which is new"]
    assert not api.node("n1")["spec"].get("unschedulable")  # it was seen before anything was touched

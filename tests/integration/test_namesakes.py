# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that a plan stops or restarts is deleted, and made anew under its name before the plan is carried out.

What the plan says of the one is not done to the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main as cluster_snapshot
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main as maintenance_plan
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main as node_drain
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main as node_maintenance

from integration.clusters import KUBEVIRT, VMIS
from integration.draining import TIMEOUT, Yard
from testbed.api import resource_path
from testbed.waiting import wait_for
from unit.plugins.support.listener import listener
from unit.plugins.support.modules import ModuleRunner

NODES = ("namesake-0", "namesake-1")
SOURCE, TARGET = NODES
POLICIES = ("stop", "restart")

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def drain(yard: Yard, run: ModuleRunner, tmp_path: Path) -> Iterator[Run]:
    """By the plan."""
    connection: dict[str, Any] = {"kubeconfig": str(yard.testbed.kubeconfig), "name": SOURCE, "owner": "test"}
    with yard.emptied_afterwards():
        yield partial(run, node_drain, **connection, plan=str(tmp_path / "plan"), cordon=True, wait_timeout=60)
        run(node_maintenance, **connection, state="uncordoned")


@pytest.fixture
def plan(yard: Yard, run: ModuleRunner, tmp_path: Path, drain: Run) -> Callable[[str], str]:
    """Start a VM that cannot be migrated, and plan by a policy what becomes of it; its VMI's uid."""
    kubeconfig, snapshot = str(yard.testbed.kubeconfig), str(tmp_path / "snapshot")

    def started_and_planned(policy: str) -> str:
        uid = yard.start_vm("pet", SOURCE, migratable=False, run_strategy="Always")["metadata"]["uid"]
        run(cluster_snapshot, kubeconfig=kubeconfig, path=snapshot)
        asked: dict[str, Any] = {"nodes": [SOURCE], "policies": [{"policy": policy}], "path": str(tmp_path / "plan")}
        made = run(maintenance_plan, kubeconfig=kubeconfig, snapshot=snapshot, **asked)
        assert not made.get("failed"), made
        actions = json.loads((tmp_path / "plan").read_text())["actions"]
        assert [entry["object"]["uid"] for entry in actions if entry["kind"] == policy] == [uid]
        return str(uid)

    return started_and_planned


def made_anew(yard: Yard, *, migratable: bool) -> str:
    """Its VMI's uid."""
    vms, vmis = (resource_path(KUBEVIRT, plural, yard.namespace) for plural in ("virtualmachines", VMIS))
    yard.testbed.api.delete(f"{vms}/pet")
    wait_for("the end of the VM", lambda: not any(map(yard.testbed.api.items, (vms, vmis))), TIMEOUT)
    found = yard.start_vm("pet", SOURCE, migratable=migratable, run_strategy="Always")
    return str(found["metadata"]["uid"])


def outcomes(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in entries}


@pytest.mark.parametrize("looks_anew", [True, False], ids=["by a fresh look", "by the plan's own snapshot"])
@pytest.mark.parametrize("policy", POLICIES)
def test_never_interrupts_a_vm_in_place_of_one_of_its_name(
    drain: Run, plan: Callable[[str], str], yard: Yard, tmp_path: Path, policy: str, looks_anew: bool
) -> None:
    """That one can be migrated, and is; with the plan's own snapshot the drain finds it only when it has begun."""
    before, uid = plan(policy), made_anew(yard, migratable=True)
    with listener() as heard:
        result = drain(_progress=heard.path, **({} if looks_anew else {"snapshot": str(tmp_path / "snapshot")}))
    assert not result.get("failed"), result
    assert (outcomes(result["moves"]), result["left"]) == ({"pet": "migrated"}, [])
    assert (yard.vmi("pet")["metadata"]["uid"], yard.node_of("pet")) == (uid, TARGET)
    assert uid != before
    vm = yard.vm("pet")
    assert vm["spec"]["runStrategy"] == "Always"
    assert not any("stopped" in key for field in ("labels", "annotations") for key in vm["metadata"].get(field, {}))
    changes = [line.partition("the plan has changed: ")[2] for line in heard.told if "the plan has changed" in line]
    assert [line.startswith(f"VM {yard.namespace}/pet goes to {TARGET}") for line in changes] == [True], heard.told


@pytest.mark.parametrize("policy", POLICIES)
def test_never_takes_a_vm_for_the_one_of_its_name_that_was_approved(
    drain: Run, plan: Callable[[str], str], yard: Yard, policy: str
) -> None:
    """Though the policy would say the same of it."""
    plan(policy)
    uid = made_anew(yard, migratable=False)
    refused = drain(drift="fail")
    assert (refused["failed"], refused["error"]["reason"]) == (True, "PlanDrifted"), refused
    assert f"VM {yard.namespace}/pet is another one of the same name" in refused["msg"]
    assert not yard.cordoned(SOURCE)
    assert (yard.vmi("pet")["metadata"]["uid"], yard.node_of("pet")) == (uid, SOURCE)
    assert yard.vm("pet")["spec"]["runStrategy"] == "Always"


def test_a_vm_of_the_planned_ones_name_follows_the_policy_as_itself(
    drain: Run, plan: Callable[[str], str], yard: Yard
) -> None:
    """Where a plan may be mended, it says so, and the node gets empty; the VM comes back in the end."""
    plan("stop")
    uid = made_anew(yard, migratable=False)
    with listener() as heard:
        result = drain(_progress=heard.path)
    assert not result.get("failed"), result
    assert outcomes(result["interrupted"]) == {"pet": "stopped"}
    assert [line for line in heard.told if f"VM {yard.namespace}/pet is another one of the same name" in line]
    wait_for("the end of the VMI", lambda: not yard.exists("pet"), TIMEOUT)
    assert outcomes(drain(state="restored", plan=None)["started"]) == {"pet": "started"}
    assert yard.vmi("pet")["metadata"]["uid"] != uid

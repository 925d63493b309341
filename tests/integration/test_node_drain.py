# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_drain against a real scheduler, eviction API and virt-controller: budgets, policies, and trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main as maintenance_plan
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main as node_maintenance

from integration.accounts import account
from integration.clusters import migrate, wait_for_phase
from integration.draining import Yard
from testbed.waiting import wait_for
from unit.plugins.support.listener import Heard, listener
from unit.plugins.support.modules import ModuleRunner, Result

NODES = ("yard-0", "yard-1", "yard-2")
SOURCE = NODES[0]
STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]


@pytest.fixture
def drain(yard: Yard, run: ModuleRunner) -> Iterator[Any]:
    connection: dict[str, Any] = {"kubeconfig": str(yard.testbed.kubeconfig), "name": SOURCE, "owner": "test"}
    with yard.emptied_afterwards():
        yield partial(run, main, **connection, cordon=True, wait_timeout=60, unschedulable_timeout=5)
        run(node_maintenance, **connection, state="uncordoned")


@pytest.fixture
def plan(yard: Yard, run: ModuleRunner, tmp_path: Path) -> Callable[..., str]:
    """Plan the drain, as the options of maintenance_plan say; the path of the plan."""
    path = str(tmp_path / "plan.json")

    def planned(**options: Any) -> str:
        made = run(maintenance_plan, kubeconfig=str(yard.testbed.kubeconfig), nodes=[SOURCE], path=path, **options)
        assert not made.get("failed"), made
        return path

    return planned


def outcomes(entries: list[Result]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in entries}


@pytest.mark.gate
def test_vms_and_pods_leave_once(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    yard.deploy("web", SOURCE)
    planned = drain(check=True, diff=True)
    assert yard.node_of("vm") == SOURCE
    result = drain(diff=True)
    (move,) = result["moves"]
    assert (move["outcome"], move["node"], move["node"]) == ("migrated", yard.node_of("vm"), move["target_node"])
    assert move["target_node"] == planned["moves"][0]["target_node"] != SOURCE
    assert result["diff"] == planned["diff"]
    assert f"vm {yard.namespace}/vm" in result["diff"]["before"]
    assert not result["diff"]["after"]
    assert "evicted" in outcomes(result["evicted"]).values()
    assert yard.leftovers(SOURCE) == []
    again = drain()
    assert (again["changed"], again["moves"], again["evicted"], again["interrupted"]) == (False, [], [], [])


@pytest.mark.gate
@pytest.mark.parametrize("node", NODES[1:])
def test_vms_go_to_their_targets(drain: Any, plan: Callable[..., str], yard: Yard, node: str) -> None:
    yard.start_vm("vm", SOURCE)
    path = plan(targets={f"{yard.namespace}/vm": node})
    assert drain(plan=path)["moves"][0]["node"] == node == yard.node_of("vm")


def test_a_budget_that_cannot_yield_is_told_at_once(drain: Any, yard: Yard) -> None:
    """It wants all the pods that there are to be."""
    pod = yard.deploy("web", SOURCE, budget=1)
    result = drain()
    assert (result["changed"], result["error"]["reason"]) == (False, "NotDrainable")
    assert f"pod {yard.namespace}/{pod}: It cannot be evicted. PodDisruptionBudget web allows no" in result["msg"]


def test_a_budget_that_yields_later_only_delays(drain: Any, yard: Yard) -> None:
    pod = yard.deploy("web", SOURCE, budget=1, waiting=True)
    refused = drain(wait_timeout=10)
    assert "budget web needs 1 healthy pods and has 1 currently" in refused["msg"]
    timer = threading.Timer(2, yard.relax, ["web"])
    timer.start()
    result = drain()
    timer.join()
    assert outcomes(result["evicted"])[pod] == "evicted"


def test_a_budget_that_never_yields_holds_back_its_pod_alone(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    yard.start_vm("stays", SOURCE, migratable=False, run_strategy="Always")
    pod = yard.deploy("web", SOURCE, budget=1, waiting=True)
    result = drain(policies=STOP, wait_timeout=20)
    assert result["error"]["reason"] == "DeadlineExceeded"
    assert (yard.node_of("vm") in NODES[1:], outcomes(result["moves"])) == (True, {"vm": "migrated"})
    left = {entry["name"]: entry["why"] for entry in result["left"]}
    assert "budget web needs 1 healthy pods and has 1 currently" in left[pod]
    assert f"pod {yard.namespace}/{pod}: held back" in result["msg"]


def test_a_vm_that_somebody_brings_back_is_migrated_again(drain: Any, yard: Yard) -> None:
    """It tolerates the cordon. Nothing is a reason to stop it, nor does its first migration count as one in vain."""
    uid = yard.start_vm("vm", SOURCE, run_strategy="Always", tolerations=[{"operator": "Exists"}])["metadata"]["uid"]
    yard.deploy("web", SOURCE, budget=1, waiting=True)

    def bring_back() -> None:
        api = yard.testbed.api
        wait_for_phase(api, migrate(api, yard.vmi("vm"), SOURCE), "Succeeded")
        wait_for("the VM to be back", lambda: yard.node_of("vm") == SOURCE)
        yard.relax("web")

    yard.when("the VM to have left", lambda: yard.node_of("vm") != SOURCE, bring_back)
    result = drain(policies=STOP, retries=0)
    assert (result.get("msg"), result["left"], result["interrupted"]) == (None, [], [])
    assert (outcomes(result["moves"]), yard.node_of("vm") in NODES[1:]) == ({"vm": "migrated"}, True)
    assert (yard.vmi("vm")["metadata"]["uid"], yard.vm("vm")["spec"]["runStrategy"]) == (uid, "Always")
    assert (result["moves"][0]["attempts"], result["moves"][0]["failure_reason"]) == (2, "")


def test_a_vm_that_can_be_migrated_when_its_turn_comes_is_migrated(drain: Any, yard: Yard) -> None:
    """KubeVirt says so by then, as when a disk of it was unplugged while another one that goes first was on its way."""
    uid = yard.start_vm("stays", SOURCE, migratable=False, run_strategy="Always")["metadata"]["uid"]
    yard.start_vm("vm", SOURCE)
    yard.never_end("vm")

    def unplug() -> None:
        conditions = yard.vmi("stays")["status"]["conditions"]
        yard.tell("stays", {"conditions": [entry for entry in conditions if entry["type"] != "LiveMigratable"]})
        yard.testbed.inject("clear")

    yard.when("the other VM to be on its way", lambda: bool(yard.migrations("vm")), unplug)
    result = drain(policies=STOP)
    assert (result.get("msg"), result["left"], result["interrupted"]) == (None, [], [])
    assert outcomes(result["moves"]) == {"vm": "migrated", "stays": "migrated"}
    assert yard.node_of("stays") in NODES[1:]
    assert (yard.vmi("stays")["metadata"]["uid"], yard.vm("stays")["spec"]["runStrategy"]) == (uid, "Always")


@pytest.mark.gate
def test_what_may_not_or_cannot_leave_keeps_everything(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    yard.start_vm("stays", SOURCE, migratable=False)
    yard.pod("alone", SOURCE, volumes=[{"name": "scratch", "emptyDir": {}}])
    result = drain()
    assert (result["changed"], result["error"]["reason"]) == (False, "NotDrainable")
    problems = "; ".join(result["error"]["problems"])
    assert f"{yard.namespace}/stays: the VMI cannot be live-migrated because its interface" in problems
    assert f"pod {yard.namespace}/alone: nothing would replace it and the data in its emptyDir" in problems
    assert "would be lost; set force and delete_emptydir_data if it may go" in problems
    assert yard.node_of("vm") == SOURCE
    assert not yard.cordoned(SOURCE)


def test_what_is_allowed_to_go_goes(drain: Any, yard: Yard) -> None:
    yard.pod("alone", SOURCE, volumes=[{"name": "scratch", "emptyDir": {}}])
    result = drain(force=True, delete_emptydir_data=True, terminate_grace_period=0)
    assert outcomes(result["evicted"])["alone"] == "evicted"


@pytest.mark.gate
@pytest.mark.parametrize("run_strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
def test_a_stopped_vm_comes_back_as_it_was(drain: Any, yard: Yard, run_strategy: str) -> None:
    yard.start_vm("stays", SOURCE, migratable=False, run_strategy=run_strategy)
    result = drain(policies=STOP)
    assert outcomes(result["interrupted"]) == {"stays": "stopped"}, result["msg"]
    wait_for("the end of the VMI", lambda: not yard.exists("stays"))
    assert outcomes(drain(state="restored", check=True)["started"]) == {"stays": "would_start"}
    (started,) = drain(state="restored")["started"]
    assert (started["outcome"], started["node"]) == ("started", yard.node_of("stays"))
    vm = yard.vm("stays")
    metadata = vm["metadata"]
    assert vm["spec"]["runStrategy"] == run_strategy
    assert not any("stopped" in key for key in {**metadata.get("labels", {}), **metadata.get("annotations", {})})
    assert drain(state="restored")["started"] == []


@pytest.mark.gate
def test_a_vm_comes_back_though_the_run_that_stopped_it_was_killed(drain: Any, yard: Yard) -> None:
    yard.start_vm("stays", SOURCE, migratable=False, run_strategy="Always")
    let_go = yard.hold_back("stays")
    assert drain(policies=STOP, wait_timeout=10)["error"]["reason"] == "DeadlineExceeded"
    let_go()
    assert yard.vm("stays")["spec"]["runStrategy"] == "Halted"
    assert drain(policies=STOP)["left"] == []
    assert outcomes(drain(state="restored")["started"]) == {"stays": "started"}
    assert yard.vm("stays")["spec"]["runStrategy"] == "Always"


@pytest.mark.parametrize("run_strategy", ["Always", "Once"])
def test_a_vm_whose_guest_is_slow_comes_back(drain: Any, yard: Yard, run_strategy: str) -> None:
    """The drain that stopped it is killed, and the node is back before its VMI is gone."""
    uid = yard.start_vm("stays", SOURCE, migratable=False, run_strategy=run_strategy)["metadata"]["uid"]
    let_go = yard.hold_back("stays")
    drain(policies=STOP, wait_timeout=5)
    early = drain(state="restored", wait_timeout=5)
    assert "its guest has yet to shut down" in early["msg"]
    let_go()
    assert outcomes(drain(state="restored")["started"]) == {"stays": "started"}
    assert yard.vmi("stays")["metadata"]["uid"] != uid
    vm = yard.vm("stays")
    assert vm["spec"]["runStrategy"] == run_strategy
    assert "virtops.kubevirt/stopped-for" not in vm["metadata"].get("annotations", {})


def test_a_vm_that_kubevirt_evacuates_is_waited_for(drain: Any, yard: Yard) -> None:
    """As kubectl drain leaves it: its pod was evicted, and KubeVirt has no node yet to migrate it to."""
    yard.start_vm("vm", SOURCE, eviction_strategy="LiveMigrate")
    with yard.cordon(NODES[1]), yard.cordon(NODES[2]):
        yard.evict("vm")
        early = drain(wait_timeout=10)
        assert (early["error"]["reason"], early["moves"]) == ("DeadlineExceeded", [])
    assert (drain()["left"], yard.node_of("vm") in NODES[1:]) == ([], True)


def test_an_evacuation_is_taken_over_by_choice(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE, eviction_strategy="LiveMigrate")
    with yard.cordon(NODES[1]), yard.cordon(NODES[2]):
        yard.evict("vm")
        with listener() as heard:
            early = drain(evacuations="take_over", wait_timeout=10, _progress=heard.path)
        assert early["failed"]
        assert f"node {SOURCE}: {yard.namespace}/vm: its evacuation by KubeVirt is taken over" in heard.told
        assert "evacuationNodeName" not in yard.vmi("vm")["status"]
        wait_for("KubeVirt to end its migration", lambda: not yard.migrations("vm"), 30)
    done = drain(evacuations="take_over")
    assert outcomes(done["moves"]) == {"vm": "migrated"}
    assert yard.node_of("vm") in NODES[1:]


@pytest.mark.gate
@pytest.mark.parametrize("run_strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
def test_a_restarted_vm_runs_elsewhere(drain: Any, yard: Yard, run_strategy: str) -> None:
    uid = yard.start_vm("moves", SOURCE, migratable=False, run_strategy=run_strategy)["metadata"]["uid"]
    (entry,) = drain(policies=RESTART)["interrupted"]
    assert (entry["outcome"], entry["target_node"]) == ("restarted", yard.node_of("moves"))
    assert yard.vmi("moves")["metadata"]["uid"] != uid
    assert entry["target_node"] != SOURCE


@pytest.mark.parametrize("run_strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
def test_a_restarted_vm_whose_guest_is_slow_is_waited_for(drain: Any, yard: Yard, run_strategy: str) -> None:
    yard.start_vm("moves", SOURCE, migratable=False, run_strategy=run_strategy)
    yard.when("the VMI to be ending", lambda: yard.is_ending("moves"), yard.hold_back("moves"))
    assert outcomes(drain(policies=RESTART)["interrupted"]) == {"moves": "restarted"}


def test_a_vm_that_somebody_halts_while_it_restarts_is_named(drain: Any, yard: Yard) -> None:
    yard.start_vm("moves", SOURCE, migratable=False, run_strategy="Always")
    let_go = yard.hold_back("moves")

    def halt() -> None:
        yard.halt("moves")
        let_go()

    yard.when("the VMI to be ending", lambda: yard.is_ending("moves"), halt)
    result = drain(policies=RESTART)
    assert result["error"]["reason"] == "DrainFailed", result
    assert "nothing starts it again, as its VM has run strategy Halted" in result["msg"]
    assert drain(policies=RESTART)["left"] == []


def test_a_replica_set_is_waited_for_when_its_node_is_back(drain: Any, run: ModuleRunner, yard: Yard) -> None:
    yard.start_replica("set", SOURCE)
    with yard.cordon(NODES[1]), yard.cordon(NODES[2]):
        assert outcomes(drain(policies=STOP)["interrupted"]).popitem()[1] == "stopped"
        early = drain(state="restored", wait_timeout=10)
        assert "set: starting, 0 of 1 replicas are ready" in early["msg"]
        run(node_maintenance, kubeconfig=str(yard.testbed.kubeconfig), name=SOURCE, owner="test", state="uncordoned")
        (started,) = drain(state="restored")["started"]
    assert (started["kind"], started["outcome"]) == ("VirtualMachineInstanceReplicaSet", "started")
    assert drain(state="restored")["started"] == []


@pytest.mark.gate
def test_a_vmi_that_nobody_would_start_again_is_not_ended(drain: Any, yard: Yard) -> None:
    yard.start_vm("stays", SOURCE, migratable=False)
    result = drain(policies=STOP)
    assert "nor can it stop: nothing that owns it starts it again" in result["msg"]
    assert yard.node_of("stays") == SOURCE


@pytest.mark.gate
def test_a_target_that_vanishes_is_replaced(drain: Any, plan: Callable[..., str], yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    path = plan(avoid=[NODES[2]])
    with yard.cordon(NODES[1]):
        result = drain(plan=path)
    (move,) = result["moves"]
    assert (move["outcome"], move["node"], move["attempts"]) == ("migrated", NODES[2], 1)
    assert [entry["planned"] for entry in result["deviations"]] == [f"goes to {NODES[1]}"]


def test_a_vm_that_fails_everywhere_follows_its_policy(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE, run_strategy="Always")
    yard.testbed.inject("migration-failure", "--vmi", f"{yard.namespace}/vm")
    with listener() as heard:
        failed = drain(retries=1, _progress=heard.path)
    assert failed["error"]["reason"] == "DrainFailed"
    assert sum(": failed, " in line for line in heard.told) == 2, heard.told
    assert sum("the plan has changed: " in line for line in heard.told) == 2, heard.told
    assert (failed["moves"][0]["outcome"], failed["moves"][0]["attempts"]) == ("failed", 2)
    assert failed["moves"][0]["failure_reason"] in failed["msg"]
    result = drain(retries=0, policies=RESTART)
    assert outcomes(result["interrupted"]) == {"vm": "restarted"}
    assert yard.node_of("vm") != SOURCE


@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
def test_a_backup_is_waited_for_whatever_the_policy(drain: Any, yard: Yard, policy: str) -> None:
    uid = yard.start_vm("vm", SOURCE, run_strategy="Always")["metadata"]["uid"]
    yard.back_up("vm", completed=False)
    early = drain(policies=[{"policy": policy}], wait_timeout=10)
    assert (early["error"]["reason"], early["moves"], early["interrupted"]) == ("DeadlineExceeded", [], [])
    assert "backup nightly of the VMI is in progress" in early["msg"]
    assert yard.node_of("vm") == SOURCE
    timer = threading.Timer(3, yard.back_up, ["vm"], {"completed": True})
    timer.start()
    result = drain(policies=[{"policy": policy}])
    timer.join()
    assert (outcomes(result["moves"]), result["interrupted"]) == ({"vm": "migrated"}, [])
    assert yard.vmi("vm")["metadata"]["uid"] == uid


def test_a_killed_run_is_gone_on_with(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    yard.never_end("vm")
    migration = in_flight(drain)
    with listener() as heard:
        freed = threading.Thread(target=clear_when_told, args=[yard, heard])
        freed.start()
        (move,) = drain(_progress=heard.path)["moves"]
        freed.join()
    assert (move["migration"], move["outcome"]) == (migration, "migrated")


def clear_when_told(yard: Yard, heard: Heard) -> None:
    wait_for("the drain to begin", lambda: bool(heard.told))
    yard.testbed.inject("clear")


def in_flight(drain: Any) -> str:
    """The migration that a drain has left on its way."""
    (move,) = drain(wait_timeout=10)["moves"]
    assert move["outcome"] == "migrating"
    return str(move["migration"])


def test_a_server_that_is_away_is_waited_for(drain: Any, yard: Yard) -> None:
    """While it is silent, the drain asks it for a pod that a budget holds back."""
    pod = yard.deploy("web", SOURCE, budget=1, waiting=True)
    timers = [threading.Timer(5, yard.silence_api, [15]), threading.Timer(22, yard.relax, ["web"])]
    for timer in timers:
        timer.start()
    with listener() as heard:
        result = drain(request_timeout=1, _progress=heard.path)
    for timer in timers:
        timer.join()
    assert outcomes(result["evicted"])[pod] == "evicted"
    assert sum("trying again since" in line.lower() for line in heard.told) == 1, heard.told


@pytest.mark.gate
def test_the_rights_of_the_guide_are_enough(drain: Any, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    yard.start_vm("pet", SOURCE, migratable=False, run_strategy="Manual")
    yard.start_replica("set", SOURCE)
    yard.deploy("web", SOURCE)
    with account(yard.testbed, yard.namespace, MODULES["node_drain"]) as kubeconfig:
        assert drain(kubeconfig=kubeconfig, policies=STOP)["left"] == []
    with account(yard.testbed, yard.namespace, MODULES["node_drain, restored"]) as kubeconfig:
        started = drain(kubeconfig=kubeconfig, state="restored")["started"]
    assert outcomes(started) == {"pet": "started"}


@pytest.mark.gate
def test_another_owners_node_is_left_alone(drain: Any, run: ModuleRunner, yard: Yard) -> None:
    kubeconfig = str(yard.testbed.kubeconfig)
    assert drain(cordon=False)["error"]["reason"] == "NotCordoned"
    run(node_maintenance, kubeconfig=kubeconfig, name=SOURCE, owner="other")
    for cordon in (True, False):
        assert drain(cordon=cordon)["error"]["reason"] == "LeaseHeld"
    run(node_maintenance, kubeconfig=kubeconfig, name=SOURCE, owner="other", state="uncordoned")

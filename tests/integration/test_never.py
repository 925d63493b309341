# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must never happen to a user's VMs and nights, in the user's words: modules, playbooks, objects, what is printed.

What happens in between happens at the very request that it has to come before, by a proxy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Need
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES
from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main as cluster_snapshot
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main as node_drain
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main as node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main as vmi_migration

from faults.proxy import Proxy, proxied
from integration import playbooks
from integration.accounts import account
from integration.clusters import KUBEVIRT, MIGRATIONS
from integration.draining import Yard
from testbed.api import resource_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for
from unit.plugins.support.listener import listener
from unit.plugins.support.modules import ModuleRunner

NODES = ("never-0", "never-1", "never-2")
SOURCE, TARGET, OTHER = NODES
STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]
MIGRATING = r"/apis/kubevirt\.io/v1/namespaces/[^/]+/virtualmachineinstancemigrations"
SECRET = "canary-6b1f"  # looked for, and never found

Run = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.gate


@pytest.fixture
def proxy(yard: Yard, tmp_path: Path) -> Iterator[tuple[str, Proxy]]:
    with proxied(yard.testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy):
        yield str(kubeconfig), proxy


@pytest.fixture
def relay(proxy: tuple[str, Proxy]) -> Proxy:
    return proxy[1]


@pytest.fixture
def drain(yard: Yard, run: ModuleRunner, proxy: tuple[str, Proxy]) -> Iterator[Run]:
    """Through the proxy."""
    connection: dict[str, Any] = {"kubeconfig": proxy[0], "name": SOURCE, "owner": "test"}
    with yard.emptied_afterwards():
        yield partial(run, node_drain, **connection, cordon=True, wait_timeout=60, unschedulable_timeout=5)
        run(node_maintenance, **connection, state="uncordoned", foreign_cordon="keep")
        yard.uncordon(SOURCE)


def outcomes(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in entries}


def migrations(yard: Yard, name: str) -> int:
    """How many there have ever been."""
    found = yard.testbed.api.items(resource_path(KUBEVIRT, MIGRATIONS, yard.namespace))
    return sum(item["spec"]["vmiName"] == name for item in found)


@pytest.mark.parametrize("run_strategy", ["RerunOnFailure", "Manual"])
def test_never_leaves_a_vm_off_because_its_guest_is_slow(drain: Run, yard: Yard, run_strategy: str) -> None:
    """The drain that stopped it is over, and the node is back before the guest has shut down."""
    uid = yard.start_vm("pet", SOURCE, migratable=False, run_strategy=run_strategy)["metadata"]["uid"]
    let_go = yard.hold_back("pet")
    drain(policies=STOP, wait_timeout=5)
    early = drain(state="restored", wait_timeout=5)
    assert "its guest has yet to shut down" in early["msg"]
    let_go()
    assert outcomes(drain(state="restored")["started"]) == {"pet": "started"}
    assert yard.vmi("pet")["metadata"]["uid"] != uid
    assert yard.vm("pet")["spec"]["runStrategy"] == run_strategy


def test_never_leaves_a_vm_off_that_somebody_has_replaced(drain: Run, yard: Yard) -> None:
    """As `kubectl replace` does, with a file of old. Without its mark nothing tells whether it is to run."""
    yard.start_vm("pet", SOURCE, migratable=False, run_strategy="Manual")
    assert drain(policies=STOP)["left"] == []
    yard.replace_vm("pet")
    for _attempt in range(2):
        assert f"{yard.namespace}/pet: failed, it was stopped for the node" in drain(state="restored")["msg"]
    yard.start_again("pet")
    assert outcomes(drain(state="restored")["started"]) == {"pet": "started"}
    assert drain(state="restored")["started"] == []


def test_never_goes_on_when_the_cordon_is_taken_away(drain: Run, relay: Proxy, yard: Yard) -> None:
    """In mid-drain, when somebody's VM comes at once to what looks like a free node."""
    yard.start_vm("vm", SOURCE)
    yard.start_vm("later", SOURCE)

    def take_away() -> None:
        yard.uncordon(SOURCE)
        yard.start_vm("newcomer", SOURCE)

    moment = relay.at("POST", MIGRATING, act=take_away)
    result = drain()
    assert moment.met == 1
    assert result["error"]["reason"] == "NotCordoned"
    assert "somebody has uncordoned it since it was taken" in result["msg"]
    assert re.search(r"it was still cordoned at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["msg"])
    assert f"vm {yard.namespace}/newcomer" in result["msg"]
    assert yard.node_of("newcomer") == SOURCE


def test_never_forgets_a_vm_that_comes_between_look_and_cordon(drain: Run, relay: Proxy, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    moment = relay.at("PATCH", f"/api/v1/nodes/{SOURCE}", act=lambda: yard.start_vm("newcomer", SOURCE))
    result = drain()
    assert (moment.met, result["left"]) == (1, [])
    assert outcomes(result["moves"]) == {"vm": "migrated", "newcomer": "migrated"}
    assert SOURCE not in {yard.node_of("vm"), yard.node_of("newcomer")}


def test_never_maintains_a_node_with_a_vm_on_it(drain: Run, yard: Yard) -> None:
    """It came between the drain and the maintenance, as it tolerates the cordon or while that was away for a moment."""
    assert drain()["left"] == []
    assert drain(state="verified")["left"] == []
    yard.start_vm("newcomer", SOURCE, tolerations=[{"operator": "Exists"}])
    found = drain(state="verified")
    assert (found["error"]["reason"], found["changed"]) == ("NotEmpty", False)
    assert f"vm {yard.namespace}/newcomer" in found["msg"]
    yard.uncordon(SOURCE)
    gone = drain(state="verified")
    assert (gone["error"]["reason"], "somebody has uncordoned it" in gone["msg"]) == ("NotCordoned", True)
    with yard.cordon(SOURCE):
        assert drain(state="verified")["error"]["reason"] == "CordonedByOther"


def test_never_holds_a_run_twice(testbed: RunningTestbed, tmp_path: Path) -> None:
    """The first is at a task of its own, of which nobody knows how long it takes; then it is killed."""
    gate, began = tmp_path / "gate", tmp_path / "began"
    tasks: list[playbooks.Task] = [
        {"virtops.kubevirt.maintenance_run": {"run": "never-twice"}},
        {"ansible.builtin.file": {"path": str(began), "state": "touch"}},
        {"ansible.builtin.wait_for": {"path": str(gate), "timeout": 300, "sleep": 1}},
        {"virtops.kubevirt.maintenance_run": {"run": "never-twice", "state": "released"}},
    ]
    defaults = {"group/virtops.kubevirt.all": {"kubeconfig": str(testbed.kubeconfig)}}
    play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
    playbook = tmp_path / "run.yml"
    playbook.write_text(yaml.safe_dump([play]))
    first = playbooks.begin(playbook)
    try:
        wait_for("the first to hold the run", began.exists, 60)
        refused = playbooks.run(playbook)
        assert refused.returncode != 0
        assert re.search(r"it is held by .*; it is renewed, so that invocation is alive", refused.stdout), (
            refused.stdout
        )
        assert first.poll() is None
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    gate.touch()
    done = playbooks.run(playbook)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not testbed.api.items(
        resource_path("coordination.k8s.io/v1", "leases", "medik8s-leases"),
        labelSelector="virtops.kubevirt/run=never-twice",
    )


def test_never_goes_on_after_it_has_stood_still(
    relay: Proxy, proxy: tuple[str, Proxy], yard: Yard, run: ModuleRunner, tmp_path: Path
) -> None:
    """The controller is paused while its first migration is asked for, and has lost the run when it wakes up.

    It is ended then, or the task notices first.
    """
    names = ("first", "second", "third")
    with yard.emptied_afterwards():
        for name in names:  # KubeVirt moves two of a node at a time
            yard.start_vm(name, SOURCE)
        held, failure = {"run": "never-paused"}, tmp_path / "failure.json"
        invocation = {"run": "never-paused", "invocation": "{{ held.invocation_id }}"}
        work: list[playbooks.Task] = [
            {"virtops.kubevirt.maintenance_run": held, "register": "held"},
            {"virtops.kubevirt.node_drain": {"name": SOURCE, "owner": "never-paused", "cordon": True, **invocation}},
        ]
        tasks = [{"block": work, "rescue": [playbooks.keep("ansible_failed_result", failure)]}]
        defaults = {"group/virtops.kubevirt.all": {"kubeconfig": proxy[0]}}
        play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}
        playbook = tmp_path / "run.yml"
        playbook.write_text(yaml.safe_dump([play]))
        going: subprocess.Popen[bytes]
        moment = relay.at("POST", MIGRATING, act=lambda: _stand_still(psutil.Process(going.pid), yard))
        try:
            with playbooks.begin(playbook) as going:
                going.wait(300)
            assert moment.met == 1
            noticed = json.loads(failure.read_text())["error"]["reason"] if failure.exists() else ""
            assert going.returncode == -signal.SIGTERM or noticed == "RunLost"
            assert sum(migrations(yard, name) for name in names) <= 2
        finally:
            run(node_maintenance, kubeconfig=proxy[0], name=SOURCE, owner="never-paused", state="uncordoned")


def _stand_still(process: psutil.Process, yard: Yard) -> None:
    """For longer than the run's Lease is there: somebody takes it away meanwhile."""
    stopped = [process, *process.children(recursive=True)]
    try:
        for each in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.suspend()
        leases = resource_path("coordination.k8s.io/v1", "leases", "medik8s-leases")
        for lease in yard.testbed.api.items(leases, labelSelector="virtops.kubevirt/run=never-paused"):
            if not lease["metadata"]["name"].startswith("node-"):
                yard.testbed.api.delete(f"{leases}/{lease['metadata']['name']}")
        time.sleep(8)  # longer than what was seen before counts
    finally:
        for each in reversed(stopped):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.resume()


@pytest.mark.parametrize("foreign_cordon", ["fail", "keep"])
def test_never_gives_back_a_node_that_somebody_else_has(run: ModuleRunner, yard: Yard, foreign_cordon: str) -> None:
    theirs: dict[str, Any] = {"kubeconfig": str(yard.testbed.kubeconfig), "name": OTHER, "owner": "others"}
    ours = {**theirs, "owner": "test", "foreign_cordon": foreign_cordon}
    run(node_maintenance, **theirs)
    refused = run(node_maintenance, **ours, state="uncordoned")
    assert (refused["error"]["reason"], yard.cordoned(OTHER)) == ("LeaseHeld", True)
    assert "others holds its lease" in refused["msg"]
    run(node_maintenance, **theirs, state="uncordoned")
    assert not yard.cordoned(OTHER)


def test_never_takes_another_cluster_for_an_empty_one(drain: Run, relay: Proxy, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    own = yard.testbed.api.get(resource_path("v1", "namespaces", name="kube-system"))["metadata"]["uid"]

    def another(namespace: dict[str, Any]) -> dict[str, Any]:
        return {**namespace, "metadata": {**namespace["metadata"], "uid": "another"}}

    relay.at("GET", "/api/v1/namespaces/kube-system", only=None, change=another)
    for state in ("drained", "verified", "restored"):
        result = drain(state=state, cluster_uid=own)
        assert (result["error"]["reason"], result.get("changed")) == ("OtherCluster", None)
    assert not yard.cordoned(SOURCE)


def test_never_stops_a_vm_that_could_move_later(drain: Run, run: ModuleRunner, yard: Yard) -> None:
    """Both nodes that it could go to are in somebody's maintenance, which ends."""
    uid = yard.start_vm("vm", SOURCE, run_strategy="Always")["metadata"]["uid"]
    theirs: dict[str, Any] = {"kubeconfig": str(yard.testbed.kubeconfig), "owner": "others"}
    for node in (TARGET, OTHER):
        run(node_maintenance, **theirs, name=node)
    path = resource_path("v1", "nodes", name=OTHER)
    change = {"spec": {"unschedulable": None}, "metadata": {"annotations": {"virtops.kubevirt/cordon": None}}}
    yard.when("our cordon", lambda: yard.cordoned(SOURCE), partial(yard.testbed.api.patch, path, change))
    with listener() as heard:
        early = drain(policies=STOP, wait_timeout=20, _progress=heard.path)
    for node in (TARGET, OTHER):
        run(node_maintenance, **theirs, name=node, state="uncordoned")
    assert early.get("interrupted") == [], early
    assert drain(policies=STOP)["left"] == []
    assert (yard.vmi("vm")["metadata"]["uid"], yard.node_of("vm") != SOURCE) == (uid, True)


def test_never_stops_a_vm_whose_other_nodes_restart(drain: Run, run: ModuleRunner, yard: Yard) -> None:
    """As above, when that maintenance is at its reboot, and nothing could start there."""
    uid = yard.start_vm("vm", SOURCE, run_strategy="Always")["metadata"]["uid"]
    theirs: dict[str, Any] = {"kubeconfig": str(yard.testbed.kubeconfig), "owner": "others"}
    for node in (TARGET, OTHER):
        run(node_maintenance, **theirs, name=node)
        yard.testbed.inject("node-reboot", "--node", node, "--duration", "600s")
    try:
        wait_for("both to be down", lambda: yard.is_down(TARGET) and yard.is_down(OTHER))
        early = drain(policies=STOP, wait_timeout=5)
    finally:
        yard.testbed.inject("clear")
    assert early.get("interrupted") == [], early
    assert "which could take it, is cordoned by others" in str(early["left"]), early
    wait_for("both to be back", lambda: not yard.is_down(TARGET) and not yard.is_down(OTHER))
    for node in (TARGET, OTHER):
        run(node_maintenance, **theirs, name=node, state="uncordoned")
    assert drain(policies=STOP)["left"] == []
    assert (yard.vmi("vm")["metadata"]["uid"], yard.node_of("vm") != SOURCE) == (uid, True)


def test_never_migrates_twice_because_an_answer_was_lost(drain: Run, relay: Proxy, yard: Yard) -> None:
    yard.start_vm("vm", SOURCE)
    lost = relay.at("POST", MIGRATING, lost=True)
    result = drain()
    assert (lost.met, outcomes(result["moves"])) == (1, {"vm": "migrated"})
    assert migrations(yard, "vm") == 1


def test_never_restarts_twice_because_an_answer_was_lost(drain: Run, relay: Proxy, yard: Yard) -> None:
    yard.start_vm("pet", SOURCE, migratable=False, run_strategy="Manual")
    lost = relay.at("PUT", r".*/virtualmachines/pet/restart", lost=True)
    again = relay.at("PUT", r".*/virtualmachines/pet/restart", only=None)
    (entry,) = drain(policies=RESTART)["interrupted"]
    assert (lost.met, again.met) == (1, 0)
    assert (entry["outcome"], entry["target_node"]) == ("restarted", yard.node_of("pet"))


@pytest.mark.parametrize("policies", [STOP, RESTART], ids=["stop", "restart"])
def test_never_says_that_a_replica_waits_for_the_node(drain: Run, yard: Yard, policies: Any) -> None:
    """Its set replaces it at once elsewhere, and that is what is said."""
    name = yard.start_replica("set", SOURCE)
    (entry,) = drain(policies=policies)["interrupted"]
    assert (entry["name"], entry["outcome"], entry["owner"]) == (name, "restarted", "set")
    assert entry["target_node"] == yard.node_of(entry["successor"]) != SOURCE


def test_never_dies_of_one_pod(drain: Run, relay: Proxy, yard: Yard) -> None:
    """A webhook that forbids the eviction of one pod holds back that one."""
    stays, goes = yard.deploy("stays", SOURCE), yard.deploy("goes", SOURCE)
    words = 'admission webhook "guard.example" denied the request: not on my watch'
    relay.at("POST", rf".*/pods/{stays}/eviction", only=None, refused=(403, "Forbidden", words))
    result = drain(wait_timeout=15)
    assert outcomes(result["evicted"])[goes] == "evicted"
    (left,) = result["left"]
    assert (left["name"], "not on my watch" in left["why"]) == (stays, True)


def test_never_asks_about_kubevirts_own_pods(drain: Run, yard: Yard) -> None:
    """All of them have scratch data, so the first command of every newcomer would end there."""
    with yard.kubevirts_own("virt-exportproxy", SOURCE) as name:
        result = drain()
    assert (outcomes(result["evicted"]), result["left"]) == ({name: "evicted"}, [])


@pytest.mark.parametrize(
    "missing",
    [("create", "virtualmachineinstancemigrations"), ("update", "virtualmachines/start")],
    ids=["migrate", "start"],
)
def test_never_begins_what_a_missing_right_would_end(drain: Run, yard: Yard, missing: tuple[str, str]) -> None:
    """Nor stops a VM that nobody could start again once the node has been rebooted."""
    yard.start_vm("vm", SOURCE)
    needs = [
        Need(need.title, {right: why for right, why in need.reasons.items() if (right.verb, right.resource) != missing})
        for need in MODULES["node_drain"]
    ]
    with account(yard.testbed, yard.namespace, needs) as kubeconfig:
        result = drain(kubeconfig=kubeconfig, policies=STOP)
    assert (result["error"]["reason"], result.get("changed")) == ("RightsMissing", None)
    assert " ".join(missing) in result["msg"]
    assert not yard.cordoned(SOURCE)


def test_never_shows_a_secret(drain: Run, run: ModuleRunner, yard: Yard, tmp_path: Path) -> None:
    """Of a VMI: Ignition's, and what kubectl apply remembers of it."""
    yard.start_vm("vm", SOURCE)
    path = resource_path(KUBEVIRT, "virtualmachineinstances", yard.namespace, "vm")
    told = {
        "kubevirt.io/ignitiondata": SECRET,
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"userData": SECRET}}),
    }
    yard.testbed.api.patch(path, {"metadata": {"annotations": told}})
    kubeconfig = str(yard.testbed.kubeconfig)
    snapshot = tmp_path / "snapshot"
    move = {"namespace": yard.namespace, "name": "vm"}
    with listener() as heard:
        shown = [
            run(cluster_snapshot, kubeconfig=kubeconfig, path=str(snapshot)),
            drain(diff=True, check=True, _progress=heard.path),
            run(
                vmi_migration, kubeconfig=kubeconfig, vmis=[{**move, "target_node": TARGET}], wait_timeout=60, diff=True
            ),
        ]
    assert outcomes(shown[-1]["migrations"]) == {"vm": "migrated"}
    assert SECRET not in json.dumps(shown) + "".join((*heard.told, *heard.details))
    assert SECRET.encode() not in snapshot.read_bytes()

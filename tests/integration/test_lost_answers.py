# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of write to a real API server whose answer is lost, or that finds it busy: done once, and told once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import Invocation
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main as node_drain
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main as node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.node_topology import main as node_topology
from ansible_collections.virtops.kubevirt.plugins.modules.pod_eviction import main as pod_eviction
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main as vmi_migration
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_replicaset import main as vmi_replicaset

from faults.proxy import Proxy, proxied
from integration.draining import Yard
from testbed.waiting import wait_for
from unit.plugins.support.modules import ModuleRunner, Result

NODES = ("lost-0", "lost-1")
SOURCE, TARGET = NODES
STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]
OWNER = "lost"
HOLDER = Invocation("a1", user="joe", host="controller", pid=1)


@dataclass
class Stage:
    """Modules that reach the yard through a proxy, which is not yet in their way."""

    yard: Yard
    proxy: Proxy
    kubeconfig: str
    run_module: ModuleRunner
    come_to_grief: Callable[[], object]

    def run(self, main: Callable[[], None], **arguments: Any) -> Result:
        return self.run_module(main, kubeconfig=self.kubeconfig, **arguments)

    def maintain(self, **arguments: Any) -> Result:
        return self.run(node_maintenance, name=SOURCE, owner=OWNER, **arguments)

    def drain(self, **arguments: Any) -> Result:
        return self.run(node_drain, name=SOURCE, owner=OWNER, **{"cordon": True, "wait_timeout": 60, **arguments})

    def migrate(self, *names: str, **arguments: Any) -> Result:
        where = {"namespace": self.yard.namespace, "vmis": [{"name": name} for name in names], "wait_timeout": 60}
        return self.run(vmi_migration, **where, **arguments)

    def replicate(self, **arguments: Any) -> Result:
        where = {"namespace": self.yard.namespace, "name": "set", "wait_timeout": 60}
        return self.run(vmi_replicaset, **where, **arguments)

    @property
    def client(self) -> Client:
        return connect_by({"kubeconfig": self.kubeconfig}, 10)

    @property
    def run_hold(self) -> RunHold:
        return RunHold(self.client, "lost", HOLDER, self.yard.namespace)


Act: TypeAlias = Callable[[Stage], object]


@dataclass(frozen=True)
class Write:
    """method, path: of the request. act: prepares what is needed, then does it and says what it was told.

    That is the module's `changed`, and what became of the objects. times: how often the write is done in it. nth: which
    of them comes to grief.
    """

    method: str
    path: str
    act: Act
    told: object
    times: int = 1
    nth: int = 1


def outcome(result: Result, entries: str) -> tuple[bool, list[str]]:
    assert not result.get("failed"), result
    return result["changed"], [entry["outcome"] for entry in result[entries]]


def cordon(stage: Stage) -> object:
    stage.come_to_grief()
    return stage.maintain()["changed"]


def renew(stage: Stage) -> object:
    stage.maintain()
    stage.come_to_grief()
    return stage.maintain(lease_duration=7200)["changed"]


def give_back(stage: Stage) -> object:
    stage.maintain()
    stage.come_to_grief()
    return stage.maintain(state="uncordoned")["changed"]


def hold_elsewhere(stage: Stage) -> object:
    stage.come_to_grief()
    namespace = f"{stage.yard.namespace}-leases"
    changed = stage.maintain(lease_namespace=namespace)["changed"]
    stage.maintain(lease_namespace=namespace, state="uncordoned")
    stage.yard.testbed.drop_namespace(namespace)
    return changed


def label(*nodes: str) -> Act:
    def act(stage: Stage) -> object:
        topology = [{"nodes": list(nodes), "labels": {"example.com/lost": stage.yard.namespace}}]
        stage.come_to_grief()
        return stage.run(node_topology, topology=topology)["changed"]

    return act


def migrate(*names: str) -> Act:
    def act(stage: Stage) -> object:
        for name in names:
            stage.yard.start_vm(name, SOURCE)
        stage.come_to_grief()
        return outcome(stage.migrate(*names, target_node=TARGET), "migrations")

    return act


def cancel(*names: str) -> Act:
    def act(stage: Stage) -> object:
        for name in names:
            stage.yard.start_vm(name, SOURCE)
        stage.yard.never_end(*names)
        stage.migrate(*names, target_node=TARGET, wait=False)
        stage.come_to_grief()
        return outcome(stage.migrate(*names, state="absent"), "migrations")

    return act


def withdraw(*names: str) -> Act:
    def act(stage: Stage) -> object:
        for name in names:
            stage.yard.start_vm(name, SOURCE, eviction_strategy="LiveMigrate")
        stage.yard.never_end(*names)
        for name in names:
            stage.yard.evict(name)
        stage.come_to_grief()
        return outcome(stage.migrate(*names, state="absent"), "migrations")

    return act


def take_over(stage: Stage) -> object:
    """Of a VM that no node can take, from a node that was taken before: nothing else is done."""
    stage.yard.start_vm("vm", SOURCE, eviction_strategy="LiveMigrate")
    stage.maintain()
    with stage.yard.cordon(TARGET):
        stage.yard.evict("vm")
        wait_for("KubeVirt to migrate it", lambda: bool(stage.yard.migrations("vm")), 30)
        stage.come_to_grief()
        result = stage.drain(evacuations="take_over", wait_timeout=15)
        assert result.get("failed"), result
        wait_for("KubeVirt to end its migration", lambda: not stage.yard.migrations("vm"), 30)
    return result["changed"], "evacuationNodeName" in stage.yard.vmi("vm")["status"]


def evict(*names: str) -> Act:
    def act(stage: Stage) -> object:
        pods = [{"namespace": stage.yard.namespace, "name": stage.yard.deploy(name, SOURCE)} for name in names]
        stage.come_to_grief()
        return outcome(stage.run(pod_eviction, pods=pods, wait_timeout=60), "evicted")

    return act


def interrupt(policies: list[dict[str, str]], run_strategy: str, *names: str) -> Act:
    def act(stage: Stage) -> object:
        for name in names:
            stage.yard.start_vm(name, SOURCE, migratable=False, run_strategy=run_strategy)
        stage.come_to_grief()
        return outcome(stage.drain(policies=policies), "interrupted")

    return act


def stop_replica(stage: Stage) -> object:
    stage.yard.start_replica("set", SOURCE)
    with stage.yard.cordon(TARGET):
        stage.come_to_grief()
        return outcome(stage.drain(policies=STOP), "interrupted")


def await_replica(stage: Stage) -> object:
    stage.yard.start_replica("set", SOURCE)
    with stage.yard.cordon(TARGET):
        stage.drain(policies=STOP)
    stage.maintain(state="uncordoned")
    stage.come_to_grief()
    return outcome(stage.drain(state="restored"), "started")


def start(stage: Stage) -> object:
    stage.drain(state="restored")  # forgets what the node notes of earlier tests' VMs
    stage.yard.start_vm("pet", SOURCE, migratable=False, run_strategy="Manual")
    stage.drain(policies=STOP)
    stage.maintain(state="uncordoned")
    stage.come_to_grief()
    return outcome(stage.drain(state="restored"), "started")


def create(stage: Stage) -> object:
    stage.come_to_grief()
    return stage.replicate(replicas=1, template=TEMPLATE, wait=False)["changed"]


def change(**arguments: Any) -> Act:
    def act(stage: Stage) -> object:
        stage.replicate(replicas=1, template=TEMPLATE, wait=False)
        wait_for("virt-controller to know the replica set", lambda: _is_known(stage), 30)
        stage.come_to_grief()
        return stage.replicate(wait=False, **arguments)["changed"]

    return act


def _is_known(stage: Stage) -> bool:
    """Whether virt-controller has written on it what it writes besides the status."""
    found = stage.yard.testbed.api.get(f"{SETS.replace('[^/]+', stage.yard.namespace)}/set")
    return "kubevirt.io/latest-observed-api-version" in found["metadata"].get("annotations", {})


def delete(stage: Stage) -> object:
    stage.replicate(replicas=1, template=TEMPLATE, wait=False)
    stage.come_to_grief()
    return stage.replicate(state="absent")["changed"]


def hold(stage: Stage) -> object:
    stage.come_to_grief()
    taken, released = stage.run_hold.take(0), stage.run_hold.release()
    return taken.before is None and released is not None


def hold_on(stage: Stage) -> object:
    stage.run_hold.take(0)
    stage.come_to_grief()
    stage.run_hold.renew()
    return stage.run_hold.release() is not None


def remember(*contents: bytes) -> Act:
    def act(stage: Stage) -> object:
        store = RunStore(stage.client, "lost", stage.yard.namespace)
        stage.come_to_grief()
        generations = [store.put("plan", content).generation for content in contents]
        return generations, store.delete_all()

    return act


# A document that cannot be packed into one object: two chunks and the head.
LARGE = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(20_000))
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "set"}},
    "spec": {"terminationGracePeriodSeconds": 0, "domain": {"devices": {}, "memory": {"guest": "64Mi"}}},
}
OTHER = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "terminationGracePeriodSeconds": 5}}
NODE, LEASES = f"/api/v1/nodes/{SOURCE}", "/apis/coordination.k8s.io/v1/namespaces/[^/]+/leases"
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/[^/]+"
VM = f"{KUBEVIRT}/virtualmachines/pet"
ACTS = "/apis/subresources.kubevirt.io/v1/namespaces/[^/]+"
WITHDRAWAL, EVICTION = f"{ACTS}/.*/evacuate/cancel", "/api/v1/namespaces/[^/]+/pods/.*/eviction"
MIGRATIONS = f"{KUBEVIRT}/virtualmachineinstancemigrations"
SETS = f"{KUBEVIRT}/virtualmachineinstancereplicasets"
CONFIG_MAPS = "/api/v1/namespaces/[^/]+/configmaps"

WRITES = {
    "node cordoned": Write("PATCH", NODE, cordon, True),
    "node's Lease created": Write("POST", LEASES, cordon, True),
    "node's Lease renewed": Write("PUT", f"{LEASES}/node-{SOURCE}", renew, False),
    "node given back": Write("PATCH", NODE, give_back, True),
    "node's Lease released": Write("DELETE", f"{LEASES}/node-{SOURCE}", give_back, True),
    "namespace created": Write("POST", "/api/v1/namespaces", hold_elsewhere, True),
    "node labelled": Write("PATCH", NODE, label(SOURCE), True),
    "second node labelled": Write("PATCH", "/api/v1/nodes/[^/]+", label(*NODES), True, times=2, nth=2),
    "migration created": Write("POST", MIGRATIONS, migrate("vm"), (True, ["migrated"])),
    "second migration created": Write(
        "POST", MIGRATIONS, migrate("vm", "other"), (True, ["migrated"] * 2), times=2, nth=2
    ),
    "migration cancelled": Write("DELETE", f"{MIGRATIONS}/.*", cancel("vm"), (True, ["cancelled"])),
    "second migration cancelled": Write(
        "DELETE", f"{MIGRATIONS}/.*", cancel("vm", "other"), (True, ["cancelled"] * 2), times=2, nth=2
    ),
    "evacuation withdrawn": Write("PUT", WITHDRAWAL, withdraw("vm"), (True, ["cancelled"])),
    "second evacuation withdrawn": Write(
        "PUT", WITHDRAWAL, withdraw("vm", "other"), (True, ["cancelled"] * 2), times=2, nth=2
    ),
    "evacuation taken over": Write("PUT", WITHDRAWAL, take_over, (True, False)),
    "migration of an evacuation cancelled": Write("DELETE", f"{MIGRATIONS}/.*", take_over, (True, False)),
    "pod evicted": Write("POST", EVICTION, evict("web"), (True, ["evicted"])),
    "second pod evicted": Write("POST", EVICTION, evict("web", "shop"), (True, ["evicted"] * 2), times=2, nth=2),
    "VM marked": Write("PATCH", VM, interrupt(STOP, "Manual", "pet"), (True, ["stopped"])),
    # The first is the cordon.
    "VM noted on its node": Write("PATCH", NODE, interrupt(STOP, "Manual", "pet"), (True, ["stopped"]), times=2, nth=2),
    "VM stopped": Write(
        "PUT", f"{ACTS}/virtualmachines/pet/stop", interrupt(STOP, "Manual", "pet"), (True, ["stopped"])
    ),
    "second VM stopped": Write(
        "PUT",
        f"{ACTS}/virtualmachines/[^/]+/stop",
        interrupt(STOP, "Manual", "pet", "other"),
        (True, ["stopped"] * 2),
        times=2,
        nth=2,
    ),
    "VM restarted": Write(
        "PUT", f"{ACTS}/virtualmachines/pet/restart", interrupt(RESTART, "Manual", "pet"), (True, ["restarted"])
    ),
    "VMI ended": Write(
        "DELETE", f"{KUBEVIRT}/virtualmachineinstances/pet", interrupt(RESTART, "Always", "pet"), (True, ["restarted"])
    ),
    "VM started": Write("PUT", f"{ACTS}/virtualmachines/pet/start", start, (True, ["started"])),
    "VM's mark changed": Write("PATCH", VM, start, (True, ["started"]), times=2),
    "VM's mark removed": Write("PATCH", VM, start, (True, ["started"]), times=2, nth=2),
    "VM's note removed": Write("PATCH", NODE, start, (True, ["started"])),
    "replica set marked": Write("PATCH", f"{SETS}/set", stop_replica, (True, ["stopped"])),
    "replica set's mark removed": Write("PATCH", f"{SETS}/set", await_replica, (True, ["started"])),
    "replica set created": Write("POST", SETS, create, True),
    "replica set scaled": Write("PUT", f"{SETS}/set", change(replicas=2), True),
    "replica set's template replaced": Write("PUT", f"{SETS}/set", change(template=OTHER), True),
    "replica set deleted": Write("DELETE", f"{SETS}/set", delete, True),
    "run held": Write("POST", LEASES, hold, True),
    "run's Lease renewed": Write("PUT", f"{LEASES}/virtops-run-lost", hold_on, True),
    "run released": Write("DELETE", f"{LEASES}/virtops-run-lost", hold, True),
    "document kept": Write("POST", CONFIG_MAPS, remember(b"{}"), ([1], 1)),
    "chunk kept": Write("POST", CONFIG_MAPS, remember(LARGE), ([1], 3), times=3, nth=2),
    "document replaced": Write("PUT", f"{CONFIG_MAPS}/.*", remember(b"{}", b"[]"), ([1, 2], 1)),
    "document replaced again": Write(
        "PUT", f"{CONFIG_MAPS}/.*", remember(b"{}", b"[]", b"{}"), ([1, 2, 3], 1), times=2, nth=2
    ),
    "document removed": Write("DELETE", f"{CONFIG_MAPS}/.*", remember(b"{}"), ([1], 1)),
    "chunk removed": Write("DELETE", f"{CONFIG_MAPS}/.*", remember(LARGE), ([1], 3), times=3, nth=2),
}
FAULTS = {"answer lost": {"lost": True}, "server busy": {"busy": True}}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WRITES)
def test_it_is_done_once_and_told_once(yard: Yard, run: ModuleRunner, tmp_path: Path, name: str, fault: str) -> None:
    """The nth time that it comes after all is prepared."""
    write, moments = WRITES[name], []
    with proxied(yard.testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy), yard.emptied_afterwards():

        def come_to_grief() -> None:
            proxy.carried_out.clear()
            moments.append(proxy.at(write.method, write.path, after=write.nth - 1, **FAULTS[fault]))

        stage = Stage(yard, proxy, str(kubeconfig), run, come_to_grief)
        try:
            assert write.act(stage) == write.told
            done = [path for method, path in proxy.carried_out if method == write.method]
        finally:
            proxy.moments.clear()
            stage.maintain(state="uncordoned", foreign_cordon="keep")
    assert [moment.met for moment in moments] == [1]
    assert len([path for path in done if re.fullmatch(write.path, path)]) == write.times, done

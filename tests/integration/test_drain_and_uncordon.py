# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles drain and uncordon: a node is not touched before it can be emptied, nor given back before it is fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from threading import Timer
from typing import Any

import pytest
import yaml

from integration.clusters import remove_deserted
from integration.draining import Yard
from integration.playbooks import Task, run
from integration.relay import relayed
from integration.simulator.lab import heartbeat, ready, schedulable
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

NODE, MATE = "back-0", "back-1"
DRAIN: Task = {"ansible.builtin.include_role": {"name": "virtops.kubevirt.drain"}}
UNCORDON: Task = {"ansible.builtin.include_role": {"name": "virtops.kubevirt.uncordon"}}
RESTORE: Task = {"ansible.builtin.include_role": {"name": "virtops.kubevirt.uncordon", "tasks_from": "restore"}}
# Of a run that has been seen to before it began: rights are not asked for.
IN_A_RUN: dict[str, Any] = {"uncordon_owner": "patch", "uncordon_run": "patch"}
SETTINGS = {"drain_delete_emptydir_data": True, "uncordon_wait_sleep": 1, "drain_owner": "us", "uncordon_owner": "us"}


@pytest.fixture(scope="module")
def api(testbed: RunningTestbed) -> Iterator[Api]:
    for name in (NODE, MATE):
        testbed.api.create("/api/v1/nodes", fake_node(name))
    wait_for("virt-handler on the nodes", lambda: served(testbed.api))
    yield testbed.api
    testbed.inject("clear")
    remove_deserted(testbed.api, (NODE, MATE))


def the_node(api: Api, name: str = NODE) -> Object:
    return api.get(resource_path("v1", "nodes", name=name))


def boot_id(api: Api) -> str:
    return str(the_node(api)["status"]["nodeInfo"]["bootID"])


def well(api: Api) -> bool:
    node = the_node(api)
    return ready(node) == "True" and schedulable(node) == "true"


def served(api: Api) -> bool:
    """Whether both nodes have a virt-handler that is up."""
    handlers = api.items("/api/v1/namespaces/kubevirt/pods", labelSelector="kubevirt.io=virt-handler")
    return {NODE, MATE} <= {pod["spec"].get("nodeName") for pod in handlers if pod["status"]["phase"] == "Running"}


def cordoned(api: Api, name: str = NODE) -> bool:
    return bool(the_node(api, name)["spec"].get("unschedulable"))


def play(
    kubeconfig: Path, folder: Path, *tasks: Task, nodes: tuple[str, ...] = (NODE,), **settings: Any
) -> CompletedProcess[str]:
    """Run tasks for nodes, with the roles' settings."""
    content = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {**SETTINGS, **settings},
        "module_defaults": {"group/virtops.kubevirt.all": {"kubeconfig": str(kubeconfig)}},
        "tasks": list(tasks),
    }
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump([content], sort_keys=False))
    return run(playbook, "--inventory", "".join(f"{name}," for name in nodes))


def told(done: CompletedProcess[str]) -> str:
    return done.stdout[-6000:] + done.stderr[-2000:]


def rebooting(testbed: RunningTestbed, before: str, *faults: list[str]) -> list[Task]:
    """A maintenance: the faults, then the wait for another boot ID and the kubelet."""
    launcher = [str(Path(__file__).parents[1] / "testbed" / "testbed"), "--name", testbed.name, "inject"]
    inject = [
        {"ansible.builtin.command": {"argv": [*launcher, *words]}, "delegate_to": "localhost"} for words in faults
    ]
    ready_status = "selectattr('type', 'eq', 'Ready') | map(attribute='status') | first"
    back: Task = {
        "kubernetes.core.k8s_info": {"kind": "Node", "name": NODE},
        "delegate_to": "localhost",
        "register": "found",
        "until": [
            f"found.resources[0].status.nodeInfo.bootID != '{before}'",
            f"found.resources[0].status.conditions | {ready_status} == 'True'",
        ],
        "retries": 30,
        "delay": 1,
    }
    return [*inject, back]


@pytest.mark.gate
def test_a_batch_is_not_cordoned_before_all_its_pods_may_go(
    testbed: RunningTestbed, api: Api, namespace: str, tmp_path: Path
) -> None:
    pods = resource_path("v1", "pods", namespace)
    lone: Object = {
        "metadata": {"name": "lone", "namespace": namespace},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]},
    }
    api.create(pods, lone)
    wait_for("the pod to run", lambda: api.get(f"{pods}/lone")["status"].get("phase") == "Running")
    stopped = play(testbed.kubeconfig, tmp_path, DRAIN, nodes=(MATE, NODE))
    assert stopped.returncode != 0, told(stopped)
    assert f"pod {namespace}/lone: nothing would replace it; set force if it may go" in told(stopped)
    assert not any(cordoned(api, name) for name in (NODE, MATE))
    # Its namespace's end takes longer, and the next test needs the node empty.
    api.delete(f"{pods}/lone")
    wait_for("the end of the pod", lambda: not api.items(pods))


def test_what_passes_is_waited_for(testbed: RunningTestbed, tmp_path: Path) -> None:
    source, target = "passing-0", "passing-1"
    with Yard.standing(testbed, (source, target)) as yard, yard.emptied_afterwards():
        uid = yard.start_vm("vm", source)["metadata"]["uid"]
        yard.back_up("vm", completed=False)
        late = play(testbed.kubeconfig, tmp_path, DRAIN, nodes=(source,), drain_wait_timeout=3)
        assert late.returncode != 0, told(late)
        assert "backup nightly of the VMI is in progress" in told(late)
        assert yard.node_of("vm") == source
        timer = Timer(5, yard.back_up, ["vm"], {"completed": True})
        timer.start()
        done = play(testbed.kubeconfig, tmp_path, DRAIN, UNCORDON, nodes=(source,))
        timer.join()
        assert done.returncode == 0, told(done)
        assert (yard.node_of("vm"), yard.vmi("vm")["metadata"]["uid"]) == (target, uid)


def test_what_was_evicted_and_cannot_leave_stays_by_choice(testbed: RunningTestbed, tmp_path: Path) -> None:
    """As a drain that was given up leaves it; KubeVirt would go on trying."""
    source, target = "evicted-0", "evicted-1"
    with Yard.standing(testbed, (source, target)) as yard, yard.emptied_afterwards(), yard.cordon(target):
        yard.start_vm("vm", source, eviction_strategy="LiveMigrate")
        yard.evict("vm")
        late = play(testbed.kubeconfig, tmp_path, UNCORDON, nodes=(source,), uncordon_wait_timeout=3)
        assert late.returncode != 0, told(late)
        assert f"these virtual machines to leave it: {yard.namespace}/vm." in told(late)
        assert "set uncordon_evacuations to withdraw to let them stay" in told(late)
        done = play(testbed.kubeconfig, tmp_path, UNCORDON, nodes=(source,), uncordon_evacuations="withdraw")
        assert done.returncode == 0, told(done)
        assert "evacuationNodeName" not in yard.vmi("vm")["status"]
        assert (yard.migrations("vm"), yard.node_of("vm")) == ([], source)


def test_a_node_is_done_before_what_was_stopped_for_it_runs(testbed: RunningTestbed, tmp_path: Path) -> None:
    """Else it is maintained once more because a VM is slow."""
    source = "slow-0"
    names = {"drain_owner": "patch", "uncordon_owner": "patch", "uncordon_run": "patch"}
    with Yard.standing(testbed, (source, "slow-1")) as yard, yard.emptied_afterwards():
        yard.start_vm("vm", source, migratable=False, run_strategy="Always")
        path = resource_path("kubevirt.io/v1", "virtualmachines", yard.namespace, "vm")

        def place(label: str | None) -> None:
            spec = {"nodeSelector": {"nowhere": label}}
            testbed.api.patch(path, {"spec": {"template": {"spec": spec}}})

        drained = play(
            testbed.kubeconfig, tmp_path, DRAIN, nodes=(source,), drain_policies=[{"policy": "stop"}], **names
        )
        assert drained.returncode == 0, told(drained)
        place("here")
        late = play(testbed.kubeconfig, tmp_path, UNCORDON, nodes=(source,), uncordon_wait_timeout=5, **names)
        assert late.returncode != 0, told(late)
        assert "start 1 of 1 VMs again" in told(late)
        assert not yard.cordoned(source)
        assert the_node(testbed.api, source)["metadata"]["labels"]["virtops.kubevirt/maintained"] == "patch"

        place(None)
        testbed.api.delete(resource_path("kubevirt.io/v1", "virtualmachineinstances", yard.namespace, "vm"))
        done = play(testbed.kubeconfig, tmp_path, RESTORE, nodes=(source,), **names)
        assert done.returncode == 0, told(done)
        assert yard.exists("vm")


def test_a_power_cycle_needs_a_sign_of_life_from_after_it(testbed: RunningTestbed, api: Api, tmp_path: Path) -> None:
    """Power is away for so short a time that nobody notices, and virt-handler does not come back."""
    before = boot_id(api)
    lose_power = ["node-lost", "--node", NODE, "--for", "2s"]
    dead = rebooting(testbed, before, ["silent-handler", "--node", NODE], lose_power)
    stopped = play(
        testbed.kubeconfig, tmp_path, DRAIN, *dead, UNCORDON, uncordon_rebooted=True, uncordon_wait_timeout=5
    )
    # By all that the node says it is well: only the boot ID tells that these are old words.
    assert well(api)
    assert boot_id(api) != before, told(stopped)
    assert stopped.returncode != 0, told(stopped)
    assert f"Cannot give back node {NODE}" in stopped.stdout + stopped.stderr, told(stopped)
    assert "which may be before the reboot" in stopped.stdout + stopped.stderr
    assert cordoned(api)

    testbed.inject("clear")
    words = heartbeat(the_node(api))
    alive = rebooting(testbed, boot_id(api), lose_power)
    done = play(testbed.kubeconfig, tmp_path, DRAIN, *alive, UNCORDON, uncordon_rebooted=True)
    assert done.returncode == 0, told(done)
    assert heartbeat(the_node(api)) > words
    assert not cordoned(api)


def test_an_api_server_that_is_away_for_a_while_is_waited_for(
    testbed: RunningTestbed, api: Api, tmp_path: Path
) -> None:
    with relayed(testbed.kubeconfig, tmp_path, refuses=8) as (kubeconfig, relay):
        done = play(kubeconfig, tmp_path, UNCORDON, **IN_A_RUN)
    assert done.returncode == 0, told(done)
    assert relay.refused == 8


def test_an_api_server_that_does_not_come_back_ends_the_wait(testbed: RunningTestbed, api: Api, tmp_path: Path) -> None:
    with relayed(testbed.kubeconfig, tmp_path, refuses=1_000_000) as (kubeconfig, _relay):
        done = play(kubeconfig, tmp_path, UNCORDON, uncordon_wait_timeout=3, **IN_A_RUN)
    assert done.returncode != 0
    assert f"Cannot give back node {NODE} after 3 s: the API server does not answer" in told(done)

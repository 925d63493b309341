# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a real API server: what they hold and remember, with the permissions that the documentation names."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import (
    Client,
    connect_by,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import DURATION, Invocation
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import FORGET, HOLD_RUN, REMEMBER

from faults import aftermath, invocation
from faults.proxy import proxied
from faults.scene import CONFIG_MAPS, LEASES, Scene, title
from integration.accounts import account
from integration.clusters import remove_deserted
from integration.draining import Yard
from integration.playbooks import Task, begin, run, run_tasks
from integration.simulator.lab import ENDLESS
from testbed.api import Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

NODE = "run-0"
# Seconds for which the API server is away: longer than a Lease lasts that is not renewed.
AWAY = DURATION + 3.0
HOLD = partial(Invocation, user="joe", host="controller", pid=1)


@pytest.fixture
def leases(testbed: RunningTestbed) -> Iterator[str]:
    """The namespace of the Leases."""
    name = testbed.namespace("leases")
    yield name
    testbed.drop_namespace(name)


@pytest.fixture
def client(testbed: RunningTestbed) -> Client:
    return connect_by({"kubeconfig": str(testbed.kubeconfig)}, 10)


@pytest.fixture
def limited(testbed: RunningTestbed, namespace: str, leases: str) -> Iterator[Client]:
    """A service account that may do in the namespace of the Leases what a run needs there, and nothing else."""
    with account(testbed, namespace, [HOLD_RUN, REMEMBER, FORGET], leases) as kubeconfig:
        yield connect_by({"kubeconfig": kubeconfig}, 10)


@pytest.mark.gate
def test_one_invocation_holds_a_run(client: Client, limited: Client, leases: str) -> None:
    first = RunHold(limited, "kernel", HOLD("a1"), leases)
    second = RunHold(client, "kernel", HOLD("b2"), leases)
    assert first.take(0).before is None
    with pytest.raises(Failure, match="it is held by invocation a1"):
        second.take(0)
    assert first.renew("me").renewer == "me"
    first.require()
    second.take(0, force=True)
    with pytest.raises(Failure, match="does not hold the run any more"):
        first.renew()
    assert first.release() is None
    assert second.release() is not None
    assert second.look() is None


@pytest.mark.gate
def test_what_a_run_remembers_is_kept(limited: Client, leases: str) -> None:
    store = RunStore(limited, "Kernel_1", leases)
    large = random.Random(7).randbytes(2_000_000)
    for number, content in enumerate((large, large[::-1], b"{}"), 1):
        assert store.put("plan", content).generation == number
        found = store.get("plan")
        assert found
        assert found.content == content
    store.put(f"record-{'n' * 240}", b"{}")
    assert store.names() == ["plan", f"record-{'n' * 240}"]
    assert store.delete_all() == 2
    assert store.names() == []


@pytest.fixture
def node(testbed: RunningTestbed) -> Iterator[str]:
    testbed.api.create("/api/v1/nodes", fake_node(NODE))
    yield resource_path("v1", "nodes", name=NODE)
    remove_deserted(testbed.api, (NODE,))


@pytest.mark.gate
def test_a_run_is_given_up(testbed: RunningTestbed, node: str, tmp_path: Path) -> None:
    maintenance = {"name": NODE, "owner": "kernel-7", "run": "kernel-7"}
    run_tasks(tmp_path / "take.yml", testbed.kubeconfig, [{"virtops.kubevirt.node_maintenance": maintenance}])
    lease = resource_path("coordination.k8s.io/v1", "leases", "medik8s-leases")
    assert testbed.api.items(lease, labelSelector="virtops.kubevirt/run=kernel-7")
    settings = {"abort_run": "kernel-7", "abort_kubeconfig": str(testbed.kubeconfig)}
    abort = tmp_path / "abort.yml"
    abort.write_text(yaml.safe_dump([{"ansible.builtin.import_playbook": "virtops.kubevirt.abort", "vars": settings}]))
    foretold = run(abort, "--check", "--diff")
    assert f"-cordon of node {NODE}" in foretold.stdout
    assert testbed.api.get(node)["spec"]["unschedulable"]
    done = run(abort)
    assert "0 migrations cancelled, 1 nodes given back" in done.stdout, done.stdout + done.stderr
    assert not testbed.api.get(node)["spec"].get("unschedulable")
    assert not testbed.api.items(lease, labelSelector="virtops.kubevirt/run=kernel-7")
    assert "changed=0" in run(abort).stdout


def test_a_run_that_was_killed_is_given_up(testbed: RunningTestbed, tmp_path: Path) -> None:
    """One node is done, a VM of the next one on its way and another one stopped: only the label of the first stays.

    Who cannot be migrated leaves last, so the first migration of the other one has failed by then. The run's task has
    a session of its own and outlives the kill for a moment: in place of the second migration it begins no third one.
    """
    done, source, target = "killed-0", "killed-1", "killed-2"
    with (
        Yard.standing(testbed, (done, source, target)) as yard,
        yard.emptied_afterwards(),
        proxied(testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy),
    ):
        # KubeVirt ends the migration of a small one soon.
        yard.start_vm("moving", source, run_strategy="Always", eviction_strategy="LiveMigrate", memory="16Gi")
        yard.start_vm("off", source, run_strategy="Always", migratable=False)
        testbed.inject(*ENDLESS, "--vmi", f"{yard.namespace}/moving")
        scene = Scene(testbed, tmp_path, "killed", (done, source), 1, random.Random(0), kubeconfig, proxy)
        scene.before = {title(vmi): vmi["metadata"]["uid"] for vmi in scene.vmis()}
        scene.known = {item["metadata"]["uid"] for path in (LEASES, CONFIG_MAPS) for item in testbed.api.items(path)}
        going = invocation.begin(scene, scene.run, tmp_path / "run.log")
        try:
            in_flight = "one VM to be stopped, and the other one to be on its way for the second time"
            wait_for(in_flight, lambda: not yard.exists("off") and bool(yard.migrations("moving")), 120)
        finally:
            going.end()
        assert list(aftermath.left_behind(scene)), "there is something to be undone"

        code = invocation.give_up(scene, scene.run)
        told = (tmp_path / "killed-abort.log").read_text()
        assert code == 0, told
        assert "1 migrations cancelled, 1 nodes given back, 1 virtual machines started." in told
        assert f"Run killed was done with {done}." in told
        assert [*aftermath.left_behind(scene), *aftermath.off(scene)] == []
        assert (yard.node_of("moving"), yard.migrations("moving")) == (source, [])
        labelled = testbed.api.items("/api/v1/nodes", labelSelector="virtops.kubevirt/maintained=killed")
        assert [node["metadata"]["name"] for node in labelled] == [done]

        assert invocation.give_up(scene, scene.run) == 0
        assert "changed=0" in (tmp_path / "killed-abort.log").read_text()


def test_never_takes_a_run_from_a_holder_that_lives_because_the_server_was_away(
    testbed: RunningTestbed, tmp_path: Path
) -> None:
    """The holder could not renew meanwhile, and hears of the server only when the other one has asked several times."""
    gate, began, back = tmp_path / "gate", tmp_path / "began", threading.Event()
    looks: list[float] = []

    def look() -> None:
        """Each but the first of the one that watches."""
        looks.append(time.monotonic())
        left = looks[0] + AWAY - looks[-1]
        if left > 0:
            time.sleep(left)
        elif sum(at >= looks[0] + AWAY for at in looks) == 3:
            back.set()

    released = {"virtops.kubevirt.maintenance_run": {"run": "outage", "state": "released"}, "register": "released"}
    work: list[Task] = [
        {"ansible.builtin.file": {"path": str(began), "state": "touch"}},
        {"ansible.builtin.wait_for": {"path": str(gate), "timeout": 300, "sleep": 1}},
        released,
        {"ansible.builtin.assert": {"that": "released is changed"}},
    ]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with (
        proxied(testbed.kubeconfig, tmp_path / "first", 0) as (ours, before_first),
        proxied(testbed.kubeconfig, tmp_path / "second", 0) as (theirs, before_second),
    ):
        first = begin(_holding(tmp_path / "first", ours, work))
        try:
            wait_for("the first to hold the run", began.exists)
            holder = _held(testbed)
            for method in ("GET", "PUT"):
                before_first.at(method, f"{LEASES}/virtops-run-outage", only=None, act=back.wait)
            before_second.at("GET", f"{LEASES}/virtops-run-outage")
            before_second.at("GET", f"{LEASES}/virtops-run-outage", only=None, act=look)
            refused = run(_holding(tmp_path / "second", theirs, []))
            told = refused.stdout + refused.stderr
            assert refused.returncode != 0, told
            assert _held(testbed) == holder
            assert re.search(r"it is held by .*; it is renewed, so that invocation is alive", told), told
            assert looks[-1] - looks[0] >= AWAY
            gate.touch()
            assert first.wait(120) == 0, "the first had lost the run"
        finally:
            back.set()
            if first.poll() is None:
                os.killpg(first.pid, signal.SIGKILL)
            first.wait()


def _holding(folder: Path, kubeconfig: Path, work: list[Task]) -> Path:
    """A playbook that holds the run, and does something then."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "module_defaults": {"group/virtops.kubevirt.all": {"kubeconfig": str(kubeconfig)}},
        "tasks": [{"virtops.kubevirt.maintenance_run": {"run": "outage"}}, *work],
    }
    playbook = folder / "hold.yml"
    playbook.write_text(yaml.safe_dump([play]))
    return playbook


def _held(testbed: RunningTestbed) -> tuple[object, object]:
    """By whom, and how often that has changed."""
    spec: Object = testbed.api.get(f"{LEASES}/virtops-run-outage")["spec"]
    return spec["holderIdentity"], spec.get("leaseTransitions", 0)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module vmi_migration against a real virt-controller and scheduler: failures in flight, least privilege, selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import migrations_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import (
    create,
    manifest,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import own_node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from integration.accounts import account
from integration.clusters import evict, launchers, refreshed, remove_deserted
from integration.simulator.lab import Lab
from testbed.api import ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import WEBHOOK
from unit.plugins.support.modules import ModuleRunner

NODES = ("mig-0", "mig-1")


@pytest.fixture(scope="module")
def nodes(testbed: RunningTestbed) -> Iterator[tuple[str, ...]]:
    paths = [resource_path("v1", "nodes", name=name) for name in NODES]
    for name in NODES:
        testbed.api.create("/api/v1/nodes", fake_node(name))
    wait_for("the nodes to report", lambda: all("conditions" in testbed.api.get(path)["status"] for path in paths), 30)
    yield NODES
    remove_deserted(testbed.api, NODES)


@pytest.fixture
def lab(testbed: RunningTestbed, namespace: str, nodes: tuple[str, ...]) -> Iterator[Lab]:
    lab = Lab(testbed, namespace, nodes)
    lab.settle()
    yield lab
    lab.settle()


@pytest.fixture
def migrate(lab: Lab, run: ModuleRunner) -> Any:
    connection: dict[str, Any] = {"kubeconfig": str(lab.testbed.kubeconfig), "namespace": lab.namespace, "name": "vm"}
    return partial(run, main, **connection)


def other_node(lab: Lab) -> str:
    return next(name for name in NODES if name != lab.node_of())


def in_flight(migrate: Any, lab: Lab) -> Object:
    """The VM's entry in the result of a run that has left a migration behind, which does not end by itself."""
    lab.never_end()
    target = other_node(lab)
    entry: Object = {"phases": []}
    while [step["phase"] for step in entry["phases"]][-1:] != ["Running"]:
        (entry,) = migrate(target_node=target, wait_timeout=3)["migrations"]
    return entry


def flying(lab: Lab) -> list[str]:
    """Names of unfinished migrations."""
    found = lab.testbed.api.items(migrations_path(lab.namespace))
    ended = ("Succeeded", "Failed")
    return [item["metadata"]["name"] for item in found if (item.get("status") or {}).get("phase") not in ended]


@contextmanager
def once_followed(act: Callable[..., object], *arguments: Any) -> Iterator[str]:
    """Do something as soon as the module follows a migration, which it tells by the option whose value is given."""
    with listener() as heard, ThreadPoolExecutor(1) as pool:

        def do() -> None:
            wait_for("the module to follow the migration", lambda: bool(heard.details), 30)
            act(*arguments)

        done = pool.submit(do)
        yield heard.path
        done.result()


@pytest.mark.parametrize("phase", ["Scheduling", "PreparingTarget", "Running", "TargetPod"])
def test_a_failure_in_any_phase_is_tried_again_and_explained(migrate: Any, lab: Lab, phase: str) -> None:
    source = lab.start()["status"]["nodeName"]
    lab.inject("migration-failure", "--vmi", f"{lab.namespace}/vm", "--phase", phase)
    (entry,) = migrate(target_node=other_node(lab), retries=1)["migrations"]
    assert (entry["outcome"], entry["attempts"], entry["node"]) == ("failed", 2, source)
    assert entry["failure_reason"] not in ("", "KubeVirt gives no reason")
    lab.settle()
    (entry,) = migrate(target_node=other_node(lab))["migrations"]
    assert (entry["outcome"], entry["source_node"]) == ("migrated", source)


def test_a_guest_that_never_converges_is_explained(migrate: Any, lab: Lab) -> None:
    lab.start()
    lab.inject("never-converges", "--vmi", f"{lab.namespace}/vm")
    result = migrate(target_node=other_node(lab), retries=0)
    assert "Live migration is not completed after 150 seconds and has been aborted" in result["msg"]


@pytest.mark.gate
def test_a_migration_that_somebody_deletes_is_not_repeated(migrate: Any, lab: Lab) -> None:
    lab.start()
    entry = in_flight(migrate, lab)
    path = resource_path("kubevirt.io/v1", "virtualmachineinstancemigrations", lab.namespace, entry["migration"])
    with once_followed(lab.api.delete, path) as progress:
        result = migrate(target_node=entry["target_node"], _progress=progress)
    assert f"somebody deleted VirtualMachineInstanceMigration {entry['migration']}" in result["msg"]


def test_a_guest_that_shuts_down_on_its_way_is_named(migrate: Any, lab: Lab) -> None:
    lab.start()
    entry = in_flight(migrate, lab)
    with once_followed(lab.inject, "guest-shutdown", "--vmi", f"{lab.namespace}/vm") as progress:
        result = migrate(target_node=entry["target_node"], retries=2, _progress=progress)
    assert result["migrations"][0]["outcome"] == "failed"
    assert f"{lab.namespace}/vm: the VM ended during its migration" in result["msg"]


def test_it_is_cancelled_in_flight(migrate: Any, lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    in_flight(migrate, lab)
    (entry,) = migrate(state="absent")["migrations"]
    assert (entry["outcome"], entry["node"]) == ("cancelled", source)


def test_an_evacuation_is_withdrawn_with_its_migration(migrate: Any, lab: Lab) -> None:
    """With no more than the rights of the guide: KubeVirt would go on with it until the VM has left."""
    vmi = lab.start(evictionStrategy="LiveMigrate")
    lab.never_end()
    (pod,) = launchers(lab.testbed.api, vmi)
    with pytest.raises(ApiError, match="Eviction triggered evacuation"):
        evict(lab.testbed.api, pod)
    wait_for("KubeVirt to migrate it", lambda: bool(flying(lab)), 30)
    with account(lab.testbed, lab.namespace, MODULES["vmi_migration"]) as kubeconfig:
        (entry,) = migrate(kubeconfig=kubeconfig, state="absent")["migrations"]
        assert (entry["outcome"], entry["node"]) == ("cancelled", vmi["status"]["nodeName"])
        assert "evacuationNodeName" not in refreshed(lab.testbed.api, vmi)["status"]
        assert not migrate(kubeconfig=kubeconfig, state="absent")["changed"]
    assert not flying(lab)


def test_the_same_request_finds_its_migration(lab: Lab) -> None:
    """virt-api refuses it because the VMI is migrating, as it is asked before the name is looked at."""
    lab.start()
    lab.never_end()
    client = connect_by({"kubeconfig": str(lab.testbed.kubeconfig)}, 30)
    item = manifest(lab.namespace, "vm-1", "vm", {"kubernetes.io/hostname": other_node(lab)}, "mine", 60)
    first = create(client, item)
    with pytest.raises(Failure, match=f'admission webhook "{WEBHOOK}" denied the request: in-flight') as told:
        client.post(migrations_path(lab.namespace), "migrate", item, done=None)
    assert told.value.status == 400
    assert create(client, item)["metadata"]["uid"] == first["metadata"]["uid"]


def test_what_a_vmi_asks_for_itself_is_what_kubevirt_asks_for(lab: Lab) -> None:
    vmi = lab.start(nodeSelector={"kubernetes.io/os": "linux"})
    (pod,) = lab.pods().values()
    own = own_node_selector(vmi)
    assert own.items() <= pod["spec"]["nodeSelector"].items()
    assert {"kubernetes.io/os", "kubernetes.io/arch", "kubevirt.io/schedulable"} <= set(own)
    assert any(key.startswith("machine-type.node.kubevirt.io/") for key in own)


@pytest.mark.gate
def test_the_rights_of_the_guide_are_enough(migrate: Any, lab: Lab) -> None:
    with account(lab.testbed, lab.namespace, MODULES["vmi_migration"]) as kubeconfig:
        lab.start()
        in_flight(partial(migrate, kubeconfig=kubeconfig), lab)
        assert migrate(kubeconfig=kubeconfig, state="absent")["migrations"][0]["outcome"] == "cancelled"

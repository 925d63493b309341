# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module vmi_migration against a real virt-controller and scheduler: failures in flight, least privilege, selectors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import own_node_selector
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import EXAMPLES, main

from integration.clusters import remove_deserted
from integration.simulator.lab import ENDLESS, Lab
from testbed.access import service_account_kubeconfig
from testbed.api import Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for
from unit.plugins.support.modules import ModuleRunner, Result, isolate

NODES = ("mig-0", "mig-1")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


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
def migrate(lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    isolate(monkeypatch, tmp_path)
    connection: dict[str, Any] = {"kubeconfig": str(lab.testbed.kubeconfig), "namespace": lab.namespace, "name": "vm"}
    return partial(ModuleRunner(capsys), main, **connection)


def other_node(lab: Lab) -> str:
    return next(name for name in NODES if name != lab.node_of())


def in_flight(migrate: Any, lab: Lab, **arguments: Any) -> Object:
    """Arguments that go on with a migration that is running in the guest and does not end by itself."""
    lab.inject(*ENDLESS, "--vmi", f"{lab.namespace}/vm")
    arguments = {"target_node": other_node(lab), **arguments}
    state, phases = None, [""]
    while phases[-1] != "Running":
        result = migrate(**arguments, _round={"elapsed": 0, "seconds": 20, "state": state})
        state = result["_round"]
        phases = [step["phase"] for step in state["moves"][0]["phases"]] or [""]
    return {**arguments, "_round": {"elapsed": 0, "seconds": 30, "state": state}}


def finished(migrate: Any, arguments: Object) -> Result:
    while True:
        result: Result = migrate(**arguments)
        if "_round" not in result:
            return result
        arguments["_round"]["state"] = result["_round"]


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
    arguments = in_flight(migrate, lab)
    lab.api.delete(
        resource_path("kubevirt.io/v1", "virtualmachineinstancemigrations", lab.namespace, migration_name(arguments))
    )
    result = finished(migrate, arguments)
    assert f"somebody deleted VirtualMachineInstanceMigration {migration_name(arguments)}" in result["msg"]


def test_a_guest_that_shuts_down_on_its_way_is_named(migrate: Any, lab: Lab) -> None:
    lab.start()
    arguments = in_flight(migrate, lab, retries=2)
    lab.inject("guest-shutdown", "--vmi", f"{lab.namespace}/vm")
    result = finished(migrate, arguments)
    assert result["migrations"][0]["outcome"] == "failed"
    assert f"{lab.namespace}/vm: the VM ended during its migration" in result["msg"]


def test_it_is_cancelled_in_flight(migrate: Any, lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    in_flight(migrate, lab)
    (entry,) = migrate(state="absent")["migrations"]
    assert (entry["outcome"], entry["node"]) == ("cancelled", source)


def test_what_a_vmi_asks_for_itself_is_what_kubevirt_asks_for(lab: Lab) -> None:
    vmi = lab.start(nodeSelector={"kubernetes.io/os": "linux"})
    (pod,) = lab.pods().values()
    own = own_node_selector(vmi)
    assert own.items() <= pod["spec"]["nodeSelector"].items()
    assert {"kubernetes.io/os", "kubernetes.io/arch", "kubevirt.io/schedulable"} <= set(own)
    assert any(key.startswith("machine-type.node.kubevirt.io/") for key in own)


@pytest.mark.gate
def test_the_cluster_role_of_the_examples_is_enough(migrate: Any, lab: Lab) -> None:
    role: Object = next(
        task["kubernetes.core.k8s"]["definition"] for task in yaml.safe_load(EXAMPLES) if "kubernetes.core.k8s" in task
    )
    subject = {"kind": "ServiceAccount", "name": "mover", "namespace": lab.namespace}
    binding: Object = {
        "apiVersion": role["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": {"name": lab.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [subject],
    }
    kubeconfig = service_account_kubeconfig(lab.testbed.home, f"{lab.namespace}/mover")
    lab.api.apply(role)
    lab.api.apply(binding)
    try:
        lab.start()
        in_flight(partial(migrate, kubeconfig=str(kubeconfig)), lab)
        assert migrate(kubeconfig=str(kubeconfig), state="absent")["migrations"][0]["outcome"] == "cancelled"
    finally:
        lab.api.delete(f"{RBAC}/clusterrolebindings/{lab.namespace}")
        lab.api.delete(f"{RBAC}/clusterroles/{role['metadata']['name']}")


def migration_name(arguments: Object) -> str:
    """Of the migration in flight."""
    return str(arguments["_round"]["state"]["moves"][0]["migration"])

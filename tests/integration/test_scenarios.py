# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios in a real cluster: they settle, loading them again changes nothing, and what goes wrong is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.clusters import KUBEVIRT, loaded, remove_nodes, vmis
from testbed.api import Object, resource_path
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.scenarios.generator.profiles import PROFILES, Obstacle
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled

SPEC = GeneratorSpec(nodes=12, vmis=50, zones=3, seed=3)
# What virt-handler calls each obstacle.
REASONS = {
    Obstacle.BRIDGE: "InterfaceNotLiveMigratable",
    Obstacle.DISK: "DisksNotLiveMigratable",
    Obstacle.GPU: "HostDeviceNotLiveMigratable",
}


@pytest.fixture(scope="class")
def generated(testbed: RunningTestbed) -> Iterator[Scenario]:
    scenario = generate(SPEC)
    with loaded(testbed.api, scenario):
        yield scenario


def all_vmis(testbed: RunningTestbed, scenario: Scenario) -> list[Object]:
    return [vmi for namespace in scenario.namespaces for vmi in vmis(testbed.api, namespace)]


def state(testbed: RunningTestbed, scenario: Scenario) -> dict[str, str]:
    """By UID: where each VM runs, and what each workload's spec has gone through."""
    seen = {vmi["metadata"]["uid"]: vmi["status"]["nodeName"] for vmi in all_vmis(testbed, scenario)}
    for api_version, resource in (
        (KUBEVIRT, "virtualmachines"),
        (KUBEVIRT, "virtualmachineinstancereplicasets"),
        ("apps/v1", "deployments"),
    ):
        for obj in testbed.api.items(resource_path(api_version, resource)):
            seen[obj["metadata"]["uid"]] = f"generation {obj['metadata']['generation']}"
    return seen


class TestGenerated:
    def test_exactly_the_vms_with_an_obstacle_cannot_migrate(
        self, testbed: RunningTestbed, generated: Scenario
    ) -> None:
        expected = {profile.name: REASONS.get(profile.obstacle) for profile in PROFILES if profile.obstacle}
        found: dict[str, set[str | None]] = {}
        for vmi in all_vmis(testbed, generated):
            condition = next(c for c in vmi["status"]["conditions"] if c["type"] == "LiveMigratable")
            reason = None if condition["status"] == "True" else condition["reason"]
            found.setdefault(vmi["metadata"]["labels"]["profile"], set()).add(reason)
        assert set(expected) <= set(found), "the cluster is too small to show every obstacle"
        assert found == {profile: {expected.get(profile)} for profile in found}

    def test_loading_again_changes_nothing(self, testbed: RunningTestbed, generated: Scenario) -> None:
        before = state(testbed, generated)
        load(testbed.api, generated, timeout=60)
        assert state(testbed, generated) == before


def test_a_pod_without_a_place_is_named_with_the_schedulers_words(testbed: RunningTestbed, namespace: str) -> None:
    remove_nodes(testbed.api)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lost", "namespace": namespace},
        "spec": {
            "nodeSelector": {"nowhere": "true"},
            "containers": [{"name": "main", "image": "registry.example/x:1"}],
        },
    }
    scenario = Scenario("lost", (fake_node("only"), pod), Settled(pods=1, vmis=0))
    with pytest.raises(TestbedError, match="scenario lost does not run") as failure:
        load(testbed.api, scenario, timeout=10)
    words = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert f"pod {namespace}/lost is Pending: {words}" in str(failure.value)
    remove_nodes(testbed.api)


def test_a_vm_that_is_refused_is_named_with_the_servers_words(testbed: RunningTestbed, namespace: str) -> None:
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "wrong", "namespace": namespace},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "spec": {
                    "domain": {"devices": {"disks": [{"name": "system", "disk": {"bus": "virtio"}}]}},
                    "terminationGracePeriodSeconds": 1,
                }
            },
        },
    }
    with pytest.raises(TestbedError, match=f"Could not apply VirtualMachine {namespace}/wrong: .*system"):
        load(testbed.api, Scenario("wrong", (machine,), Settled(pods=0, vmis=1)), timeout=10)


def test_a_node_is_resized_and_keeps_what_happened_to_it(testbed: RunningTestbed) -> None:
    path = resource_path("v1", "nodes", name="grows")
    load(testbed.api, Scenario("small", (fake_node("grows", memory="8Gi"),), Settled(0, 0)), timeout=30)
    testbed.api.patch(f"{path}/status", {"status": {"nodeInfo": {"bootID": "second boot"}}}, "strategic")
    load(testbed.api, Scenario("large", (fake_node("grows", memory="16Gi"),), Settled(0, 0)), timeout=30)
    status = testbed.api.get(path)["status"]
    assert status["allocatable"]["memory"] == status["capacity"]["memory"] == "16Gi"
    assert status["nodeInfo"]["bootID"] == "second boot"
    remove_nodes(testbed.api)

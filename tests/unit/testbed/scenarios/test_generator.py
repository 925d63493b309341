# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated clusters: repeatable, legal, placeable, and with everything in them that they promise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.home import TestbedError
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.scenarios.generator.profiles import HOST, ZONE
from testbed.scenarios.model import Scenario
from unit.testbed.scenarios.placing import Pod, allocatable, as_bytes, place, pods_of, required

Object = dict[str, Any]
LARGE = GeneratorSpec(nodes=60, vmis=600, zones=3, seed=7)
DNS_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?")
TESTS = Path(__file__).parents[3]

specs = st.integers(1, 5).flatmap(
    lambda zones: st.builds(
        GeneratorSpec,
        nodes=st.integers(zones, 80),
        vmis=st.integers(0, 250),
        zones=st.just(zones),
        seed=st.integers(0, 2**32),
        fill=st.sampled_from([0.2, 0.6, 0.75]),
    )
)


@pytest.fixture(scope="module")
def large() -> Scenario:
    return generate(LARGE)


def of_kind(scenario: Scenario, kind: str) -> list[Object]:
    return [obj for obj in scenario.objects if obj["kind"] == kind]


def launchers(scenario: Scenario) -> list[Pod]:
    return [pod for pod in pods_of(scenario.objects) if "domain" in pod.spec]


def test_same_spec_gives_same_bytes_in_another_process(large: Scenario) -> None:
    # Another hash seed would change the order of anything that came out of a set.
    program = (
        "import sys; from testbed.scenarios.generator import *; from unit.testbed.scenarios.placing import as_bytes;"
        "sys.stdout.buffer.write(as_bytes(generate(GeneratorSpec(nodes=60, vmis=600, zones=3, seed=7)).objects))"
    )
    for hash_seed in ("1", "2"):
        environment = {"PYTHONPATH": str(TESTS), "PYTHONHASHSEED": hash_seed}
        output = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        ).stdout
        assert output == as_bytes(large.objects)


def test_another_seed_gives_another_cluster() -> None:
    assert as_bytes(generate(GeneratorSpec(seed=1)).objects) != as_bytes(generate(GeneratorSpec(seed=2)).objects)


@settings(max_examples=60, deadline=None)
@given(specs)
def test_every_cluster_is_placeable(spec: GeneratorSpec) -> None:
    scenario = generate(spec)
    places = place(scenario.objects)
    assert len(of_kind(scenario, "Node")) == spec.nodes
    assert sum("domain" in pod.spec for p in places for pod in p.pods) == spec.vmis == scenario.settled.vmis
    assert sum("domain" not in pod.spec for p in places for pod in p.pods) == scenario.settled.pods


@settings(max_examples=60, deadline=None)
@given(specs)
def test_requests_stay_below_the_fill(spec: GeneratorSpec) -> None:
    scenario = generate(spec)
    available = requested = 0
    for node in of_kind(scenario, "Node"):
        available += allocatable(node)["memory"]
    for pod in pods_of(scenario.objects):
        requested += pod.requests["memory"]
    assert requested <= spec.fill * available


@settings(max_examples=30, deadline=None)
@given(specs)
def test_names_are_legal_and_unique(spec: GeneratorSpec) -> None:
    identities = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in generate(spec).objects
    ]
    assert len(set(identities)) == len(identities)
    assert [name for *_kind, name in identities if not DNS_NAME.fullmatch(name)] == []


def test_a_full_cluster_is_as_full_as_asked(large: Scenario) -> None:
    """The minimum size of nodes must not turn a wish for a full cluster into an empty one."""
    available = sum(allocatable(node)["memory"] for node in of_kind(large, "Node"))
    requested = sum(pod.requests["memory"] for pod in pods_of(large.objects))
    assert 0.9 * LARGE.fill < requested / available


def test_zones_are_even_and_nodes_are_not(large: Scenario) -> None:
    nodes = of_kind(large, "Node")
    zones = Counter(node["metadata"]["labels"][ZONE] for node in nodes)
    assert set(zones.values()) == {20}
    assert len({node["status"]["allocatable"]["memory"] for node in nodes}) >= 4
    assert len({key for node in nodes for key in node["metadata"]["labels"] if key.startswith("host-model-cpu.")}) == 3
    assert {node["metadata"]["labels"].get("storage") for node in nodes} == {None, "nvme", "ssd"}
    assert {taint["key"] for node in nodes for taint in node["spec"]["taints"]} == {"dedicated", "nvidia.com/gpu"}


def anti_affinity(pod: Pod, topology_key: str, *, ignore_own_pods: bool) -> bool:
    return any(
        term["topologyKey"] == topology_key and ("mismatchLabelKeys" in term) is ignore_own_pods
        for term in required(pod, "podAntiAffinity") or ()
    )


def access_modes(scenario: Scenario, pod: Pod) -> list[str]:
    claims = {
        (c["metadata"]["namespace"], c["metadata"]["name"]): c for c in of_kind(scenario, "PersistentVolumeClaim")
    }
    return [
        claims[pod.namespace, volume["persistentVolumeClaim"]["claimName"]]["spec"]["accessModes"][0]
        for volume in pod.spec["volumes"]
        if "persistentVolumeClaim" in volume
    ]


def test_every_feature_occurs(large: Scenario) -> None:
    vms = launchers(large)
    found = {
        "apart per host, own pods counted": sum(anti_affinity(vm, HOST, ignore_own_pods=False) for vm in vms),
        "apart per host, own pods ignored": sum(anti_affinity(vm, HOST, ignore_own_pods=True) for vm in vms),
        "apart per zone, own pods counted": sum(anti_affinity(vm, ZONE, ignore_own_pods=False) for vm in vms),
        "apart per zone, own pods ignored": sum(anti_affinity(vm, ZONE, ignore_own_pods=True) for vm in vms),
        "rather apart": sum(
            "preferredDuringSchedulingIgnoredDuringExecution" in vm.spec.get("affinity", {}).get("podAntiAffinity", {})
            for vm in vms
        ),
        "spread": sum("topologySpreadConstraints" in vm.spec for vm in vms),
        "node affinity": sum(required(vm, "nodeAffinity") is not None for vm in vms),
        "tolerations": sum("tolerations" in vm.spec for vm in vms),
        "priority": sum("priorityClassName" in vm.spec for vm in vms),
        "no eviction": sum(vm.spec["evictionStrategy"] == "None" for vm in vms),
        "eviction if possible": sum(vm.spec["evictionStrategy"] == "LiveMigrateIfPossible" for vm in vms),
        "shared disk": sum(access_modes(large, vm) == ["ReadWriteMany"] for vm in vms),
        "not migratable: disk": sum(access_modes(large, vm) == ["ReadWriteOnce"] for vm in vms),
        "not migratable: device": sum("gpus" in vm.spec["domain"]["devices"] for vm in vms),
        "not migratable: bridge": sum("bridge" in vm.spec["domain"]["devices"]["interfaces"][0] for vm in vms),
        "container disk": sum("containerDisk" in vm.spec["volumes"][0] for vm in vms),
        "empty disk": sum("emptyDisk" in vm.spec["volumes"][0] for vm in vms),
        "virtual machine": len(of_kind(large, "VirtualMachine")),
        "replica set": len(of_kind(large, "VirtualMachineInstanceReplicaSet")),
        "budget": len(of_kind(large, "PodDisruptionBudget")),
        "deployment": len(of_kind(large, "Deployment")),
        "sizes": len({vm.spec["domain"]["memory"]["guest"] for vm in vms}),
    }
    assert {feature: count for feature, count in found.items() if count < 2} == {}


def test_a_zone_group_can_fill_all_zones(large: Scenario) -> None:
    """The case in which a VM's own pod blocks its migration must be there, with and without the remedy."""
    for profile in ("quorum", "ledger"):
        sizes = [
            replica_set["spec"]["replicas"]
            for replica_set in of_kind(large, "VirtualMachineInstanceReplicaSet")
            if replica_set["metadata"]["name"].startswith(profile)
        ]
        assert max(sizes) == LARGE.zones


def test_budgets_allow_a_disruption(large: Scenario) -> None:
    replicas = {d["metadata"]["name"]: d["spec"]["replicas"] for d in of_kind(large, "Deployment")}
    for budget in of_kind(large, "PodDisruptionBudget"):
        assert budget["spec"].get("minAvailable", 0) < replicas[budget["metadata"]["name"]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (GeneratorSpec(zones=0), "at least one zone, not 0"),
        (GeneratorSpec(nodes=2, zones=3), "2 nodes cannot stand in 3 zones"),
        (GeneratorSpec(vmis=-1), "cannot have -1 VMIs"),
        (GeneratorSpec(fill=1.5), "Fill 1.5 is not a share"),
    ],
)
def test_impossible_clusters_are_refused(spec: GeneratorSpec, message: str) -> None:
    with pytest.raises(TestbedError, match=re.escape(message)):
        generate(spec)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios written by hand, and what happens to files that are none."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import pytest

from testbed.home import TestbedError
from testbed.nodes import CPUS, Cpu, fake_node
from testbed.scenarios import add_arguments, command, files
from testbed.scenarios.model import Scenario, Settled
from unit.testbed.scenarios.placing import CannotBePlacedError, Place, place

CUSTOMAPP = files.FOLDER / "customapp.yaml"


def app_of(node: Place) -> set[str]:
    return {pod.labels["app"] for pod in node.pods}


@pytest.mark.parametrize("name", files.names())
def test_settled_counts_what_the_objects_ask_for(name: str) -> None:
    scenario = files.read(files.FOLDER / f"{name}.yaml")
    placed = [pod for node in place(scenario.objects) for pod in node.pods]
    launchers = sum("domain" in pod.spec for pod in placed)
    assert scenario.settled == Settled(pods=len(placed) - launchers, vmis=launchers)


def test_customapp_puts_one_of_each_tier_in_every_zone() -> None:
    tiers = Counter(
        (pod.labels["app"], node.labels["topology.kubernetes.io/zone"])
        for node in place(files.read(CUSTOMAPP).objects)
        for pod in node.pods
    )
    assert tiers == {(app, zone): 1 for app in ("mssql2016", "cache", "blackbox") for zone in ("scu", "bcn", "sab")}


def test_customapp_without_a_large_node_has_no_place_for_a_database() -> None:
    objects = [obj for obj in files.read(CUSTOMAPP).objects if obj["metadata"]["name"] != "kni-worker4"]
    with pytest.raises(CannotBePlacedError, match="mssql2016"):
        place(objects)


def test_a_large_node_of_customapp_holds_two_databases_and_a_cache_with_its_blackbox() -> None:
    """Otherwise lack of room, and not the rules, would decide the demonstration."""
    large = next(obj for obj in files.read(CUSTOMAPP).objects if obj["metadata"]["name"] == "kni-worker2")
    workloads = [obj for obj in files.read(CUSTOMAPP).objects if obj["kind"] not in ("Node", "Namespace")]
    for workload in workloads:
        workload["spec"]["replicas"] = 2 if workload["metadata"]["name"] == "mssql2016" else 1
        workload["spec"]["template"]["spec"].get("affinity", {}).pop("podAntiAffinity")
    assert app_of(place([large, *workloads])[0]) == {"mssql2016", "cache", "blackbox"}


def test_the_bare_nodes_are_those_of_customapp_without_their_labels() -> None:
    bare, labelled = (
        {o["metadata"]["name"]: o for o in files.read(files.FOLDER / f"{name}.yaml").objects if o["kind"] == "Node"}
        for name in ("customapp-nodes", "customapp")
    )
    assert list(bare) == [f"kni-worker{number}" for number in ("", 2, 3, 4, 5, 6)]
    for name, node in bare.items():
        assert node["status"] == labelled[name]["status"]
        added = set(labelled[name]["metadata"]["labels"]) - set(node["metadata"]["labels"])
        assert {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"} <= added


def test_stages_put_what_is_referred_to_first() -> None:
    kinds = [{obj["kind"] for obj in stage} for stage in files.read(CUSTOMAPP).stages()]
    assert kinds == [{"Node", "Namespace"}, set(), {"Deployment", "VirtualMachineInstanceReplicaSet"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [", "while parsing"),
        ("nodes: []\nobjects: []", "settled"),
        ("nodes: []\nobjects: []\nsettled: {pods: 0}", "vmis"),
        ("nodes: [{name: n, memroy: 1Gi}]\nobjects: []\nsettled: {pods: 0, vmis: 0}", "memroy"),
        ("nodes: [{name: n, cpu_model: Z80}]\nobjects: []\nsettled: {pods: 0, vmis: 0}", "node n has none of the CPU"),
        ("nods: []", "no part named nods"),
        ("- nodes", "is not a scenario"),
    ],
)
def test_a_broken_file_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(TestbedError, match=r"broken\.yaml") as raised:
        files.read(path)
    assert message in str(raised.value)


def chosen(*words: str) -> Scenario:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return command.chosen(parser.parse_args(words))


def test_command_line_sizes_generated_clusters() -> None:
    scenario = chosen("generated", "--nodes", "7", "--vmis", "9", "--fill", "0.5")
    assert len(scenario.nodes) == 7
    assert scenario.settled.vmis == 9


def test_sizes_for_a_fixed_scenario_are_refused() -> None:
    with pytest.raises(TestbedError, match=r"customapp is fixed; --nodes, --seed work with generated only"):
        chosen("customapp", "--nodes", "7", "--seed", "1")


def test_a_node_is_whole_and_the_same_every_time() -> None:
    node = fake_node("n", cpu=4, memory="8Gi", devices={"example.com/nic": 2}, cpu_model="EPYC-Rome")
    assert node == fake_node("n", cpu=4, memory="8Gi", devices={"example.com/nic": 2}, cpu_model="EPYC-Rome")
    assert node["status"]["nodeInfo"]["bootID"] != fake_node("m")["status"]["nodeInfo"]["bootID"]
    assert node["status"]["allocatable"]["example.com/nic"] == "2"
    labels = node["metadata"]["labels"]
    assert labels["cpu-vendor.node.kubevirt.io/AMD"] == labels["host-model-cpu.node.kubevirt.io/EPYC-Rome"] == "true"


@pytest.mark.parametrize("cpu", CPUS.values(), ids=CPUS)
def test_a_host_offers_what_its_own_host_model_requires(cpu: Cpu) -> None:
    """Otherwise no guest could ever migrate between two equal hosts."""
    assert set(cpu.required) <= set(cpu.features)

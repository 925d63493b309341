# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that nobody disturbs comes true as planned: every VM, from and to where the plan said, in the plan's order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from integration.chronicle import Chronicle, disorder, find_spans
from integration.clusters import KUBEVIRT, TIMEOUT, VMIS, loaded, remove
from integration.journeys import Journeys, Way, kin_title, way
from integration.migration.clusters import peaceful
from integration.playbooks import run
from integration.simulator.lab import new_vmi
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

SPEC = GeneratorSpec(nodes=12, vmis=60, zones=3, fill=0.5)
LABEL, ZONE = "virtops.kubevirt/maintained", "topology.kubernetes.io/zone"
SETTINGS: dict[str, Any] = {
    "plan_maintenance_delete_emptydir_data": True,
    "rolling_maintenance_rebalance": False,
    "uncordon_wait_sleep": 1,
}


def maintain(testbed: RunningTestbed, folder: Path, **settings: Any) -> CompletedProcess[str]:
    """A run that ends well."""
    done = attempt(testbed, folder, **settings)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done


def attempt(testbed: RunningTestbed, folder: Path, **settings: Any) -> CompletedProcess[str]:
    """A run, however it ends."""
    hook, playbook = folder / "hook.yml", folder / "site.yml"
    hook.write_text(yaml.safe_dump([{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]))
    playbook.write_text("- import_playbook: virtops.kubevirt.rolling_maintenance\n")
    given = {
        "rolling_maintenance_kubeconfig": str(testbed.kubeconfig),
        "rolling_maintenance_tasks": str(hook),
        "plan_maintenance_path": str(folder / "plan.json"),
        "plan_maintenance_run": folder.name,
    }
    return run(playbook, "-e", json.dumps({**SETTINGS, **given, **settings}))


def planned(folder: Path, kind: str) -> list[Object]:
    plan = json.loads((folder / "plan.json").read_text())
    return [entry for entry in plan["actions"] if entry["kind"] == kind]


def changes(done: CompletedProcess[str]) -> str:
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "the plan has changed" in line)


def started_anew(folder: Path) -> set[str]:
    """The kin of VMs that the plan shuts down: where they start again the scheduler says by lot."""
    objects = [entry["object"] for kind in ("restart", "stop") for entry in planned(folder, kind)]
    return {kin_title(f"{entry['namespace']}/{entry['name']}") for entry in objects}


def assert_came_true(seen: Mapping[Way, tuple[str, str]], folder: Path, done: CompletedProcess[str]) -> int:
    """How many migrations there were."""
    actions = planned(folder, "migrate")
    anew = started_anew(folder)
    wanted = {entry for entry in map(way, actions) if kin_title(entry.vm) not in anew}
    found = {entry for entry in seen if kin_title(entry.vm) not in anew}
    assert (sorted(found - wanted), sorted(wanted - found)) == ([], []), changes(done)
    by_id = {entry["id"]: entry for entry in actions}
    for entry in actions:
        for earlier in (by_id[name] for name in entry["after"] if name in by_id):
            if {way(earlier), way(entry)} <= found:
                assert seen[way(earlier)][1] <= seen[way(entry)][0], (
                    f"{way(entry)} began before {way(earlier)} had ended"
                )
    return len(found)


def maintained(api: Api, run_name: str) -> list[str]:
    nodes = [node["metadata"] for node in api.items("/api/v1/nodes")]
    return sorted(node["name"] for node in nodes if node["labels"].get(LABEL) == run_name)


@pytest.fixture
def crowd(testbed: RunningTestbed) -> Iterator[Scenario]:
    """Twelve nodes in three zones with sixty VMs of all kinds, groups with rules among them."""
    found = generate(SPEC)
    scenario = replace(found, objects=tuple(map(peaceful, found.objects)))
    with loaded(testbed.api, scenario):
        yield scenario


def test_a_run_over_all_nodes_comes_true(testbed: RunningTestbed, crowd: Scenario, tmp_path: Path) -> None:
    # Neighbours have the same taints and labels: a batch of them would leave their VMs no node.
    batches = [crowd.nodes[first :: SPEC.nodes // 3] for first in range(SPEC.nodes // 3)]
    vmis = testbed.api.items(resource_path(KUBEVIRT, VMIS))
    before = {vmi["metadata"]["uid"] for vmi in vmis}
    immovable = {vmi["metadata"]["uid"] for vmi in vmis if not _can_migrate(vmi)}
    with Journeys(testbed.kubeconfig, tmp_path.name) as journeys:
        done = maintain(
            testbed,
            tmp_path,
            plan_maintenance_nodes=[name for batch in batches for name in batch],
            plan_maintenance_batch=3,
            plan_maintenance_policies=[{"expression": "`true`", "policy": "stop"}],
            plan_maintenance_force=True,
        )
    assert maintained(testbed.api, tmp_path.name) == sorted(crowd.nodes)
    assert assert_came_true(journeys.found, tmp_path, done) >= SPEC.vmis // 2
    interrupted = {entry["object"]["uid"] for kind in ("restart", "stop") for entry in planned(tmp_path, kind)}
    after = {vmi["metadata"]["uid"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS))}
    # Who had no node when the run was planned may have one when its turn comes, and then it migrates.
    assert immovable & interrupted <= before - after <= interrupted


def _can_migrate(vmi: Object) -> bool:
    return any((entry["type"], entry["status"]) == ("LiveMigratable", "True") for entry in vmi["status"]["conditions"])


@pytest.fixture
def pair(testbed: RunningTestbed) -> Iterator[Scenario]:
    """Two VMs that never share a zone, of which one can only go to where the other one is, in the same batch."""
    namespace = "pair"
    # KubeVirt's own pods are on the first two, and x and y can go together.
    zones = {"x-mate": "a", "z": "c", "x": "a", "y": "b"}
    nodes = [fake_node(name, labels={ZONE: zone}) for name, zone in zones.items()]
    apart = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "pair"}}}
    vmis = [
        _pinned(new_vmi(namespace, name, "64Mi"), places, apart)
        for name, places in {"first": ["x", "z"], "second": ["y", "x-mate"]}.items()
    ]
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    empty = Scenario("pair", (own, *nodes), Settled(pods=0, vmis=0))
    scenario = replace(empty, objects=(*empty.objects, *vmis), settled=Settled(pods=0, vmis=len(vmis)))
    with loaded(testbed.api, empty):
        # A node that is not fit for VMs yet would be passed over.
        wait_for("fit nodes", lambda: all(is_fit(node) for node in testbed.api.items("/api/v1/nodes")))
        try:
            load(testbed.api, scenario, TIMEOUT)
            places = resource_path(KUBEVIRT, VMIS, namespace)
            if testbed.api.get(f"{places}/first")["status"]["nodeName"] != "x":
                pytest.fail("the scheduler does not honour the preference of the first VM")
            wait_for("the second VM on y", lambda: testbed.api.get(f"{places}/second")["status"]["nodeName"] == "y")
            yield scenario
        finally:
            remove(testbed.api, scenario)


def is_fit(node: Object) -> bool:
    return bool(node["metadata"]["labels"].get("kubevirt.io/schedulable") == "true")


def _pinned(vmi: Object, places: list[str], apart: Object | None = None) -> Object:
    """At one of the nodes, at the first one if possible, apart from its like if so wanted."""
    host = "kubernetes.io/hostname"
    wanted = {"matchExpressions": [{"key": host, "operator": "In", "values": places}]}
    rather = {"matchExpressions": [{"key": host, "operator": "In", "values": places[:1]}]}
    vmi["metadata"]["labels"] = {**vmi["metadata"].get("labels", {}), "app": "pair"}
    vmi["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": rather}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart] if apart else []},
    }
    return vmi


@pytest.mark.parametrize("nodes", [["x", "y"], pytest.param(["y", "x"], marks=pytest.mark.gate)])
def test_who_enters_a_zone_waits_for_who_leaves_it(
    testbed: RunningTestbed, pair: Scenario, tmp_path: Path, nodes: list[str]
) -> None:
    uids = {vmi["metadata"]["uid"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS))}
    assert set(nodes) < set(pair.nodes)
    with Journeys(testbed.kubeconfig, tmp_path.name) as journeys, Chronicle(testbed.kubeconfig) as chronicle:
        done = maintain(testbed, tmp_path, plan_maintenance_nodes=nodes, plan_maintenance_batch=2)
    assert_came_true(journeys.found, tmp_path, done)
    assert sorted(journeys.found) == [
        Way("pair/first", "x", "z"),
        Way("pair/second", "y", "x-mate"),
    ]
    (second,) = (entry for entry in planned(tmp_path, "migrate") if entry["object"]["name"] == "second")
    (first,) = (entry for entry in planned(tmp_path, "migrate") if entry["object"]["name"] == "first")
    assert first["id"] in second["after"]
    # By the server's count of its writes, as its times are of whole seconds.
    actions = json.loads((tmp_path / "plan.json").read_text())["actions"]
    spans = find_spans(actions, chronicle.events, tmp_path.name, {})
    assert {first["id"], second["id"]} <= spans.keys()
    assert list(disorder(actions, spans)) == []
    # The drain of y sees to the first one, too, for which it waits: it is told once all the same, and of its own node.
    output = done.stdout + done.stderr
    for words in (
        r"\bx: done; VMs: 1 migrated",
        r"\by: done; VMs: 1 migrated",
        "node x: pair/first: x -> z: migrated",
        "pair/first: x -> z: migrated",
    ):
        assert len(re.findall(words, output)) == 1, (words, output)
    assert {vmi["metadata"]["uid"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS))} == uids


@pytest.fixture
def crowded(testbed: RunningTestbed) -> Iterator[Scenario]:
    """A large VM on one node, which another node could take if a small one were not there."""
    namespace = "crowded"
    nodes = [fake_node(name, memory="4Gi" if name == "room-c" else "8Gi") for name in ("room-a", "room-b", "room-c")]
    vmis = [
        _pinned(new_vmi(namespace, "large", "6Gi"), ["room-a", "room-b"]),
        _pinned(new_vmi(namespace, "small", "2Gi"), ["room-b", "room-c"]),
    ]
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    empty = Scenario("crowded", (own, *nodes), Settled(pods=0, vmis=0))
    scenario = replace(empty, objects=(*empty.objects, *vmis), settled=Settled(pods=0, vmis=len(vmis)))
    with loaded(testbed.api, empty):
        wait_for("fit nodes", lambda: all(is_fit(node) for node in testbed.api.items("/api/v1/nodes")))
        try:
            load(testbed.api, scenario, TIMEOUT)
            yield scenario
        finally:
            remove(testbed.api, scenario)


def test_a_vm_on_another_node_makes_room(testbed: RunningTestbed, crowded: Scenario, tmp_path: Path) -> None:
    uids = {vmi["metadata"]["uid"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS))}
    assert "room-a" in crowded.nodes
    with Journeys(testbed.kubeconfig, tmp_path.name) as journeys:
        done = maintain(testbed, tmp_path, plan_maintenance_nodes=["room-a"], plan_maintenance_room=1)
    assert "VM  crowded/small -> room-c, to make room on room-b" in done.stdout + done.stderr
    assert assert_came_true(journeys.found, tmp_path, done) == 2
    assert sorted(journeys.found) == [
        Way("crowded/large", "room-a", "room-b"),
        Way("crowded/small", "room-b", "room-c"),
    ]
    assert maintained(testbed.api, tmp_path.name) == ["room-a"]
    assert {vmi["metadata"]["uid"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS))} == uids

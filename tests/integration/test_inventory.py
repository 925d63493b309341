# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a real cluster: hosts and groups, a play over a zone, a run planned on it, and its least rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from integration.clusters import loaded
from testbed.access import service_account_kubeconfig
from testbed.api import Object, object_path
from testbed.handle import RunningTestbed
from testbed.scenarios import files
from testbed.waiting import wait_for
from unit.plugins.support.inventories import Ended, ansible, listed, write

WORKERS = {"kni-worker", *(f"kni-worker{number}" for number in range(2, 7))}
ZONES = {"bcn": {"kni-worker3", "kni-worker4"}, "scu": {"kni-worker", "kni-worker2"}}
RUN = "inventory-1"


@pytest.fixture(scope="module", autouse=True)
def nodes(testbed: RunningTestbed) -> Iterator[None]:
    """Six workers, two of them in each of two zones, and one that a run is done with."""
    with loaded(testbed.api, files.read(files.FOLDER / "customapp-nodes.yaml")):
        labels = {name: {"topology.kubernetes.io/zone": zone} for zone, names in ZONES.items() for name in names}
        labels["kni-worker3"]["virtops.kubevirt/maintained"] = RUN
        for name, wanted in labels.items():
            testbed.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"short": name[4:], **wanted}}})
        wait_for("virt-handler to speak for each node", lambda: all(map(_speaks, _nodes(testbed))), 60)
        yield


def _nodes(testbed: RunningTestbed) -> list[Object]:
    return testbed.api.items("/api/v1/nodes")


def _speaks(node: Object) -> bool:
    return "kubevirt.io/heartbeat" in node["metadata"].get("annotations", {})


def test_all_nodes_are_hosts_in_their_groups(testbed: RunningTestbed, tmp_path: Path) -> None:
    found = listed(tmp_path, {"kubeconfig": str(testbed.kubeconfig)})
    assert (found.code, found.error) == (0, "")
    assert found.members("all") == found.members("kubevirt_fit") == WORKERS
    assert {zone: found.members(f"zone_{zone}") for zone in ZONES} == ZONES
    assert found.members("maintained_inventory_1") == found.members("maintained") == {"kni-worker3"}
    assert found.variables["kni-worker"]["ansible_host"].startswith("10.")
    assert found.variables["kni-worker"]["node_info"]["kubelet_version"] == "v1.36.3"


def test_selectors_and_the_graph(testbed: RunningTestbed, tmp_path: Path) -> None:
    options = {
        "kubeconfig": str(testbed.kubeconfig),
        "label_selectors": ["topology.kubernetes.io/zone in (bcn, scu)"],
        "field_selectors": ["metadata.name!=kni-worker"],
        "expression": "metadata.labels.\"topology.kubernetes.io/zone\" == 'scu'",
    }
    graph = ansible("ansible-inventory", tmp_path, "-i", write(tmp_path, options), "--graph", "all")
    assert "  |--@zone_scu:\n  |  |--kni-worker2\n" in graph.out
    assert "bcn" not in graph.out


def test_a_wrong_selector_is_told_in_the_servers_words(testbed: RunningTestbed, tmp_path: Path) -> None:
    ended = listed(tmp_path, {"kubeconfig": str(testbed.kubeconfig), "label_selectors": ["a in"]})
    assert (ended.code, ended.out) == (4, "")
    assert "the API server answered 400, " in ended.error
    assert "Correct label_selectors" in ended.error


def test_a_run_is_planned_on_hosts_that_are_called_otherwise(testbed: RunningTestbed, tmp_path: Path) -> None:
    """A zone's group is what the run maintains, and the cache answers the second playbook."""
    options = {
        "kubeconfig": str(testbed.kubeconfig),
        "hostnames": ["label:short", "name"],
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(tmp_path / "cache"),
    }
    variables = {"plan_maintenance_run": "inventory-2", "plan_maintenance_nodes": "zone_scu"}
    role = {"role": "virtops.kubevirt.plan_maintenance", "vars": variables}
    message = {"ansible.builtin.debug": {"msg": "{{ drain_node }} is {{ inventory_hostname }} of {{ node_zone }}"}}
    plays = [
        {"hosts": "localhost", "gather_facts": False, "roles": [role]},
        {"hosts": "maintenance", "gather_facts": False, "tasks": [message]},
    ]
    done = _played(testbed, tmp_path, plays, options, "--check")
    assert done.code == 0, done.out[-3000:] + done.error[-1000:]
    assert '"kni-worker is worker of scu"' in done.out
    assert '"kni-worker2 is worker2 of scu"' in done.out
    # What has changed since is not seen any more.
    testbed.api.patch("/api/v1/nodes/kni-worker6", {"metadata": {"labels": {"topology.kubernetes.io/zone": "sab"}}})
    again = listed(tmp_path, options)
    assert again.members("zone_scu") == {"worker", "worker2"}
    assert again.members("zone_sab") == set()
    assert listed(tmp_path, options, "--flush-cache").members("zone_sab") == {"kni-worker6"}


def _played(testbed: RunningTestbed, folder: Path, plays: list[Object], options: Object, *words: str) -> Ended:
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump(plays))
    environment = {"K8S_AUTH_KUBECONFIG": str(testbed.kubeconfig)}
    source = write(folder, options)
    return ansible("ansible-playbook", folder, "-i", source, *words, playbook, environment=environment)


def test_the_right_to_list_nodes_is_enough_and_needed(testbed: RunningTestbed, tmp_path: Path, namespace: str) -> None:
    kubeconfig = service_account_kubeconfig(testbed.home, f"{namespace}/lister")
    refused = listed(tmp_path, {"kubeconfig": str(kubeconfig)})
    assert (refused.code, refused.out) == (4, "")
    assert 'cannot list resource "nodes"' in refused.error
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    subject = {"kind": "ServiceAccount", "name": "lister", "namespace": namespace}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": namespace}, "rules": [rule]}
    binding = {**role, "kind": "ClusterRoleBinding", "subjects": [subject]}
    del binding["rules"]
    binding["roleRef"] = {"apiGroup": group, "kind": "ClusterRole", "name": namespace}
    try:
        for item in (role, binding):
            testbed.api.apply(item)
        wait_for("the right", lambda: listed(tmp_path, {"kubeconfig": str(kubeconfig)}).code == 0, 20)
    finally:
        for item in (binding, role):
            testbed.api.delete(object_path(item))


def test_a_broken_kubeconfig_ends_it(tmp_path: Path) -> None:
    broken = tmp_path / "kubeconfig"
    broken.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "clusters": []}))
    ended = listed(tmp_path, {"kubeconfig": str(broken)})
    assert (ended.code, ended.out) == (4, "")
    assert "Cannot connect to the Kubernetes API" in ended.error
    assert "Check the kubeconfig and its context" in ended.error

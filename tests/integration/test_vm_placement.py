# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where VMs start and migrate to, against what filter feasible_nodes says of them beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import feasible_nodes

from integration.clusters import KUBEVIRT, VMIS, launchers, let_time_out, migrate, refreshed, remove_nodes
from integration.launcher.lists import read
from testbed.api import Api, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

TIMEOUT = 60.0
ZONE = "topology.kubernetes.io/zone"
DATABASE = {"app": "database"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": ZONE,
                "labelSelector": {"matchLabels": DATABASE},
                "mismatchLabelKeys": ["kubevirt.io/created-by"],
            }
        ]
    }
}
# Name, domain, and the rest of the specification; they come one after the other.
VMS: list[tuple[str, Object, Object]] = [
    ("plain-1", {"memory": {"guest": "3Gi"}}, {}),
    ("plain-2", {"memory": {"guest": "3Gi"}, "cpu": {"cores": 8}}, {}),
    ("picky", {"memory": {"guest": "1Gi"}}, {"nodeSelector": {"disk": "ssd"}}),
    ("pinned-cpus", {"memory": {"guest": "1Gi"}, "cpu": {"cores": 2, "dedicatedCpuPlacement": True}}, {}),
    ("tolerant", {"memory": {"guest": "6Gi"}}, {"tolerations": [{"key": "kept", "operator": "Exists"}]}),
    ("database-1", {"memory": {"guest": "1Gi"}}, {"affinity": APART}),
    ("database-2", {"memory": {"guest": "1Gi"}}, {"affinity": APART}),
    ("database-3", {"memory": {"guest": "1Gi"}}, {"affinity": APART}),
    ("huge-pages", {"memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}}, {}),
    ("too-large", {"memory": {"guest": "7Gi"}}, {}),
    (
        "stateful",
        {"memory": {"guest": "1Gi"}},
        {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]},
    ),
]


@pytest.fixture(scope="module", autouse=True)
def nodes(testbed: RunningTestbed) -> Iterator[None]:
    api = testbed.api
    remove_nodes(api)
    made = (
        fake_node("n1", cpu=8, memory="8Gi", labels={ZONE: "a", "disk": "ssd"}),
        fake_node("n2", cpu=4, memory="8Gi", labels={ZONE: "b"}),
        fake_node("n3", cpu=8, memory="8Gi", labels={ZONE: "b"}, taints=[KEPT]),
        fake_node("n4", cpu=2, memory="4Gi", labels={ZONE: "b"}),
    )
    for node in made:
        api.create("/api/v1/nodes", node)
    api.apply(LOCAL)
    wait_for("KubeVirt's own pods", lambda: is_settled(api), TIMEOUT)
    yield
    remove_nodes(api)
    api.delete(object_path(LOCAL))


# Claims of it wait for their first pod, and no volume is there for them.
LOCAL: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM: Object = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "local",
    "resources": {"requests": {"storage": "1Gi"}},
}
KEPT = {"key": "kept", "value": "", "effect": "NoSchedule"}


def is_settled(api: Api) -> bool:
    """Whether no node and no pod of the cluster will change what the next pod finds."""
    nodes = api.items("/api/v1/nodes")
    taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", [])]
    pods = api.items("/api/v1/pods")
    return len(nodes) == 4 and taints == ["kept"] and all(pod["status"]["phase"] == "Running" for pod in pods)


def test_vms_start_and_migrate_as_said(testbed: RunningTestbed, namespace: str) -> None:
    api = testbed.api
    metadata = {"name": "disk", "namespace": namespace}
    api.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": CLAIM})
    wrong = [line for name, domain, spec in VMS for line in started(api, new_vmi(namespace, name, domain, spec))]
    running = {vmi["metadata"]["name"]: vmi for vmi in api.items(resource_path(KUBEVIRT, VMIS, namespace))}
    waiting = [name for name, vmi in running.items() if not vmi["status"].get("nodeName")]
    assert 3 <= len(waiting) <= len(VMS) - 3, f"too few answers of one kind: {waiting} wait"
    for name in ("plain-1", "picky", "database-1"):
        wrong += migrated(api, running[name])
    assert not wrong, "\n".join(wrong)


def new_vmi(namespace: str, name: str, domain: Object, spec: Object) -> Object:
    labels = DATABASE if name.startswith("database") else {}
    masquerade = {"interfaces": [{"name": "default", "masquerade": {}}]}
    whole = {"domain": {**domain, "devices": masquerade}, "networks": [{"name": "default", "pod": {}}], **spec}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": KUBEVIRT, "kind": "VirtualMachineInstance", "metadata": metadata, "spec": whole}


def started(api: Api, manifest: Object) -> Iterator[str]:
    said = feasible_nodes(read(api), manifest, scores=True)
    vmi = api.create(resource_path(KUBEVIRT, VMIS, manifest["metadata"]["namespace"]), manifest)
    yield from compare(manifest["metadata"]["name"], said, decided(api, vmi))
    if said["fit"]:
        path = resource_path(KUBEVIRT, VMIS, vmi["metadata"]["namespace"], vmi["metadata"]["name"])
        wait_for("the VM to run", lambda: api.get(path)["status"]["phase"] == "Running", TIMEOUT)


def migrated(api: Api, vmi: Object) -> Iterator[str]:
    said = feasible_nodes(read(api), f"{vmi['metadata']['namespace']}/{vmi['metadata']['name']}", scores=True)
    migration = migrate(api, vmi)
    yield from compare(
        f"migration of {vmi['metadata']['name']}", said, decided(api, vmi, but=vmi["status"]["nodeName"])
    )
    if not said["fit"]:
        let_time_out(api, migration)
        return
    wait_for("the VM to move", lambda: refreshed(api, vmi)["status"]["nodeName"] != vmi["status"]["nodeName"], TIMEOUT)
    wait_for("the end of the old pod", lambda: len(launchers(api, vmi)) == 1, TIMEOUT)


def decided(api: Api, vmi: Object, but: str = "") -> Object:
    """The VM's pod, other than the one on the node `but`, as soon as the scheduler has spoken."""
    found: list[Object] = []

    def spoken() -> bool:
        found[:] = [pod for pod in launchers(api, vmi) if not but or pod["spec"].get("nodeName") != but]
        return any(pod["spec"].get("nodeName") or word(pod) for pod in found)

    wait_for(f"the scheduler's word on {vmi['metadata']['name']}", spoken, TIMEOUT)
    return found[0]


def word(pod: Object) -> str:
    conditions = pod["status"].get("conditions", [])
    found = (entry.get("message", "") for entry in conditions if entry["type"] == "PodScheduled")
    return next(found, "")


def compare(title: str, said: dict[str, Any], pod: Object) -> Iterator[str]:
    node, best = pod["spec"].get("nodeName"), max(said["scores"].values(), default=0)
    if node:
        # A node without a rival is not scored.
        if node not in said["fit"] or (len(said["fit"]) > 1 and said["scores"][node] < best):
            yield f"{title}: said {said}, went to {node}"
    elif said["fit"] or not word(pod).startswith(said["message"]):
        yield f"{title}: said {said}, was told {word(pod)}"

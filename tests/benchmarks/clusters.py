# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of any size to measure on, as the lists of a snapshot: the same size gives the same cluster.

A third of the pods are virtual machines (launcher pods with the labels KubeVirt gives them), in groups that keep
apart by host or by zone; some ask for labels or tolerate taints. The rest are pods of ordinary deployments.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

ZONES = 5
PODS_PER_NODE = 20
_MACHINES_IN_GROUP = 4
_GI = 2**30


def cluster(nodes: int) -> dict[str, list[Json]]:
    """`nodes` nodes with `PODS_PER_NODE` pods each."""
    pods = [_pod(number, f"node-{number % nodes}") for number in range(nodes * PODS_PER_NODE)]
    namespaces = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("machines", "apps")]
    return {"nodes": [_node(number) for number in range(nodes)], "pods": pods, "namespaces": namespaces}


def machine(name: str, group: int, *, wishes: bool = True) -> Json:
    """The launcher pod of a virtual machine that keeps apart from its group, without a node."""
    labels = {
        "kubevirt.io": "virt-launcher",
        "kubevirt.io/created-by": f"uid-{name}",
        "vm.kubevirt.io/name": name,
        "app": "machine",
        "group": f"group-{group}",
    }
    key = "topology.kubernetes.io/zone" if group % 3 == 0 else "kubernetes.io/hostname"
    selector = {"matchLabels": {"group": f"group-{group}"}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": selector}]}
    spec: Json = {
        "nodeSelector": {"kubevirt.io/schedulable": "true"},
        "affinity": {"podAntiAffinity": apart} if wishes else {},
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "containers": [_container("compute", "quay.io/kubevirt/virt-launcher:v1", 1000, 4 * _GI + 200 * 2**20)],
    }
    if group % 5 == 0:
        spec["nodeSelector"]["performance"] = "high"
        spec["tolerations"].append({"key": "dedicated", "operator": "Equal", "value": "machines"})
    return {"metadata": {"namespace": "machines", "name": name, "uid": name, "labels": labels}, "spec": spec}


def _node(number: int) -> Json:
    name = f"node-{number}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
        "topology.kubernetes.io/region": "region",
        "kubevirt.io/schedulable": "true",
        "performance": "high" if number % 4 == 0 else "standard",
    }
    taints = [{"key": "dedicated", "value": "machines", "effect": "NoSchedule"}] if number % 20 == 0 else []
    allocatable = {"cpu": "32", "memory": f"{96 + 32 * (number % 3)}Gi", "pods": "110", "devices.kubevirt.io/kvm": "1k"}
    images = [{"names": ["quay.io/kubevirt/virt-launcher:v1"], "sizeBytes": 700 * 2**20}] if number % 2 else []
    status = {"allocatable": allocatable, "images": images}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}


def _pod(number: int, node: str) -> Json:
    pod = machine(f"vm-{number}", number // (3 * _MACHINES_IN_GROUP)) if number % 3 == 0 else _ordinary(number)
    pod["spec"]["nodeName"] = node
    pod["status"] = {"phase": "Running"}
    return pod


def _ordinary(number: int) -> Json:
    app = f"app-{number % 400}"
    labels = {"app": app, "pod-template-hash": f"{number % 400:010x}"}
    spec = {"containers": [_container("main", f"example.org/{app}", 50 + 37 * number % 450, 7_654_321 * number % _GI)]}
    metadata = {"namespace": "apps", "name": f"{app}-{number}", "uid": f"pod-{number}", "labels": labels}
    return {"metadata": metadata, "spec": spec}


def _container(name: str, image: str, millis: int, memory: int) -> Json:
    requests = {"cpu": f"{millis}m", "memory": str(memory)}
    return {"name": name, "image": image, "resources": {"requests": requests}}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters with VMs to drain, in few words; launcher pods are rendered as KubeVirt renders them."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

Json = dict[str, Any]
Lists = dict[str, list[Json]]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Of the status of a VMI that cannot be migrated.
FIXED = {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable"}]}
_DEVICES = {f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")}


def node(name: str, zone: str = "", memory: str = "8Gi", *, cordoned: bool = False, **labels: str) -> Json:
    marks = {HOST: name, "kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64", **labels}
    if zone:
        marks[ZONE] = zone
    marks["machine-type.node.kubevirt.io/q35"] = "true"
    allocatable = {"cpu": "16", "memory": memory, "pods": "20", "ephemeral-storage": "100Gi", **_DEVICES}
    return {
        "metadata": {"name": name, "labels": marks},
        "spec": {"unschedulable": cordoned},
        "status": {"allocatable": allocatable},
    }


def rules(policy: str) -> Any:
    """One policy for all VMs."""
    return compile_rules([{"policy": policy}])


class Scene:
    """Lists that grow. A VM's memory is the guest's; its pod takes some 300 MiB more."""

    def __init__(self, *nodes: Json, **lists: list[Json]) -> None:
        self.lists: Lists = {"nodes": list(nodes), "pods": [], "vmis": [], "vms": [], "vmireplicasets": [], **lists}

    def vm(
        self,
        name: str,
        on: str,
        memory: str = "1Gi",
        *,
        owner: str = "VirtualMachine",
        status: Any = None,
        labels: Any = None,
        rules: Any = None,
    ) -> Json:
        """A VMI that runs, its pod, and what owns it (`owner=""`: nothing). `rules` are fields of the VMI's spec."""
        labels = {"app": name.rpartition("-")[0] or name, **(labels or {})}
        guest = {
            "architecture": "amd64",
            "evictionStrategy": "LiveMigrate",
            "domain": {
                "cpu": {"cores": 1},
                "memory": {"guest": memory},
                "machine": {"type": "q35"},
                "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
            },
            "networks": [{"name": "default", "pod": {}}],
            **(rules or {}),
        }
        metadata: Json = {"namespace": "shop", "name": name, "uid": f"vmi-{name}", "labels": labels}
        vmi: Json = {"metadata": metadata, "spec": guest}
        if owner:
            metadata["ownerReferences"] = [{"kind": owner, "name": name, "uid": f"owner-{name}", "controller": True}]
            template = {"metadata": {"labels": labels}, "spec": guest}
            owned: Json = {"metadata": {"namespace": "shop", "name": name, "uid": f"owner-{name}"}, "kind": owner}
            owned["spec"] = {"template": template} | ({"runStrategy": "Always"} if owner == "VirtualMachine" else {})
            self.lists["vms" if owner == "VirtualMachine" else "vmireplicasets"].append(owned)
        pod = launcher_pod({**vmi, "status": {"phase": "Running"}}, Configuration(), Namespace())
        pod["metadata"] |= {"name": f"virt-launcher-{name}", "uid": f"pod-{name}"}
        pod["spec"]["nodeName"] = on
        pod["status"] = {"phase": "Running"}
        vmi["status"] = {"phase": "Running", "nodeName": on, "selinuxContext": "none", **(status or {})}
        self.lists["vmis"].append(vmi)
        self.lists["pods"].append(pod)
        return vmi

    def pod(
        self, name: str, on: str, memory: str = "100Mi", *, owner: str = "ReplicaSet", metadata: Any = None, **spec: Any
    ) -> Json:
        """An ordinary pod that is ready; `owner`: the kind of its controller, "" for none."""
        labels = {"app": name.rpartition("-")[0] or name}
        owners = [{"apiVersion": "apps/v1", "kind": owner, "name": labels["app"], "uid": "o", "controller": True}]
        containers = [{"name": "c", "resources": {"requests": {"memory": memory}}}]
        pod: Json = {
            "metadata": {
                "namespace": "shop",
                "name": name,
                "uid": f"pod-{name}",
                "labels": labels,
                "ownerReferences": owners if owner else [],
                **(metadata or {}),
            },
            "spec": {"containers": containers, "nodeName": on, **spec},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        self.lists["pods"].append(pod)
        return pod


def migrating(lists: Lists, name: str, where: str) -> None:
    """Somebody has begun to migrate a VM, whose pod is there already."""
    (old,) = (pod for pod in lists["pods"] if pod["metadata"]["name"] == f"virt-launcher-{name}")
    pod = copy.deepcopy(old)
    pod["metadata"] |= {"name": f"virt-launcher-{name}-new", "uid": f"pod-{name}-new"}
    pod["metadata"]["labels"][MIGRATION_JOB] = f"m-{name}"
    pod["spec"]["nodeName"] = where
    lists["pods"].append(pod)
    metadata = {"namespace": "shop", "name": f"m-{name}", "uid": f"m-{name}"}
    spec = {"vmiName": name, "addedNodeSelector": {HOST: where}}
    lists.setdefault("migrations", []).append({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def apart(key: str, app: str, **fields: Any) -> Json:
    """Required anti-affinity to the pods of an app, one term; a VMI's `affinity`."""
    return {"podAntiAffinity": {_REQUIRED: [_term(key, app, fields)]}}


def near(key: str, app: str, **fields: Any) -> Json:
    return {"podAffinity": {_REQUIRED: [_term(key, app, fields)]}}


def apart_but_own(key: str, app: str) -> Json:
    """The same, without the VM's own pods."""
    return apart(key, app, mismatchLabelKeys=["kubevirt.io/created-by"])


def even(key: str, app: str, skew: int = 1, **fields: Any) -> list[Json]:
    """A hard topology spread constraint; a VMI's `topologySpreadConstraints`."""
    selector = {"matchLabels": {"app": app}}
    return [
        {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **fields}
    ]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _term(key: str, app: str, fields: Json) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short ways to write what a case plants: VMs, replica sets, Deployments, disruption budgets."""

from __future__ import annotations

from typing import Any

from testbed.api import Object

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def vm_template(app: str, **fields: Any) -> Object:
    """A small VM that can migrate. `memory`, `cpu_model`, `devices`, `claims`: of the guest; the rest: of its spec."""
    claims = fields.pop("claims", ())
    binding = fields.pop("binding", "masquerade")
    devices: dict[str, Any] = {"disks": [{"name": claim, "disk": {"bus": "virtio"}} for claim in claims]}
    spec: dict[str, Any] = {"evictionStrategy": "LiveMigrate", "terminationGracePeriodSeconds": 0}
    if binding:
        devices["interfaces"] = [{"name": "default", binding: {}}]
        spec["networks"] = [{"name": "default", "pod": {}}]
    spec["domain"] = {
        "cpu": {"cores": 1, "model": fields.pop("cpu_model", "Haswell")},
        "memory": {"guest": fields.pop("memory", "512Mi")},
        "devices": {**devices, **fields.pop("devices", {})},
    }
    if claims:
        spec["volumes"] = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec |= fields
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {name: value for name, value in spec.items() if value is not None},
    }


def vm(name: str = "vm", **fields: Any) -> Object:
    """A VM of its own; see `vm_template`."""
    spec = {"runStrategy": "Always", "template": vm_template(name, **fields)}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


def vms(name: str = "vms", *, replicas: int = 2, **fields: Any) -> Object:
    """A replica set of VMs; see `vm_template`."""
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": vm_template(name, **fields),
    }
    kind = "VirtualMachineInstanceReplicaSet"
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def deployment(name: str = "pods", *, replicas: int = 2, **fields: Any) -> Object:
    container = {"name": "c", "image": "registry.example/pause:1", "resources": {"requests": {"cpu": "10m"}}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **fields},
        },
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def budget(app: str, name: str = "budget", **rule: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": app}}, **rule}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def reached_from(node: str, disk: list[Object]) -> list[Object]:
    """A volume and its claim, of storage that one node alone reaches."""
    volume, claim = disk
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return [{**volume, "spec": {**volume["spec"], "nodeAffinity": affinity}}, claim]


def policy(name: str, app: str, **rules: Any) -> Object:
    spec = {"selectors": {"virtualMachineInstanceSelector": {"app": app}}, **rules}
    kind = "MigrationPolicy"
    return {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def term(key: str, app: str, **fields: Any) -> Object:
    """A term of pod affinity."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def apart(*terms: Object) -> Object:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def near(*terms: Object) -> Object:
    return {"podAffinity": {REQUIRED: list(terms)}}


def on(key: str, *values: str) -> Object:
    """Required node affinity."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def rather_on(key: str, value: str) -> Object:
    """Preferred node affinity."""
    preference = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": preference}]}}


def spread(key: str, app: str) -> list[Object]:
    selector = {"matchLabels": {"app": app}}
    return [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short ways to write the objects of a case, in the API's shape."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

HOST = "kubernetes.io/hostname"


def node(name: str, *, taints: Any = None, cordoned: Any = False, **fields: Any) -> Json:
    """A node with 4 cpus, 8 GiB and room for 10 pods unless `allocatable` is given; other fields are labels."""
    allocatable = fields.pop("allocatable", {"cpu": "4", "memory": "8Gi", "pods": "10"})
    status = {"allocatable": allocatable, **fields.pop("status", {})}
    spec = {"taints": taints or [], "unschedulable": cordoned}
    return {"metadata": {"name": name, "labels": {HOST: name, **fields}}, "spec": spec, "status": status}


def pod(name: str = "new", *, on: Any = None, labels: Any = None, **spec: Any) -> Json:
    """A pod without requests; `on`: the node it runs on. Fields of metadata and status are given by these names."""
    metadata = {
        "name": name,
        "namespace": spec.pop("namespace", "default"),
        "uid": f"uid-{name}",
        **spec.pop("metadata", {}),
    }
    status = {"phase": "Running" if on else "Pending", **spec.pop("status", {})}
    where = {"nodeName": on} if on else {}
    containers = spec.pop("containers", None) or [{"name": "c", "resources": {"requests": spec.pop("requests", {})}}]
    return {
        "metadata": {**metadata, "labels": labels or {}},
        "spec": {"containers": containers, **where, **spec},
        "status": status,
    }


def requires(*terms: Json) -> Json:
    """Required node affinity."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def term(key: str, selector: Json | None, **fields: Any) -> Json:
    """A term of pod affinity."""
    return {"topologyKey": key, "labelSelector": selector, **fields}


def near(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(key: str, selector: Json | None, skew: int = 1, *, soft: bool = False, **fields: Any) -> Json:
    action = "ScheduleAnyway" if soft else "DoNotSchedule"
    return {"topologyKey": key, "labelSelector": selector, "maxSkew": skew, "whenUnsatisfiable": action, **fields}


def claim(name: str, *, volume: str = "", storage_class: str = "", mode: str = "ReadWriteOnce", **fields: Any) -> Json:
    """A claim of 1 GiB in the default namespace; bound if a volume is named."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations, **fields.pop("metadata", {})}
    resources = {"requests": {"storage": fields.pop("size", "1Gi")}}
    spec = {"volumeName": volume, "storageClassName": storage_class, "accessModes": [mode], "resources": resources}
    return {"metadata": metadata, "spec": {**spec, **fields}, "status": {"phase": "Bound" if volume else "Pending"}}


def volume(name: str, *, terms: Any = None, labels: Any = None, **fields: Any) -> Json:
    """An available volume of 1 GiB."""
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms is not None else {}
    phase, capacity = fields.pop("phase", "Available"), fields.pop("size", "1Gi")
    spec = {"capacity": {"storage": capacity}, "accessModes": ["ReadWriteOnce"], **affinity, **fields}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}


def storage_class(name: str, provisioner: str = "csi.example.org", *, immediate: bool = False, **fields: Any) -> Json:
    mode = "Immediate" if immediate else "WaitForFirstConsumer"
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields}


def mounts(*claims: str) -> list[Json]:
    """spec.volumes for claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]

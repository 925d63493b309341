# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMIs, their pods and their owners, with the least that makes them what they are."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

NAMESPACE, NODE = "shop", "n1"


def vmi(name: str = "db", *, annotations: Any = None, status: Object | None = None, **spec: Any) -> Object:
    """One that runs on node n1 and can be migrated. `status` is laid over that; None removes a field."""
    whole = {
        "phase": "Running",
        "nodeName": NODE,
        "selinuxContext": "none",
        "conditions": [{"type": "LiveMigratable", "status": "True"}],
        **(status or {}),
    }
    return {
        "metadata": {**metadata(name), "labels": {"app": name}, "annotations": annotations or {}},
        "spec": {"architecture": "amd64", "domain": {}, **spec},
        "status": {key: value for key, value in whole.items() if value is not None},
    }


def launcher(owner: Object, name: str = "", *, node: str = NODE, phase: str = "Running", **spec: Any) -> Object:
    of = owner["metadata"]
    reference = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": of["name"],
        "uid": of["uid"],
        "controller": True,
    }
    resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    return {
        "metadata": {
            **metadata(name or f"virt-launcher-{of['name']}"),
            "labels": {**of.get("labels", {}), "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": of["uid"]},
            "ownerReferences": [reference],
        },
        "spec": {"nodeName": node, "containers": [{"name": "compute", "resources": resources}], **spec},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def node(name: str = NODE) -> Object:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}, "status": {}}


def migration(of: str = "db", phase: str = "Running", name: str = "", **spec: Any) -> Object:
    return {
        "metadata": metadata(name or f"{of}-migration"),
        "spec": {"vmiName": of, **spec},
        "status": {"phase": phase},
    }


def owned(item: Object, kind: str, name: str) -> Object:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    item["metadata"]["ownerReferences"] = [reference]
    return item


def metadata(name: str) -> Object:
    return {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}"}


def kubevirt(**configuration: Any) -> Object:
    return {
        "metadata": {"namespace": "kubevirt", "name": "kubevirt"},
        "spec": {"configuration": configuration},
        "status": {"phase": "Deployed"},
    }

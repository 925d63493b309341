# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as the API gives them, with the least that makes them what they are."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def named(name: str, namespace: str | None = None, **fields: Any) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "managedFields": [{}]}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, **fields}


def node(name: str, *, unschedulable: bool = False, heartbeat: str = "2026-01-01T00:00:00Z") -> Object:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": heartbeat}
    item = named(name, spec={"unschedulable": unschedulable}, status={"conditions": [ready]})
    item["metadata"]["annotations"] = {"kubevirt.io/heartbeat": heartbeat}
    return item


def pod(name: str, namespace: str = "default") -> Object:
    return named(
        name,
        namespace,
        spec={"nodeName": "n1", "containers": [{"name": "c", "env": [{"name": "PASSWORD", "value": "secret"}]}]},
        status={"phase": "Running"},
    )


def vmi(name: str, on: str, namespace: str = "default") -> Object:
    return named(
        name,
        namespace,
        apiVersion="kubevirt.io/v1",
        kind="VirtualMachineInstance",
        spec={"domain": {}},
        status={"phase": "Running", "nodeName": on},
    )


def migration(name: str, phase: str | None) -> Object:
    item = named(name, "default", kind="VirtualMachineInstanceMigration", spec={"vmiName": "a"})
    return item if phase is None else {**item, "status": {"phase": phase}}


def kubevirt(phase: str | None = "Deployed") -> Object:
    item = named("kubevirt", "kubevirt", apiVersion="kubevirt.io/v1", kind="KubeVirt", spec={})
    return {**item, "status": {"phase": phase, "observedKubeVirtVersion": "v1.8.4"}} if phase else item

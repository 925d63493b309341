# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as the API server gives them, with what the simulator reads."""

from __future__ import annotations

from typing import Any

from testbed.api import Object
from testbed.simulator.facts import Node, Pod, node_facts, pod_facts, timestamp

NOW = 1_800_000_000.0
UID = "vmi-uid"


def vmi(**status: Any) -> Object:
    """A VMI `ns/vm` of 1 GB, Running on node `a` unless the status says otherwise."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "vm",
            "namespace": "ns",
            "uid": UID,
            "resourceVersion": "1",
            "labels": {"app": "db", "kubevirt.io/nodeName": "a"},
            "creationTimestamp": timestamp(NOW - 3600),
        },
        "spec": {"domain": {"memory": {"guest": "1G"}, "devices": {}}},
        "status": {"phase": "Running", "nodeName": "a", "conditions": [], **status},
    }


def pod_object(name: str, node: str, migration: str = "", **status: Any) -> Object:
    """A virt-launcher pod of that VMI, running."""
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": UID}
    if migration:
        labels["kubevirt.io/migrationJobUID"] = migration
    container = {
        "name": "compute",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": timestamp(NOW)}},
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "1", "labels": labels},
        "spec": {"nodeName": node, "restartPolicy": "Never"},
        "status": {"phase": "Running", "containerStatuses": [container], **status},
    }


def pod(name: str, node: str, migration: str = "", **status: Any) -> Pod:
    return pod_facts(pod_object(name, node, migration, **status))


def node(name: str = "a", *, ready: bool = True, heartbeat: float = NOW, **labels: str) -> Node:
    """A node; `labels`: `schedulable` and `outage`."""
    keys = {"schedulable": "kubevirt.io/schedulable", "outage": "testbed/outage"}
    return node_facts(
        {
            "kind": "Node",
            "metadata": {
                "name": name,
                "resourceVersion": "1",
                "labels": {"kubevirt.io/schedulable": "true", **{keys[key]: value for key, value in labels.items()}},
                "annotations": {"kubevirt.io/heartbeat": timestamp(heartbeat)} if heartbeat else {},
            },
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"bootID": "first"},
            },
        }
    )

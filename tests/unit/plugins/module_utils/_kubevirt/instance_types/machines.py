# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs with instance types and preferences, and clusters that have these."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.catalog import InstanceTypes
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.expansion import (
    Expansion,
    expanded,
)

Object = dict[str, Any]
SIZE: Object = {"cpu": {"guest": 4}, "memory": {"guest": "2Gi"}}
SMALL: Object = {"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}
NAME = {"name": "u1"}


def item(name: str, spec: Object, namespace: str = "", **metadata: Any) -> Object:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}, "spec": spec}


def revision(name: str, kind: str, spec: Any, of: str = "u1") -> Object:
    labels = {"instancetype.kubevirt.io/object-name": of}
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "data": {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind, **({"spec": spec} if spec else {})},
    }


def vm(domain: Object | None = None, status: Object | None = None, named: Object | None = None, **spec: Any) -> Object:
    """named: instancetype and preference. spec: of its template."""
    return {
        "metadata": {"name": "db", "namespace": "shop", "uid": "u"},
        "spec": {
            "runStrategy": "Always",
            **({"instancetype": NAME} if named is None else named),
            "template": {"spec": {"domain": domain or {}, **spec}},
        },
        "status": status or {},
    }


def of(machine: Object, size: Object | None = None, preference: Object | None = None, **lists: Any) -> Expansion:
    """Where the cluster has this instance type and this preference, each called u1."""
    whole: Object = {
        "clusterinstancetypes": [item("u1", SIZE if size is None else size)],
        "clusterpreferences": [item("u1", preference or {})],
    }
    return expanded(machine, InstanceTypes({**whole, **lists}), Configuration())


def spec_of(found: Expansion) -> Any:
    assert not found.open
    return found.vm["spec"]["template"]["spec"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI as it would be, made of what would start it: a VM, a replica set, or a VMI that is not created yet.

Follows SetupVMIFromVM and startVMI in pkg/virt-controller/watch/vm/vm.go and getVirtualMachineBaseName in
watch/replicaset/replicaset.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi_defaults import with_defaults
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

# How uids begin that no object has yet.
NOT_CREATED: Final = "not-created-"


class WorkloadError(ExpectedError, ValueError):
    """An object is no VM, VMI or replica set: one sentence."""


def kind_of(item: Object) -> str:
    """Told by its parts, as items of a list need not name their kind. Raises WorkloadError."""
    spec = item.get("spec")
    metadata = item.get("metadata")
    if isinstance(spec, Mapping) and isinstance(metadata, Mapping) and metadata.get("name"):
        if isinstance(spec.get("domain"), Mapping):
            return VMI
        if isinstance((spec.get("template") or {}).get("spec"), Mapping) and "domain" in spec["template"]["spec"]:
            return VM if item.get("kind") == VM or "running" in spec or "runStrategy" in spec else VMI_REPLICA_SET
    raise WorkloadError(
        "A VirtualMachine, a VirtualMachineInstance or a VirtualMachineInstanceReplicaSet is expected. Give the whole "
        "object, with metadata.name and spec."
    )


def vmi_of(item: Object, configuration: Configuration, number: int = 0) -> JsonObject:
    """The VMI that `item` is, or that it would start, with KubeVirt's defaults filled in as far as its pod needs them.

    `number`: which replica of a replica set. Instance types and preferences are not applied. A uid that does not exist
    yet is made up, another one for each object and number. Raises WorkloadError.
    """
    kind = kind_of(item)
    given = item["metadata"]
    namespace = given.get("namespace") or "default"
    if kind == VMI:
        vmi = with_identity(item, _uid(kind, item, number))
        # virt-api sets the phase and, before it, the defaults of that time.
        return vmi if (item.get("status") or {}).get("phase") else with_defaults(vmi, configuration)
    template = item["spec"]["template"]
    own = template.get("metadata") or {}
    name = given["name"] if kind == VM else f"{own.get('name') or own.get('generateName') or given['name']}{number}"
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": _uid(kind, item, number),
        "labels": own.get("labels") or {},
        "annotations": own.get("annotations") or {},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": kind,
                "name": given["name"],
                "uid": given.get("uid") or "",
                "controller": True,
            }
        ],
    }
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": VMI, "metadata": metadata, "spec": template["spec"]}
    tracking = (item.get("status") or {}).get("changedBlockTracking")
    if kind == VM and tracking:
        vmi["status"] = {"changedBlockTracking": tracking}
    return with_defaults(vmi, configuration)


def with_identity(vmi: Object, uid: str = "") -> JsonObject:
    """A VMI with a namespace and a uid, which one written by hand may lack. `uid`: its own if it has none."""
    given = vmi["metadata"]
    uid = given.get("uid") or uid or _uid(VMI, vmi, 0)
    return {**vmi, "metadata": {**given, "namespace": given.get("namespace") or "default", "uid": uid}}


def uid_of_successor(vmi: Object) -> str:
    """In place of the uid of what is made in the place of a VMI: another one each time, and a valid value of labels.

    Empty if the VMI has none itself.
    """
    uid = vmi["metadata"].get("uid")
    return _made_up(f"after {uid}") if uid else ""


def _uid(kind: str, item: Object, number: int) -> str:
    """In place of one that the API server has yet to give: any will do that no other object has."""
    return _made_up(f"{kind} {title(item)} {number}")


def _made_up(of: str) -> str:
    return f"{NOT_CREATED}{hashlib.sha256(of.encode()).hexdigest()[:16]}"

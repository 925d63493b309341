# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of a snapshot: how each is called, where the API serves it, and what is kept of its items.

A further kind is one line here. Order is order in the file: what a comparison of two snapshots looks at comes first,
pods, by far the largest list, last.

Not in it: Deployments (their ReplicaSets own the pods), Jobs (a pod names its owner), VM pools (their VMs stand by
themselves), instance types (a running VMI carries the result).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_core as core,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_kubevirt as virt,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_storage as storage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import Projection

Object = Mapping[str, Any]

_FINAL_PHASES = frozenset({"Succeeded", "Failed"})


def _always(item: Object) -> bool:
    return True


def _is_unfinished(item: Object) -> bool:
    return (item.get("status") or {}).get("phase") not in _FINAL_PHASES


@dataclass(frozen=True, slots=True)
class Kind:
    """One list. `optional`: a cluster may do without its API. `keep`: which items belong in a snapshot at all."""

    name: str
    kind: str
    group: str
    version: str
    resource: str
    project: Projection
    optional: bool = False
    keep: Callable[[Object], bool] = _always

    @property
    def path(self) -> str:
        """URL path of the list over all namespaces."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        return f"{prefix}/{self.version}/{self.resource}"

    @property
    def title(self) -> str:
        """What messages call it: `pods`, `virtualmachines.kubevirt.io`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


_STORAGE = "storage.k8s.io"
_KUBEVIRT = "kubevirt.io"

KINDS: tuple[Kind, ...] = (
    Kind("kubevirts", "KubeVirt", _KUBEVIRT, "v1", "kubevirts", virt.KUBEVIRT),
    Kind("namespaces", "Namespace", "", "v1", "namespaces", core.NAMESPACE),
    Kind("nodes", "Node", "", "v1", "nodes", core.NODE),
    Kind("vmis", "VirtualMachineInstance", _KUBEVIRT, "v1", "virtualmachineinstances", virt.VMI),
    Kind("vms", "VirtualMachine", _KUBEVIRT, "v1", "virtualmachines", virt.VM),
    Kind(
        "vmireplicasets",
        "VirtualMachineInstanceReplicaSet",
        _KUBEVIRT,
        "v1",
        "virtualmachineinstancereplicasets",
        virt.VMI_REPLICA_SET,
    ),
    Kind(
        "migrations",
        "VirtualMachineInstanceMigration",
        _KUBEVIRT,
        "v1",
        "virtualmachineinstancemigrations",
        virt.MIGRATION,
        keep=_is_unfinished,
    ),
    Kind(
        "migrationpolicies",
        "MigrationPolicy",
        "migrations.kubevirt.io",
        "v1alpha1",
        "migrationpolicies",
        virt.MIGRATION_POLICY,
        optional=True,
    ),
    Kind("pdbs", "PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", core.POD_DISRUPTION_BUDGET),
    Kind("pvcs", "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", storage.CLAIM),
    Kind("pvs", "PersistentVolume", "", "v1", "persistentvolumes", storage.PERSISTENT_VOLUME),
    Kind("storageclasses", "StorageClass", _STORAGE, "v1", "storageclasses", storage.STORAGE_CLASS),
    Kind("csinodes", "CSINode", _STORAGE, "v1", "csinodes", storage.CSI_NODE),
    Kind("csidrivers", "CSIDriver", _STORAGE, "v1", "csidrivers", storage.CSI_DRIVER),
    Kind(
        "csistoragecapacities",
        "CSIStorageCapacity",
        _STORAGE,
        "v1",
        "csistoragecapacities",
        storage.CSI_STORAGE_CAPACITY,
        optional=True,
    ),
    Kind("volumeattachments", "VolumeAttachment", _STORAGE, "v1", "volumeattachments", storage.VOLUME_ATTACHMENT),
    Kind("resourcequotas", "ResourceQuota", "", "v1", "resourcequotas", core.RESOURCE_QUOTA),
    Kind("limitranges", "LimitRange", "", "v1", "limitranges", core.LIMIT_RANGE),
    Kind("priorityclasses", "PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", core.PRIORITY_CLASS),
    Kind("runtimeclasses", "RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", core.RUNTIME_CLASS, optional=True),
    Kind("services", "Service", "", "v1", "services", core.SERVICE),
    Kind("replicationcontrollers", "ReplicationController", "", "v1", "replicationcontrollers", core.OWNER),
    Kind("replicasets", "ReplicaSet", "apps", "v1", "replicasets", core.OWNER),
    Kind("statefulsets", "StatefulSet", "apps", "v1", "statefulsets", core.OWNER),
    Kind("daemonsets", "DaemonSet", "apps", "v1", "daemonsets", core.DAEMON_SET),
    Kind("pods", "Pod", "", "v1", "pods", core.POD),
)

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

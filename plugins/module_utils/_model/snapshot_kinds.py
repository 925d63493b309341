# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of a snapshot: how each is called, where the API serves it, what is kept of its items, and their types.

A further kind is one line here. Order is order in the file: what a comparison of two snapshots looks at comes first,
pods, by far the largest list, last.

Not in it: Deployments (their ReplicaSets own the pods), Jobs (a pod names its owner), VM pools (their VMs stand by
themselves).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_core as core,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_instance_types as types,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_kubevirt as virt,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    projection_storage as storage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import (
    shapes_core,
    shapes_instance_types,
    shapes_kubevirt,
    shapes_storage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import Projection
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import Shape


def _always(item: Object) -> bool:
    return True


def _is_unfinished(item: Object) -> bool:
    return not has_ended(item)


@dataclass(frozen=True, slots=True)
class Kind:
    """One list. `optional`: a cluster may do without its API. `keep`: which items belong in a snapshot at all.

    `dispensable`: who may not list it does without, too. What it would tell is then said to be open. `selector`: labels
    by which the API server itself leaves out what never belongs in a snapshot; `field_selector`: the same by fields.
    """

    name: str
    kind: str
    group: str
    version: str
    resource: str
    project: Projection
    shape: Shape
    optional: bool = False
    dispensable: bool = False
    selector: str = ""
    field_selector: str = ""
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
_INSTANCE_TYPE = "instancetype.kubevirt.io"


def _instance_type(name: str, kind: str, project: Projection, shape: Shape) -> Kind:
    resource = f"{kind.lower()}s"
    return Kind(name, kind, _INSTANCE_TYPE, "v1beta1", resource, project, shape, optional=True, dispensable=True)


KINDS: tuple[Kind, ...] = (
    Kind("kubevirts", "KubeVirt", _KUBEVIRT, "v1", "kubevirts", virt.KUBEVIRT, shapes_kubevirt.KUBEVIRT),
    Kind("namespaces", "Namespace", "", "v1", "namespaces", core.NAMESPACE, shapes_core.NAMESPACE),
    Kind("nodes", "Node", "", "v1", "nodes", core.NODE, shapes_core.NODE),
    Kind("vmis", "VirtualMachineInstance", _KUBEVIRT, "v1", "virtualmachineinstances", virt.VMI, shapes_kubevirt.VMI),
    Kind("vms", "VirtualMachine", _KUBEVIRT, "v1", "virtualmachines", virt.VM, shapes_kubevirt.VM),
    Kind(
        "vmireplicasets",
        "VirtualMachineInstanceReplicaSet",
        _KUBEVIRT,
        "v1",
        "virtualmachineinstancereplicasets",
        virt.VMI_REPLICA_SET,
        shapes_kubevirt.VMI_REPLICA_SET,
    ),
    Kind(
        "migrations",
        "VirtualMachineInstanceMigration",
        _KUBEVIRT,
        "v1",
        "virtualmachineinstancemigrations",
        virt.MIGRATION,
        shapes_kubevirt.MIGRATION,
        keep=_is_unfinished,
    ),
    Kind(
        "migrationpolicies",
        "MigrationPolicy",
        "migrations.kubevirt.io",
        "v1alpha1",
        "migrationpolicies",
        virt.MIGRATION_POLICY,
        shapes_kubevirt.MIGRATION_POLICY,
        optional=True,
    ),
    _instance_type(
        "instancetypes", "VirtualMachineInstancetype", types.INSTANCE_TYPE, shapes_instance_types.INSTANCE_TYPE
    ),
    _instance_type(
        "clusterinstancetypes",
        "VirtualMachineClusterInstancetype",
        types.INSTANCE_TYPE,
        shapes_instance_types.INSTANCE_TYPE,
    ),
    _instance_type("preferences", "VirtualMachinePreference", types.PREFERENCE, shapes_instance_types.PREFERENCE),
    _instance_type(
        "clusterpreferences", "VirtualMachineClusterPreference", types.PREFERENCE, shapes_instance_types.PREFERENCE
    ),
    # Those of DaemonSets and StatefulSets hold whole pods, and no user of instance types needs them.
    Kind(
        "controllerrevisions",
        "ControllerRevision",
        "apps",
        "v1",
        "controllerrevisions",
        types.REVISION,
        shapes_instance_types.REVISION,
        dispensable=True,
        selector=f"{_INSTANCE_TYPE}/object-name",
    ),
    Kind(
        "pdbs",
        "PodDisruptionBudget",
        "policy",
        "v1",
        "poddisruptionbudgets",
        core.POD_DISRUPTION_BUDGET,
        shapes_core.POD_DISRUPTION_BUDGET,
    ),
    Kind("pvcs", "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", storage.CLAIM, shapes_storage.CLAIM),
    Kind(
        "pvs",
        "PersistentVolume",
        "",
        "v1",
        "persistentvolumes",
        storage.PERSISTENT_VOLUME,
        shapes_storage.PERSISTENT_VOLUME,
    ),
    Kind(
        "storageclasses",
        "StorageClass",
        _STORAGE,
        "v1",
        "storageclasses",
        storage.STORAGE_CLASS,
        shapes_storage.STORAGE_CLASS,
    ),
    Kind("csinodes", "CSINode", _STORAGE, "v1", "csinodes", storage.CSI_NODE, shapes_storage.CSI_NODE),
    Kind("csidrivers", "CSIDriver", _STORAGE, "v1", "csidrivers", storage.CSI_DRIVER, shapes_storage.CSI_DRIVER),
    Kind(
        "csistoragecapacities",
        "CSIStorageCapacity",
        _STORAGE,
        "v1",
        "csistoragecapacities",
        storage.CSI_STORAGE_CAPACITY,
        shapes_storage.CSI_STORAGE_CAPACITY,
        optional=True,
    ),
    Kind(
        "volumeattachments",
        "VolumeAttachment",
        _STORAGE,
        "v1",
        "volumeattachments",
        storage.VOLUME_ATTACHMENT,
        shapes_storage.VOLUME_ATTACHMENT,
    ),
    Kind(
        "resourcequotas", "ResourceQuota", "", "v1", "resourcequotas", core.RESOURCE_QUOTA, shapes_core.RESOURCE_QUOTA
    ),
    Kind("limitranges", "LimitRange", "", "v1", "limitranges", core.LIMIT_RANGE, shapes_core.LIMIT_RANGE),
    Kind(
        "priorityclasses",
        "PriorityClass",
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        core.PRIORITY_CLASS,
        shapes_core.PRIORITY_CLASS,
    ),
    Kind(
        "runtimeclasses",
        "RuntimeClass",
        "node.k8s.io",
        "v1",
        "runtimeclasses",
        core.RUNTIME_CLASS,
        shapes_core.RUNTIME_CLASS,
        optional=True,
    ),
    Kind(
        "networkattachmentdefinitions",
        "NetworkAttachmentDefinition",
        "k8s.cni.cncf.io",
        "v1",
        "network-attachment-definitions",
        core.NETWORK_ATTACHMENT_DEFINITION,
        shapes_core.PLAIN,
        optional=True,
        dispensable=True,
    ),
    Kind("services", "Service", "", "v1", "services", core.SERVICE, shapes_core.SERVICE),
    Kind(
        "replicationcontrollers",
        "ReplicationController",
        "",
        "v1",
        "replicationcontrollers",
        core.OWNER,
        shapes_core.REPLICATION_CONTROLLER,
    ),
    Kind("replicasets", "ReplicaSet", "apps", "v1", "replicasets", core.OWNER, shapes_core.OWNER),
    Kind("statefulsets", "StatefulSet", "apps", "v1", "statefulsets", core.OWNER, shapes_core.OWNER),
    Kind("daemonsets", "DaemonSet", "apps", "v1", "daemonsets", core.DAEMON_SET, shapes_core.DAEMON_SET),
    Kind("pods", "Pod", "", "v1", "pods", core.POD, shapes_core.POD),
)

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}
BY_KIND: Mapping[str, Kind] = {kind.kind: kind for kind in KINDS}

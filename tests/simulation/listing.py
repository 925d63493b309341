# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model as lists of the API's objects, such as a snapshot of a cluster has: what the planner of the product reads.

The room of a node is memory, the rule of a group is anti-affinity in its zone that leaves a VM's own pods out, and who
is picky selects large nodes. So the scheduler of the product decides as the model does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import (
    CREATED_BY,
    MIGRATION_JOB,
    SCHEDULABLE,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import MAINTAINED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, REQUIRED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot, from_plain

from simulation.world import (
    CAP_CLUSTER,
    CAP_OUTBOUND,
    LARGE,
    NAMESPACE,
    ROOM,
    RUN,
    VM,
    ZONES,
    Moving,
    Owner,
    Pod,
    Vmi,
    World,
)

Json = dict[str, Any]

# By label, what becomes of a VM that cannot be migrated.
POLICY = "policy"
_ZONE, _KIND, _GROUP = "topology.kubernetes.io/zone", "performance", "group"
_VMI = "VirtualMachineInstance"
# What a VM takes, and what its pod takes beside that, at most.
_GIB, _OVERHEAD_GIB = 8, 1
_ALLOCATABLE = {
    "cpu": "64",
    "memory": f"{ROOM * (_GIB + _OVERHEAD_GIB)}Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
    **{f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")},
}
_TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def snapshot(world: World) -> Snapshot:
    """The model as it is now."""
    return from_plain(
        {
            "kubevirts": [_KUBEVIRT],
            "nodes": [_node(world, name) for name in ZONES],
            "vms": [_owner(owner) for owner in world.owners.values() if owner.kind == VM],
            "vmireplicasets": [_owner(owner) for owner in world.owners.values() if owner.kind != VM],
            "vmis": [_vmi(vmi) for vmi in world.vmis.values()],
            "migrations": [_migration(moving) for moving in world.migrations.values() if moving.unfinished],
            "pods": list(_pods(world)),
        }
    )


_KUBEVIRT: Json = {
    "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
    "spec": {
        "configuration": {
            "migrations": {
                "parallelMigrationsPerCluster": CAP_CLUSTER,
                "parallelOutboundMigrationsPerNode": CAP_OUTBOUND,
            }
        }
    },
    "status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.8.4", "defaultArchitecture": "amd64"},
}
_CONFIGURATION = configuration({"kubevirts": [_KUBEVIRT]})


def _node(world: World, name: str) -> Json:
    labels = {HOSTNAME: name, _ZONE: ZONES[name], SCHEDULABLE: "true", "kubernetes.io/arch": "amd64"}
    labels["machine-type.node.kubevirt.io/q35"] = "true"
    if name in LARGE:
        labels[_KIND] = "high"
    if name in world.given_back:
        labels[MAINTAINED] = RUN
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"unschedulable": name in world.cordons},
        "status": {"allocatable": _ALLOCATABLE},
    }


def _owner(owner: Owner) -> Json:
    labels = _labels(owner.group, migratable=owner.migratable, stop=_is_stopped(owner))
    spec: Json = {"template": {"metadata": {"labels": labels}, "spec": _guest(owner.group, owner.picky, owner.size)}}
    spec |= {"runStrategy": owner.strategy} if owner.kind == VM else {"replicas": owner.replicas}
    return {"kind": owner.kind, "metadata": _metadata(owner.name, owner.uid), "spec": spec}


def _is_stopped(owner: Owner | None) -> bool:
    """Some are stopped and some restarted; what would come back by itself is not stopped."""
    return owner is not None and owner.kind == VM and owner.uid.endswith(("1", "3", "5", "7", "9"))


def _labels(group: str, *, migratable: bool, stop: bool) -> Json:
    found = {_GROUP: group} if group else {}
    return found if migratable else {**found, POLICY: "stop" if stop else "restart"}


def _guest(group: str, picky: bool, size: int) -> Json:
    return {**_rules(group, picky), "domain": _domain(size), **_SAME}


_SAME: Json = {
    "architecture": "amd64",
    "evictionStrategy": "LiveMigrate",
    "networks": [{"name": "default", "pod": {}}],
}


def _domain(size: int) -> Json:
    return {
        "cpu": {"cores": 1},
        "memory": {"guest": f"{size * _GIB}Gi"},
        "machine": {"type": "q35"},
        "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
    }


def _rules(group: str, picky: bool) -> Json:
    found: Json = {"nodeSelector": {_KIND: "high"}} if picky else {}
    if group:
        term = {
            "topologyKey": _ZONE,
            "labelSelector": {"matchLabels": {_GROUP: group}},
            "mismatchLabelKeys": [CREATED_BY],
        }
        found["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    return found


def _vmi(vmi: Vmi) -> Json:
    labels = _labels(vmi.group, migratable=vmi.migratable, stop=_is_stopped(vmi.owner))
    metadata = {**_metadata(vmi.name, vmi.uid, ending=vmi.ending), "labels": labels}
    if vmi.owner is not None:
        metadata["ownerReferences"] = _owned_by(vmi.owner.kind, vmi.owner.name, vmi.owner.uid)
    can = {"type": "LiveMigratable", "status": str(vmi.migratable)}
    status: Json = {"phase": vmi.phase, "nodeName": vmi.node, "selinuxContext": "none", "conditions": [can]}
    return {"metadata": metadata, "spec": _guest(vmi.group, vmi.picky, vmi.size), "status": status}


def _migration(moving: Moving) -> Json:
    metadata = _metadata(moving.name, moving.uid, ending=moving.cancelled)
    if run := RUN if moving.ours else moving.run:
        metadata["labels"] = {RUN_LABEL: run}
    spec = {"vmiName": moving.vmi.name, "addedNodeSelector": {HOSTNAME: moving.target}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": moving.phase}}


def _pods(world: World) -> Iterator[Json]:
    """A VMI's that is gone, with its pods left, is not told of any more."""
    jobs = {moving.pod: moving.uid for moving in world.migrations.values() if moving.pod}
    for pod in world.pods.values():
        if not pod.machine:
            yield _ordinary(world, pod)
        elif (vmi := world.vmis.get(pod.owner_uid)) is not None:
            yield _launcher(pod, vmi, jobs.get(pod.uid))


def _ordinary(world: World, pod: Pod) -> Json:
    owner = world.sets.get(pod.owner_uid)
    kind, name = (owner.kind, owner.name) if owner else ("ReplicaSet", pod.owner_uid)
    metadata = {**_metadata(pod.name, pod.uid, ending=pod.ending), "labels": {"app": name}}
    metadata["ownerReferences"] = _owned_by(kind, name, pod.owner_uid)
    spec: Json = {"containers": [{"name": "c"}], "tolerations": [_TOLERATION] if pod.tolerates else []}
    return {"metadata": metadata, "spec": spec | _place(pod), "status": {"phase": "Running"}}


def _launcher(pod: Pod, vmi: Vmi, job: str | None) -> Json:
    rendered = _rendered(vmi.uid, vmi.group, vmi.picky, pod.size)
    labels = rendered["metadata"]["labels"] | _labels(vmi.group, migratable=vmi.migratable, stop=_is_stopped(vmi.owner))
    if job is not None:
        labels[MIGRATION_JOB] = job
    metadata = {**_metadata(pod.name, pod.uid, ending=pod.ending), "labels": labels}
    metadata["ownerReferences"] = _owned_by(_VMI, vmi.name, vmi.uid)
    return {"metadata": metadata, "spec": rendered["spec"] | _place(pod), "status": {"phase": "Running"}}


@functools.cache
def _rendered(uid: str, group: str, picky: bool, size: int) -> Json:
    """A pod of a VMI as KubeVirt makes it, but for its name."""
    vmi = {"metadata": _metadata(uid, uid), "spec": _guest(group, picky, size)}
    return launcher_pod(vmi, _CONFIGURATION, Namespace())


def _place(pod: Pod) -> Json:
    return {"nodeName": pod.node} if pod.node else {}


def _metadata(name: str, uid: str, *, ending: bool = False) -> Json:
    found = {"namespace": NAMESPACE, "name": name, "uid": uid}
    return found | {"deletionTimestamp": "2026-01-01T00:00:00Z"} if ending else found


def _owned_by(kind: str, name: str, uid: str) -> list[Json]:
    api = "kubevirt.io/v1" if kind.startswith(VM) else "apps/v1"
    return [{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}]

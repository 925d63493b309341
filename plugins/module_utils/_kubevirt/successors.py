# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes in the place of what ends: who starts a VMI again, and the pods that controllers make for others.

Whether a VMI that has ended is started again follows syncRunStrategy in pkg/virt-controller/watch/vm/vm.go, and
watch/replicaset/replicaset.go beside it. VMs of a VirtualMachinePool follow their own run strategy: the pool only keeps
their number.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import pod_of_successor
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    Workloads,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
    JsonObject,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    ALWAYS,
    RERUN_ON_FAILURE,
    run_strategy,
)


@dataclass(frozen=True, slots=True)
class Revival:
    """Whether it is started again (None if that is not known), and a clause that says why. new: by another VMI."""

    starts: bool | None
    reason: str
    new: bool = False


def revival(vmi: Object, workloads: Workloads, *, failed: bool) -> Revival:
    """`failed`: the guest breaks off; else it is shut down in order."""
    owner = controller(vmi)
    if owner is None or owner["kind"] not in (VM, VMI_REPLICA_SET):
        return Revival(False, "nothing that owns it starts it again")
    title, name = f"{owner['kind']} {owner['name']}", f"{vmi['metadata'].get('namespace') or 'default'}/{owner['name']}"
    item = workloads.vm(name) if owner["kind"] == VM else workloads.replica_set(name)
    if item is None:
        return Revival(None, f"{title}, which decides whether it starts again, is not known")
    if item["metadata"].get("deletionTimestamp"):
        return Revival(False, f"{title} is being deleted")
    return _by_vm(title, item, failed) if owner["kind"] == VM else _by_replica_set(title, item)


def _by_vm(title: str, vm: Object, failed: bool) -> Revival:
    strategy = run_strategy(vm)
    if strategy == ALWAYS or (strategy == RERUN_ON_FAILURE and failed):
        return Revival(True, f"{title} starts it again (runStrategy {strategy})")
    if strategy == RERUN_ON_FAILURE:
        reason = f"{title} starts it again only after a failure (runStrategy {strategy}), not when it is shut down"
        return Revival(False, reason)
    return Revival(False, f"{title} does not start it again (runStrategy {strategy})")


def _by_replica_set(title: str, replica_set: Object) -> Revival:
    if (replica_set.get("spec") or {}).get("paused"):
        return Revival(False, f"{title} is paused and starts no other one")
    return Revival(True, f"{title} starts another one in its place", new=True)


# Their pods keep their names, so the new one comes only when the old one is gone.
_SAME_NAME = "StatefulSet"
# The API server gives them to a pod together with its node.
_LABELS_OF_ITS_NODE = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})


def is_leaving(pod: Object) -> bool:
    """Whether it is being deleted already."""
    return pod["metadata"].get("deletionTimestamp") is not None


def replacement(pod: Object) -> JsonObject | None:
    """The v1.Pod that its controller makes in its place, without a node and with nothing yet bound to it.

    None: nothing makes one. What admission added to the old pod, it adds to the new one.
    """
    owner = controller(pod)
    if owner is None or is_leaving(pod):
        return None
    metadata = pod["metadata"]
    # A name that no pod can have, so that it is not another's by accident.
    name = metadata["name"] if owner.get("kind") == _SAME_NAME else f"{metadata['name']}/replacement"
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _LABELS_OF_ITS_NODE}
    fresh = {key: value for key, value in metadata.items() if key != "uid"}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"metadata": {**fresh, "name": name, "labels": labels}, "spec": spec}


def next_launcher(vmi: Object, source_pod: Object, around: Surroundings) -> tuple[Pod, Object, tuple[str, ...]]:
    """The launcher pod of the next start of a VM that something owns, and why the API server refuses it.

    source_pod: in which it runs now, or did. Raises LauncherError, WorkloadError, `QuantityError`, `SelectorError`.
    """
    found = pod_of_successor(vmi, _maker(vmi, around.workloads), around)
    # A name that no pod can have, so that it is not another's by accident.
    name = f"{source_pod['metadata']['name']}/restart"
    raw = {**found.pod, "metadata": {**found.pod["metadata"], "name": name}}
    return pod(raw), raw, found.refusals


def _maker(vmi: Object, workloads: Workloads) -> Object:
    """What makes the next VMI; where that is not known, a VMI like this one."""
    owner, metadata = controller(vmi) or {}, vmi["metadata"]
    name = f"{metadata.get('namespace') or 'default'}/{owner['name']}"
    maker = {VM: workloads.vm, VMI_REPLICA_SET: workloads.replica_set}.get(owner["kind"], lambda _name: None)(name)
    return maker or {**vmi, "status": {}}

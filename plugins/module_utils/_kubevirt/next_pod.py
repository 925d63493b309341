# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next pod of a VM: that of its migration if it runs, else the one it would be started with.

What a VM is started with is its own specification, whatever has been changed of its running VMI or stands in the status
of that; only a VMI that nothing owns starts as it is. The API server may refuse the pod of a start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.limit_range import of_limit_ranges
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.quota import excesses, of_quotas
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.expansion import (
    Expansion,
    expanded,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.open_questions import (
    open_questions,
    open_questions_of_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError, launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import (
    kind_of,
    uid_of_successor,
    vmi_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    Workloads,
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    JsonObject,
    Object,
    controller,
    has_ended,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import QuantityError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import require_shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_KIND

_RUNNING = "Running"
_ON_A_NODE = frozenset({"Scheduled", _RUNNING})


class UnknownWorkloadError(ExpectedError, ValueError):
    """What is asked about is not there: one sentence that says what is missing, and what to do."""


class NoMigrationError(ExpectedError, ValueError):
    """There is no pod of a migration: one sentence that says for which VMI, why, and what to do."""


@dataclass(frozen=True, slots=True)
class NextPod:
    """`title`: namespace/name of the VMI. `pod`: a v1.Pod as it would be stored, without a node.

    `open`: phrases for what of it could not be foreseen. `source_node`: of a migration; empty for a start. `refusals`:
    of a start, clauses that say why the API server does not take the pod.
    """

    title: str
    pod: Object
    open: tuple[str, ...] = ()
    source_node: str = ""
    refusals: tuple[str, ...] = ()


def next_pod(asked: Object | str, around: Surroundings) -> NextPod:
    """`asked`: a VM, a VMI, a replica set (of which the next replica counts), or the namespace/name of one.

    Raises UnknownWorkloadError, NoMigrationError, WorkloadError, LauncherError, `QuantityError`, `SelectorError`.
    """
    item = _item(asked, around.workloads)
    vmi = _vmi(item, around.workloads)
    if vmi is not None and (vmi.get("status") or {}).get("phase") in _ON_A_NODE:
        return _migrated(vmi, around, {})
    return _started(_started_next(item, around.workloads), around, _pods(vmi, around.workloads))


def pod_of_migration(asked: Object | str, around: Surroundings, added_node_selector: Mapping[str, str]) -> NextPod:
    """The same for the migration of what runs already, with the node selector that the migration adds.

    Of a replica set the first VMI that runs counts, by name.
    """
    workloads = around.workloads
    item = _item(asked, workloads)
    vmi = _replica(item, workloads) if kind_of(item) == VMI_REPLICA_SET else _vmi(item, workloads)
    if vmi is None:
        raise NoMigrationError(
            f"{kind_of(item)} {title(item)} has no VirtualMachineInstance that could be migrated. Start it, or ask for "
            "the pod it would be started with."
        )
    return _migrated(vmi, around, added_node_selector)


def pod_of_start(asked: Object | str, around: Surroundings) -> NextPod:
    """The same for a start, as if nothing ran yet."""
    workloads = around.workloads
    item = _item(asked, workloads)
    return _started(_started_next(item, workloads), around, _pods(_vmi(item, workloads), workloads))


def pod_of_successor(vmi: Object, maker: Object, around: Surroundings) -> NextPod:
    """The same for what a VM or a replica set makes in the place of a VMI, whose pods are gone by then.

    It has the VMI's name, and a uid of its own as by `uid_of_successor`: what a replica set makes for one of its VMIs
    is not what it makes for another.
    """
    return _started(maker, around, _pods(vmi, around.workloads), before=vmi)


def _item(asked: Object | str, workloads: Workloads) -> Object:
    if not isinstance(asked, str):
        require_shape(BY_KIND[kind_of(asked)], asked)
        return asked
    found = workloads.find(asked)
    if found is None:
        raise UnknownWorkloadError(
            f"There is no VirtualMachine, VirtualMachineInstance or replica set {asked!r}. Give namespace/name as in "
            "default/database, and check that the snapshot has it."
        )
    return found


def _vmi(item: Object, workloads: Workloads) -> Object | None:
    kind = kind_of(item)
    if kind == VMI_REPLICA_SET:
        return None
    return workloads.vmi(title(item)) if kind == VM else item


def _replica(replica_set: Object, workloads: Workloads) -> Object | None:
    replicas = workloads.vmis_of(title(replica_set))
    running = (vmi for vmi in replicas if (vmi.get("status") or {}).get("phase") == _RUNNING)
    return min(running, key=title, default=None)


def _started_next(item: Object, workloads: Workloads) -> Object:
    """What the next start is made of: of a VMI that had its start, the VM or replica set that has made it."""
    if kind_of(item) == VM:
        return item
    phase = (item.get("status") or {}).get("phase")
    if kind_of(item) == VMI_REPLICA_SET or not (phase in _ON_A_NODE or has_ended(item)):
        return item
    # A VM's VMI has its name.
    if vm := workloads.vm(title(item)):
        return vm
    kind, name = _owner(item)
    replica_set = workloads.replica_set(name) if kind == VMI_REPLICA_SET else None
    return replica_set or {field: value for field, value in item.items() if field != "status"}


def _owner(vmi: Object) -> tuple[str, str]:
    """Kind, and namespace/name."""
    owner = controller(vmi) or {}
    return owner.get("kind") or "", f"{vmi['metadata'].get('namespace') or 'default'}/{owner.get('name')}"


def _pods(vmi: Object | None, workloads: Workloads) -> list[Object]:
    return [] if vmi is None else workloads.active_pods(vmi)


def _completed(vm: Object, vmi: Object | None) -> Object:
    """With what instance type and preference give the VM, as far as its VMI tells: they are not among the lists."""
    if vmi is None:
        return vm
    template = vm["spec"]["template"]
    spec = {**vm["spec"], "template": {**template, "spec": _laid_over(vmi["spec"], template["spec"])}}
    return {**vm, "spec": spec}


def _laid_over(below: Object, above: Object) -> JsonObject:
    """What is above wins, field by field."""
    found = {**below, **above}
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping):
            found[name] = _laid_over(below[name], value)
    return found


def _started(item: Object, around: Surroundings, gone: Sequence[Object], before: Object | None = None) -> NextPod:
    """`gone`: pods that have ended by then. before: the VMI that it is made for, if there is one."""
    settings = around.configuration
    try:
        whole = expanded(item, around.types, settings) if kind_of(item) == VM else Expansion(item)
        maker = _completed(whole.vm, around.workloads.vmi(title(item))) if whole.open else whole.vm
        vmi = vmi_of(maker, settings)
        if before is not None and (uid := uid_of_successor(before)):
            vmi = {**vmi, "metadata": {**vmi["metadata"], "name": before["metadata"]["name"], "uid": uid}}
        namespace = around.namespaces.of(vmi)
        pod = launcher_pod(vmi, settings, namespace)
        refusals = start_refusals(pod, title(vmi), namespace, gone=gone)
    except QuantityError as error:
        raise LauncherError(f"The pod of {title(item)} cannot be foreseen: {error}. Correct that amount.") from error
    return NextPod(title(vmi), pod, (*whole.open, *open_questions(item, vmi, settings, namespace)), refusals=refusals)


def _migrated(vmi: Object, around: Surroundings, added: Mapping[str, str]) -> NextPod:
    workloads, settings, namespace = around.workloads, around.configuration, around.namespaces.of(vmi)
    source_pod, node = workloads.source_pod(vmi), (vmi.get("status") or {}).get("nodeName") or ""
    if source_pod is None:
        raise NoMigrationError(
            f"{VMI} {title(vmi)} has no pod{f' on {node}' if node else ''} to migrate from. Give a snapshot with its "
            "pods, or wait until the VM runs."
        )
    pod = target_pod(vmi, source_pod, workloads.node(node), settings, namespace, added)
    if isinstance(pod, NoTargetPod):
        remedy = f"{pod.remedy[:1].upper()}{pod.remedy[1:]}"
        raise NoMigrationError(f"KubeVirt makes no pod for a migration of {title(vmi)}: {pod.problem}. {remedy}.")
    return NextPod(title(vmi), pod, tuple(open_questions_of_migration(vmi, source_pod, pod, settings, namespace)), node)


def start_refusals(
    pod: Object, name: str, namespace: Namespace, *, gone: Sequence[Object] = (), come: Sequence[Object] = ()
) -> tuple[str, ...]:
    """Clauses. `name`: namespace/name of the VMI. gone, come: as for `excesses`. Raises `QuantityError`."""
    called = f"the pod with which {name} would start"
    over = excesses(pod, namespace.quotas, gone=gone, come=come)
    found = (
        *of_limit_ranges(pod, namespace.limit_ranges, called),
        *of_quotas(pod, over, called, "raise the quota, or free some of it"),
    )
    return tuple(blocker.clause for blocker in found)

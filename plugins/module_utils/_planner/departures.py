# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that leave without a migration: they are shut down, and their owner starts them elsewhere, or does not."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import pod_of_successor
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.revival import revival
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VM, VMI_REPLICA_SET, Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.machines import leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Lists, Machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


def departure(
    machine: Machine, policy: Policy, lists: Lists, cluster: Surroundings, state: ClusterState
) -> Mover | str:
    """The mover of a VM that is shut down; or a clause that says why its policy cannot be followed.

    Its newcomer is the launcher pod of the next start; None if there is none while the VM is to be off. Raises
    WorkloadError, `QuantityError`, `SelectorError`.
    """
    again, owner = revival(machine.vmi, cluster.workloads, failed=False), controller(machine.vmi)
    if policy is Policy.RESTART and not again.starts and not _restarts_when_asked(machine, owner, cluster.workloads):
        return again.reason
    if owner is None or owner["kind"] not in (VM, VMI_REPLICA_SET):
        return again.reason
    try:
        newcomer, raw, refusals = next_launcher(machine, cluster)
    except LauncherError as error:
        return str(error).rstrip(".")
    # Who is not let in once he is out is not to be sent out, not even for a while.
    if refusals:
        return refusals[0]
    # A VM can be told to stay off. A replica set cannot: it makes another VMI at once.
    comes = policy is Policy.RESTART or again.new
    return Mover(
        key=machine.key,
        source=machine.node,
        leaving=leaving(machine, state),
        newcomer=newcomer if comes else None,
        raw=raw if comes else None,
    )


def next_launcher(machine: Machine, cluster: Surroundings) -> tuple[Pod, Object, tuple[str, ...]]:
    """The launcher pod of the next start of a VM that something owns, and why the API server refuses it.

    Raises LauncherError, WorkloadError, `QuantityError`, `SelectorError`.
    """
    found = pod_of_successor(machine.vmi, _maker(machine, cluster.workloads), cluster)
    # A name that no pod can have, so that it is not another's by accident.
    name = f"{machine.source_pod['metadata']['name']}/restart"
    raw = {**found.pod, "metadata": {**found.pod["metadata"], "name": name}}
    return pod(raw), raw, found.refusals


def _restarts_when_asked(machine: Machine, owner: Object | None, workloads: Workloads) -> bool:
    """A drain does not only end a VM, it asks for the restart, which every run strategy but `Halted` allows."""
    if owner is None or owner["kind"] != VM:
        return False
    vm = workloads.vm(f"{machine.vmi['metadata'].get('namespace') or 'default'}/{owner['name']}")
    return vm is not None and not vm["metadata"].get("deletionTimestamp") and run_strategy(vm) != HALTED


def _maker(machine: Machine, workloads: Workloads) -> Object:
    """What makes the next VMI; where that is not known, a VMI like this one."""
    owner, metadata = controller(machine.vmi) or {}, machine.vmi["metadata"]
    name = f"{metadata.get('namespace') or 'default'}/{owner['name']}"
    maker = {VM: workloads.vm, VMI_REPLICA_SET: workloads.replica_set}.get(owner["kind"], lambda _name: None)(name)
    return maker or {**machine.vmi, "status": {}}

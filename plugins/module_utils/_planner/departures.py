# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that leave without a migration: they are shut down, and their owner starts them elsewhere, or does not."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.revival import revival
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import next_launcher
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VM, VMI_REPLICA_SET, Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.machines import leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine
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
        newcomer, raw, refusals = next_launcher(machine.vmi, machine.source_pod, cluster)
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


def _restarts_when_asked(machine: Machine, owner: Object | None, workloads: Workloads) -> bool:
    """A drain does not only end a VM, it asks for the restart, which every run strategy but `Halted` allows."""
    if owner is None or owner["kind"] != VM:
        return False
    vm = workloads.vm(f"{machine.vmi['metadata'].get('namespace') or 'default'}/{owner['name']}")
    return vm is not None and not vm["metadata"].get("deletionTimestamp") and run_strategy(vm) != HALTED

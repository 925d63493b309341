# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each VM and each pod is to leave its node, as a mover, or why it cannot.

A VM leaves by live migration, unless KubeVirt would not even try it. By its policy it is shut down instead, and its
owner starts it elsewhere, or does not. An ordinary pod is evicted, and its controller makes another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.state import state as run_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import (
    next_launcher,
    replacement,
    revival,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    Workloads,
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine, Resident
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


def migration(
    machine: Machine, surroundings: Surroundings, state: ClusterState, target: str | None
) -> Mover | tuple[Blocker, ...]:
    """The mover of a VM, with the one node it may go to if that is given; or what forbids its migration."""
    if machine.unknown:
        return (_unknown(machine),)
    if machine.arriving:
        return (_arriving(machine),)
    subject = surroundings.candidate(machine.vmi)
    # Until it runs, or is gone, a drain leaves it alone, whatever else there is to say of it.
    if unsettled := tuple(replace(blocker, passing=True) for blocker in run_state(subject)):
        return unsettled
    forbidding = tuple(blocker for blocker in blockers(subject) if blocker.forbids)
    if forbidding or not isinstance(subject.target_pod, Mapping):
        return forbidding
    raw = _newcomer(machine, subject.target_pod)
    # Nothing but the plan keeps who makes room from coming back to where it is needed.
    only = frozenset(state.nodes.names) - {machine.node} if machine.helps else None
    return Mover(
        key=machine.key,
        source=machine.node,
        leaving=occupants_of(machine, state),
        newcomer=parsed(raw),
        chosen=True,
        only=only if target is None else frozenset({target}),
        open=surroundings.open_questions(subject),
        raw=raw,
    )


def target_of(machine: Machine, surroundings: Surroundings, node_selector: Mapping[str, str]) -> Object | None:
    """The pod of a migration that has begun, before there is one; None if KubeVirt would make none."""
    raw = surroundings.candidate(machine.vmi, node_selector).target_pod
    return _newcomer(machine, raw) if isinstance(raw, Mapping) else None


def passes(way: Mover | tuple[Blocker, ...]) -> bool:
    """Whether all that forbids a migration goes away by itself; False if nothing forbids it."""
    return isinstance(way, tuple) and bool(way) and all(blocker.passing for blocker in way)


def occupants_of(machine: Machine, state: ClusterState) -> tuple[Occupant, ...]:
    """The VM's pods on its node: the launcher, and those that hold hotplugged volumes."""
    return tuple(state.placement(title(raw)).occupant for raw in (machine.source_pod, *machine.attachments))


def _newcomer(machine: Machine, raw: Object) -> Object:
    # A name that no pod can have, so that it is not another's by accident.
    name = f"{machine.source_pod['metadata']['name']}/target"
    return {**raw, "metadata": {**raw["metadata"], "name": name}}


def _arriving(machine: Machine) -> Blocker:
    where = (machine.vmi.get("status") or {}).get("nodeName")
    problem = f"the VMI {f'runs on {where} and' if where else 'is starting and'} a pod for it is on {machine.node}"
    advice = "wait until it has arrived, then plan again"
    return Blocker("arriving", Effect.REFUSED, f"{VMI} {machine.key}", problem, advice, passing=True)


def _unknown(machine: Machine) -> Blocker:
    problem = f"nothing is known of the VMI of pod {machine.source_pod['metadata']['name']}"
    advice = "take a new snapshot, or give the list `vmis` too"
    return Blocker("unknown", Effect.REFUSED, f"{VMI} {machine.key}", problem, advice, passing=True)


def interruption(machine: Machine, policy: Policy, cluster: Surroundings, state: ClusterState) -> Mover | str:
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
        leaving=occupants_of(machine, state),
        newcomer=newcomer if comes else None,
        raw=raw if comes else None,
    )


def vain_restart(machine: Machine, cluster: Surroundings, state: ClusterState) -> tuple[Blocker, ...]:
    """Why a VM that was restarted, and came to another drained node, is not restarted again; none if it would leave.

    Raises as `interruption`.
    """
    again = interruption(machine, Policy.RESTART, cluster, state)
    if not (isinstance(again, Mover) and again.may_return):
        return ()
    problem = f"it was restarted already and came to {machine.node}, as it tolerates the cordon; once is enough"
    advice = "drop the toleration, or stop it yourself until the node is back"
    return (Blocker("tolerates-cordon", Effect.REFUSED, f"{VMI} {machine.key}", problem, advice),)


def _restarts_when_asked(machine: Machine, owner: Object | None, workloads: Workloads) -> bool:
    """A drain does not only end a VM, it asks for the restart, which every run strategy but `Halted` allows."""
    if owner is None or owner["kind"] != VM:
        return False
    vm = workloads.vm(f"{machine.vmi['metadata'].get('namespace') or 'default'}/{owner['name']}")
    return vm is not None and not vm["metadata"].get("deletionTimestamp") and run_strategy(vm) != HALTED


def eviction(resident: Resident, state: ClusterState) -> Mover:
    """The mover of a pod that is evicted. Raises `SelectorError`, `QuantityError`."""
    raw = replacement(resident.pod)
    return Mover(
        key=resident.key,
        source=resident.node,
        leaving=(state.placement(title(resident.pod)).occupant,),
        newcomer=None if raw is None else parsed(raw),
        raw=raw,
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of the drained nodes as movers: by live migration, or why KubeVirt would not even try."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


def migration(
    machine: Machine, surroundings: Surroundings, state: ClusterState, target: str | None
) -> Mover | tuple[Blocker, ...]:
    """The mover of a VM, with the one node it may go to if that is given; or what forbids its migration."""
    vmi, name = machine.vmi, f"VirtualMachineInstance {machine.key}"
    if machine.arriving:
        return (_arriving(machine, name),)
    node = surroundings.workloads.node(machine.node)
    rendered = target_pod(vmi, machine.source_pod, node, surroundings.configuration)
    if isinstance(rendered, NoTargetPod):
        found = _forbidding(blockers(surroundings.subject(vmi)))
        return found or (Blocker(rendered.id, Effect.HELD, name, rendered.problem, rendered.remedy),)
    if found := _forbidding(blockers(surroundings.subject(vmi, rendered))):
        return found
    # A name that no pod can have, so that it is not another's by accident.
    metadata = {**rendered["metadata"], "name": f"{machine.source_pod['metadata']['name']}/target"}
    return Mover(
        key=machine.key,
        source=machine.node,
        leaving=leaving(machine, state),
        newcomer=pod({**rendered, "metadata": metadata}),
        chosen=True,
        only=None if target is None else frozenset({target}),
    )


def leaving(machine: Machine, state: ClusterState) -> tuple[Occupant, ...]:
    """The VM's pods on its node: the launcher, and those that hold hotplugged volumes."""
    return tuple(state.placement(title(raw)).occupant for raw in (machine.source_pod, *machine.attachments))


def _forbidding(found: Sequence[Blocker]) -> tuple[Blocker, ...]:
    return tuple(blocker for blocker in found if blocker.forbids)


def _arriving(machine: Machine, name: str) -> Blocker:
    where = (machine.vmi.get("status") or {}).get("nodeName")
    problem = f"the VMI {f'runs on {where} and' if where else 'is starting and'} a pod for it is on {machine.node}"
    return Blocker(
        "arriving", Effect.REFUSED, name, problem, "wait until it has arrived, then plan again", passing=True
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs that are to leave their nodes as movers: by live migration, or why KubeVirt would not even try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.state import state as run_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VMI, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine
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
        leaving=leaving(machine, state),
        newcomer=pod(raw),
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


def leaving(machine: Machine, state: ClusterState) -> tuple[Occupant, ...]:
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

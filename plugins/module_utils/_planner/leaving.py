# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a node's situation to how each of it leaves: by a given target, by a plan, or by its policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import drained_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import (
    Departures,
    PlannedMigration,
    Situation,
    Stuck,
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import EVICTING, Eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import (
    REPLICA_SET,
    RESTART,
    STOP,
    VM,
    Interruption,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Wish
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    Outcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, policy_for

Object = Mapping[str, Any]

_ACTIONS = {Policy.RESTART: RESTART, Policy.STOP: STOP}


@dataclass(frozen=True, slots=True)
class Intent:
    """What a task wants.

    targets: nodes by the title of the VMI. rules: what happens to VMs that cannot be migrated. failed: VMs whose
    migration failed, with the reason; hopeless: those of them that are not tried again.
    """

    targets: Mapping[str, str]
    rules: Sequence[Rule]
    failed: Mapping[str, str] = field(default_factory=dict)
    hopeless: frozenset[str] = frozenset()

    def target(self, name: str) -> str | None:
        """A target that has failed is not insisted on."""
        return None if name in self.failed else self.targets.get(name)

    def targets_of(self, vmis: Iterable[Object]) -> dict[str, str]:
        """Those that count for these VMIs."""
        found = {name: self.target(name) for name in map(title, vmis)}
        return {name: node for name, node in found.items() if node}


def unplanned(situation: Situation, intent: Intent) -> list[str]:
    """VMs that have to be migrated and for which nobody has said where to; only a plan can tell."""
    return [
        name
        for name, vmi in ((title(vmi), vmi) for vmi in situation.vmis)
        if not left_alone(vmi, situation.migrations.get(name))
        and name not in situation.migrations
        and not intent.target(name)
        and ((_migratable(vmi) and name not in intent.hopeless) or policy_for(vmi, intent.rules) is Policy.RESTART)
    ]


def departures(situation: Situation, intent: Intent, plan: DrainPlan | None) -> Departures:
    """`plan`: None if nothing is unplanned. Raises Mistake for a rule that cannot be applied."""
    migrations: list[PlannedMigration] = []
    interruptions: list[Interruption] = []
    stuck: list[Stuck] = []
    waiting: dict[str, str] = {}
    planned = {f"{move.namespace}/{move.name}": move for move in plan.moves} if plan else {}
    passing = _passing(plan, intent)
    known = {*planned, *(f"{item.namespace}/{item.name}" for item in (plan.stuck if plan else ()))}
    for vmi in situation.vmis:
        name, namespace = title(vmi), vmi["metadata"]["namespace"]
        current, move = situation.migrations.get(name), planned.get(name)
        target = intent.target(name) if _migratable(vmi) and name not in intent.hopeless else None
        if why := left_alone(vmi, current):
            waiting[name] = why
        elif current:
            wish = Wish(namespace, current.vmi, None, current.node_selector)
            migrations.append(PlannedMigration(wish, 1, follows=False))
        elif why := passing.get(name, ""):
            waiting[name] = why
        elif name not in intent.hopeless and (move or target):
            node, wave = (move.target_node, move.wave) if move else (target, 2 if _follows(vmi) else 1)
            wish = Wish(namespace, vmi["metadata"]["name"], node, {})
            migrations.append(PlannedMigration(wish, wave, _follows(vmi)))
        elif plan and name not in known and _migratable(vmi) and name not in intent.hopeless:
            waiting[name] = "it has come after the plan was made"
        else:
            _interrupt_or_not(vmi, situation.node, intent, plan, interruptions, stuck)
    evictions = tuple(_evictions(situation.pods, plan))
    return Departures(tuple(migrations), tuple(interruptions), evictions, tuple(stuck), waiting)


def forbidden(pods: Iterable[Object], allowed: frozenset[str]) -> Iterator[Stuck]:
    """Pods that may not be evicted, with the option that would allow it."""
    why = {
        drained_pod.FORCE: "nothing would replace it",
        drained_pod.DELETE_EMPTYDIR_DATA: "the data in its emptyDir volumes would be lost",
    }
    for pod in pods:
        missing = [need for need in drained_pod.needs(pod) if need not in allowed]
        if missing:
            reasons, options = " and ".join(why[need] for need in missing), " and ".join(missing)
            yield Stuck(
                "pod", pod["metadata"]["namespace"], pod["metadata"]["name"], f"{reasons}; set {options} if it may go"
            )


def left_alone(vmi: Object, current: Migration | None) -> str:
    """Why nothing is to be done to a VM for now; empty if something is."""
    phase = (vmi.get("status") or {}).get("phase") or "not started"
    if vmi["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if current and not current.run:
        return f"VirtualMachineInstanceMigration {current.name} of somebody else moves it ({current.phase or 'new'})"
    return "" if phase == "Running" else f"it is {phase}, and only a running VM can leave"


def _passing(plan: DrainPlan | None, intent: Intent) -> dict[str, str]:
    """What keeps VMs for now and goes away by itself; those that are not tried again need not wait for it."""
    waits = (item for item in (plan.stuck if plan else ()) if item.outcome is Outcome.WAITS)
    found = {f"{item.namespace}/{item.name}": item.blockers[0].clause for item in waits}
    return {name: why for name, why in found.items() if name not in intent.hopeless}


def _migratable(vmi: Object) -> bool:
    return not _why_not_migratable(vmi)


def _why_not_migratable(vmi: Object) -> str:
    for condition in (vmi.get("status") or {}).get("conditions") or ():
        if condition["type"] == "LiveMigratable" and condition["status"] == "False":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message")))) or "no reason given"
    return ""


def _follows(vmi: Object) -> bool:
    """Whether it runs only near some other pods."""
    affinity = (vmi["spec"].get("affinity") or {}).get("podAffinity") or {}
    return bool(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))


def _interrupt_or_not(
    vmi: Object,
    node: str,
    intent: Intent,
    plan: DrainPlan | None,
    interruptions: list[Interruption],
    stuck: list[Stuck],
) -> None:
    name = title(vmi)
    found = next((item for item in plan.stuck if f"{item.namespace}/{item.name}" == name), None) if plan else None
    policy = policy_for(vmi, intent.rules)
    why = intent.failed.get(name) or _why_cannot(vmi, found)
    if found and found.outcome is Outcome.STAYS:
        why = f"{why}, nor could it be restarted elsewhere" if policy is Policy.RESTART else why
        policy = Policy.FAIL
    elif policy is not Policy.FAIL and _owner(vmi) is None:
        why = f"{why}; nothing would start it again after a {policy.value}, as no VM or replica set owns it"
        policy = Policy.FAIL
    if policy is Policy.FAIL:
        stuck.append(Stuck("vm", vmi["metadata"]["namespace"], vmi["metadata"]["name"], why))
        return
    # Whatever harms is done last, when all that can leave unharmed has left.
    wave = (found.wave if found else None) or _last_wave(plan) + 1
    item = _interruption(vmi, node, _ACTIONS[policy], wave, why)
    item.target_node = (found.target_node if found else None) or ""
    interruptions.append(item)


def _why_cannot(vmi: Object, found: StuckMachine | None) -> str:
    if found and found.blockers:
        return found.blockers[0].clause
    if why := _why_not_migratable(vmi):
        return f"KubeVirt says that it cannot be live-migrated, {why}"
    message = found.message.rstrip(".") if found else ""
    return f"no node can take it: {message}" if message else "no node can take it"


def _last_wave(plan: DrainPlan | None) -> int:
    # Without a plan there are two: pods, and VMs that follow them.
    return max((move.wave for move in plan.moves), default=1) if plan else 2


def _owner(vmi: Object) -> Mapping[str, Any] | None:
    owner = controller(vmi)
    return owner if owner and owner["kind"] in (VM, REPLICA_SET) else None


def _interruption(vmi: Object, node: str, action: str, wave: int, why: str) -> Interruption:
    metadata, owner = vmi["metadata"], _owner(vmi) or {}
    return Interruption(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        node=node,
        action=action,
        owner_kind=owner["kind"],
        owner=owner["name"],
        owner_uid=owner["uid"],
        wave=wave,
        why=why,
    )


def _evictions(pods: Iterable[Object], plan: DrainPlan | None) -> Iterator[Eviction]:
    fates = {f"{fate.namespace}/{fate.name}": fate for fate in plan.pods} if plan else {}
    for pod in pods:
        metadata, fate = pod["metadata"], fates.get(title(pod))
        eviction = Eviction(metadata["namespace"], metadata["name"], metadata["uid"])
        if fate:
            eviction.wave, eviction.expected_node = fate.wave or 1, fate.target_node or ""
        if metadata.get("deletionTimestamp"):  # somebody else has seen to it
            eviction.outcome = EVICTING
        yield eviction

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simple planner for the model: a legal node for each VM that can migrate, now or when another has left.

It is quick, so that many histories can be gone through, and it is none of the product's: what that plans and mends is
driven by the machines of `machine` that are named AsPlanned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import REFUSED
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    CAUSE,
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Plan,
    PlannedCluster,
    PlannedFrom,
    Verdict,
    action_id,
)

from simulation.world import NAMESPACE, REPLICA_SET, ZONES, Pod, Vmi, World

HOSTNAME = "kubernetes.io/hostname"
EMPTY = Plan("run-1", PlannedCluster("c", "v1", "v1"), PlannedFrom("s", "t"), {}, Verdict.FEASIBLE, (), ())


@dataclass
class Draft:
    """A plan in the making. known: actions that may stay as they are, by id.

    arriving: the node that each VMI goes to, by its uid. underway: uids of those whose action has begun. kept: where
    these were to go, which somebody else may take elsewhere.
    """

    world: World
    batch: tuple[str, ...]
    failures: Mapping[str, Collection[str]]
    hopeless: Collection[str]
    known: Mapping[str, Action]
    actions: dict[str, Action] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)
    arriving: dict[str, str] = field(default_factory=dict)
    underway: set[str] = field(default_factory=set)
    kept: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Who is on its way has its place already."""
        for action in self.known.values():
            vmi = self.world.vmis.get(action.object.uid)
            moving = self.world.moving(vmi) if vmi is not None and vmi.node == action.source else None
            if vmi is not None and moving is not None and vmi.alive and not vmi.ending:
                self.arriving[vmi.uid] = moving.target
                self.underway.add(vmi.uid)

    def vmi(self, vmi: Vmi, node: str) -> None:
        reference = ObjectReference("VirtualMachineInstance", NAMESPACE, vmi.name, vmi.uid)
        if not (vmi.migratable or vmi.uid in self.underway):
            self._interrupt(vmi, reference, node)
        elif vmi.title in self.hopeless:
            self.blocked.append(Blocked(reference, node, ("its migrations fail",)))
        else:
            self._migrate(vmi, reference, node)

    def pod(self, pod: Pod, node: str) -> None:
        reference = ObjectReference("Pod", NAMESPACE, pod.name, pod.uid)
        self._add(Action(action_id(1, ActionKind.EVICT, reference), ActionKind.EVICT, 1, node, reference, node))

    def _interrupt(self, vmi: Vmi, reference: ObjectReference, node: str) -> None:
        if vmi.owner is None:
            self.blocked.append(Blocked(reference, node, ("nothing would start it again",)))
            return
        # Some are stopped and some restarted, as policies say; what would come back by itself is not stopped.
        stop = vmi.owner.kind != REPLICA_SET and vmi.owner.uid.endswith(("1", "3", "5", "7", "9"))
        kind = ActionKind.STOP if stop else ActionKind.RESTART
        others = [action for action in self.actions.values() if action.kind is ActionKind.MIGRATE]
        after = tuple(action.id for action in others[:1] if action.node == node)
        identity, why = action_id(1, kind, reference), f"It is interrupted.{CAUSE}{REFUSED}."
        self._add(Action(identity, kind, 1, node, reference, node, None, after=after, why=why))

    def _migrate(self, vmi: Vmi, reference: ObjectReference, node: str) -> None:
        known = self.known.get(action_id(1, ActionKind.MIGRATE, reference))
        if known is not None and vmi.uid in self.underway:
            # That somebody else takes it elsewhere may fail, and then it goes where it was to go.
            self.kept[vmi.uid] = known.target or ""
            self._add(known)
            return
        failed = set(self.failures.get(vmi.title, ()))
        nodes = [name for name in ZONES if name not in self.batch]
        wanted = [known.target] if known is not None and known.target else []
        # Its own zone comes last, so that VMs of a group wait for one another often.
        nodes.sort(key=lambda name: (name in failed, name not in wanted, ZONES[name] == ZONES[node], name))
        for target in nodes:
            after = self._room(vmi, target)
            if after is None and self._is_cleared(vmi, node, target):
                after = self._room(vmi, target)
            if after is not None:
                self._send(vmi, node, node, target, after)
                return
        self.blocked.append(Blocked(reference, node, ("no node fits",), passing=True))

    def _send(self, vmi: Vmi, node: str, source: str, target: str, after: tuple[str, ...] = ()) -> None:
        """node: the one that is emptied by it."""
        reference = ObjectReference("VirtualMachineInstance", NAMESPACE, vmi.name, vmi.uid)
        identity, selector = action_id(1, ActionKind.MIGRATE, reference), {HOSTNAME: target}
        self.arriving[vmi.uid] = target
        self._add(
            Action(identity, ActionKind.MIGRATE, 1, node, reference, source, target, selector=selector, after=after)
        )

    def keep_room_makers(self, node: str) -> None:
        """Who is to make room for a node stays in the plan while it is where it was, unless its migration failed."""
        for action in self.known.values():
            vmi = self.world.vmis.get(action.object.uid)
            if vmi is None or not vmi.alive or vmi.ending or vmi.node != action.source:
                continue
            if action.makes_room and action.node == node and vmi.title not in self.failures:
                self.arriving[vmi.uid] = action.target or ""
                self._add(action)

    def _is_cleared(self, vmi: Vmi, node: str, target: str) -> bool:
        """Whether another VM of its group can leave a zone for its sake, which it is told to do then."""
        rivals = [
            other
            for other in self.world.vmis.values()
            if other is not vmi and vmi.group and other.group == vmi.group and ZONES.get(other.node) == ZONES[target]
        ]
        if len(rivals) != 1:
            return False
        (rival,) = rivals
        usable = rival.alive and rival.migratable and not rival.ending and rival.node not in self.batch
        if not usable or rival.title in self.failures or self.world.moving(rival) or rival.uid in self.arriving:
            return False
        if any(self.world.had_left(rival.uid, name) for name in self.batch):
            return False  # the same batch has moved it already
        taken = {ZONES[place] for place in self.arriving.values()}
        for place in ZONES:
            away = place not in self.batch and ZONES[place] not in {ZONES[target], ZONES[node], *taken}
            if away and self.world.fits(rival, place):
                self._send(rival, node, rival.node, place)
                return True
        return False

    def _room(self, vmi: Vmi, target: str) -> tuple[str, ...] | None:
        """What has to leave first, so that the VMI may go there; None if that does not help."""
        going = {*self.arriving.items(), *self.kept.items()}
        arriving = [self.world.vmis[uid] for uid, node in going if ZONES[node] == ZONES[target] and uid != vmi.uid]
        if vmi.group and any(other.group == vmi.group for other in arriving):
            return None
        coming = {uid for uid, node in going if node == target}
        if self.world.fits(vmi, target, coming=coming):
            return ()
        leaving = {action.object.uid: action for action in self.actions.values() if self._leaves(action)}
        away = {(uid, action.source or action.node) for uid, action in leaving.items()}
        if not self.world.fits(vmi, target, without=away, coming=coming):
            return None
        return tuple(
            action.id
            for uid, action in leaving.items()
            if (action.source or action.node) == target
            or (self.world.vmis[uid].group == vmi.group and ZONES[action.source or action.node] == ZONES[target])
        )

    def _leaves(self, action: Action) -> bool:
        """Whether it takes a VM away from where it still is."""
        vmi = self.world.vmis.get(action.object.uid)
        return vmi is not None and vmi.node == (action.source or action.node)

    def _add(self, action: Action) -> None:
        self.actions[action.id] = action


def plan(
    world: World,
    batch: tuple[str, ...],
    *,
    before: Plan = EMPTY,
    staying: Collection[str] = (),
    failures: Mapping[str, Collection[str]] | None = None,
    hopeless: Collection[str] = (),
    ended: Collection[str] = (),
) -> Plan:
    """Of all nodes of a batch; actions that have ended stay.

    staying: uids of pods that are not to leave, as others like them would come at once.
    """
    draft = Draft(world, batch, failures or {}, hopeless, {action.id: action for action in before.actions})
    draft.actions.update({action.id: action for action in before.actions if action.id in ended})
    for name in batch:
        draft.keep_room_makers(name)
    for name in batch:
        for vmi in list(world.vmis.values()):
            if vmi.node == name and vmi.alive and not vmi.ending:
                draft.vmi(vmi, name)
        for pod in list(world.pods.values()):
            if pod.node == name and not (pod.machine or pod.ending or pod.uid in staying):
                draft.pod(pod, name)
    known = draft.actions.keys()
    actions = (
        replace(action, after=tuple(name for name in action.after if name in known))
        for action in draft.actions.values()
    )
    return replace(
        EMPTY,
        snapshot=PlannedFrom(world.snapshot(), ""),
        batches=(batch,),
        actions=tuple(actions),
        blocked=tuple(draft.blocked),
    )

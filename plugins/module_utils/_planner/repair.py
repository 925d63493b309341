# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in the light of a fresh look: what is still right stays, the rest is planned anew with the least change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VMI, Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_cordoned
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    Plan,
    is_foretold,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import (
    LEAVING,
    for_node,
    who_left,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import (
    as_told,
    batch_actions,
    reference_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    Scene,
    Solution,
    described,
    prepare,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.foretold import identified
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import (
    all_ahead,
    as_planned,
    closed,
    followed,
    in_order,
    spared,
    wholly,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import Failing, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.planned_course import (
    HARMFUL,
    Planned,
    PlannedCourse,
    sparing_restarted,
    ways_left,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.reserve import MachineMemory, unreserved
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import (
    targets_on,
    totals,
    verdict,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.under_way import gone
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waits import find_waits


def repair(
    plan: Plan,
    snapshot: Snapshot,
    *,
    node: str | None = None,
    failures: Mapping[str, Sequence[str]] | None = None,
    hopeless: Collection[str] = (),
    ended: Collection[str] = (),
    replaced: Collection[str] = (),
) -> Plan:
    """The plan with one batch mended: that of `node`, else the first with something left to do.

    node: the one whose actions alone may change, with those of others that they wait for. failures: nodes to which the
    migration of a VM has failed, by namespace/name. hopeless: VMs that are not to be migrated any more. ended: ids of
    actions, which stay as they are. replaced: ids of those whose objects were gone before anything was done, and have
    others of their names in their places, which are planned anew; without `node` all such are. Raises as `plan_run`.
    """
    number = plan.batch_of(node) if node is not None else _current(plan, ended)
    if number is None:
        return plan
    back = {action.node for action in plan.actions if action.kind is ActionKind.UNCORDON and action.id in ended}
    nodes = [name for name in plan.batches[number - 1] if name not in back]
    if not nodes:
        return plan
    ground = Ground(snapshot)
    known = identified(plan, number, ground.pods_on(nodes), ground.vmis_on(nodes))
    begun = nodes_cordoned(snapshot.lists["nodes"]).intersection(nodes)
    moved = who_left(action for action in plan.actions if action.batch < number)
    found = _Repair(known, number, nodes, node, frozenset(ended), frozenset(replaced), begun, moved)
    return found.made(ground, failures or {}, frozenset(hopeless)).plan


@dataclass(frozen=True, slots=True)
class MendedBatch:
    """A plan of which one batch was mended: `solution` has its nodes emptied, and its board at the end of that."""

    plan: Plan
    solution: Solution
    drain: DrainPlan


def mend_batch(
    plan: Plan,
    number: int,
    nodes: Sequence[str],
    ground: Ground,
    memory: MachineMemory,
    *,
    ended: Collection[str],
    begun: Collection[str],
    moved: Collection[str],
) -> MendedBatch:
    """Of a plan whose foretold names are known: the batch mended as `repair` does, by how the ground is.

    nodes: of the batch, those that are not given back; begun: those of them that are cordoned. memory: of the ground.
    moved: who has left a node before, by namespace/name, and goes where it is best since then. Raises as `plan_run`.
    """
    found = _Repair(plan, number, nodes, None, frozenset(ended), frozenset(), frozenset(begun), frozenset(moved))
    return found.made(ground, {}, frozenset(), memory)


@dataclass(frozen=True, slots=True)
class _Repair:
    """nodes: of the batch, those that are not given back. node: the one that may change, None for all.

    begun: of the nodes, those whose drains have begun, as they are cordoned. moved: who has left a node in an earlier
    batch, by namespace/name.
    """

    plan: Plan
    number: int
    nodes: Sequence[str]
    node: str | None
    ended: frozenset[str]
    replaced: frozenset[str]
    begun: frozenset[str]
    moved: frozenset[str]

    def made(
        self,
        ground: Ground,
        failures: Mapping[str, Sequence[str]],
        hopeless: frozenset[str],
        memory: MachineMemory | None = None,
    ) -> MendedBatch:
        options = PlanOptions.of(self.plan.options)
        # A batch that has begun is not left half way.
        has_begun = any(action.id in self.ended for action in self._old())
        is_new = self.node is None and not has_begun and options.reserve is not Failing.NONE
        memory = (memory or MachineMemory(ground)) if is_new else None
        ways_out = (True, False) if failures else (True,)
        for sparing in ways_out:
            scene = self._scene(ground, options)
            scene = replace(scene, ways=dict(ways_left(scene, failures, hopeless, sparing=sparing)))
            others = self.begun - {self.node}
            scene, restarted = sparing_restarted(scene, (entry for entry in self._old() if entry.node in others))
            scene, planned, untouched = self._planned(scene, restarted)
            known = {entry.object.title for entry in self.plan.blocked}
            course = PlannedCourse(
                scene,
                planned,
                known={machine.id for machine in scene.residents.machines if machine.key in known},
                ignored=self._ignored(scene, planned),
                profile=options.profile,
            )
            solution = course.solve()
            on_their_way = {step.mover.id for step in solution.steps if step.mover.chosen}
            if not sparing or all(m.id in on_their_way for m in scene.residents.machines if m.key in failures):
                break
            scene.board.clear()
        # What was planned keeps its waits; who is harmed anew waits for all, and those as planned for whoever is new.
        steps = solution.steps
        given = self._given(planned, steps, course.kept)
        waits = find_waits(
            scene.board,
            steps,
            last=solution.last,
            begun={step.mover.id for step in scene.under_way},
            given=given,
            unasked=course.unasked,
        )
        before = next((action.after for action in self._old() if action.kind is ActionKind.CORDON), ())
        drain = described(solution)
        found = batch_actions(self.number, solution, drain, waits, before=before, allowed=options.allowed)
        held = [*found.blocked]
        if memory is not None and not untouched:
            held += unreserved(solution, memory.reserve(solution, options.reserve), options.reserve)
        return MendedBatch(self._merged(found.actions, held, untouched), solution, drain)

    def _old(self) -> list[Action]:
        return [action for action in self.plan.actions if action.batch == self.number]

    def _changeable(self) -> Sequence[Action]:
        """What may change of the batch: all, or what is for the node's sake with all that this waits for."""
        return self._old() if self.node is None else for_node(self.plan, self.node).actions

    def _scene(self, ground: Ground, options: PlanOptions) -> Scene:
        later = [name for others in self.plan.batches[self.number :] for name in others]
        avoid = [name for name in (*options.avoid, *later) if name in ground.nodes]
        usable = {vmi: node for vmi, node in options.targets.items() if node in ground.nodes and node not in self.nodes}
        targets = targets_on(ground, self.nodes, usable, but=self._obeyed(options.targets))
        return prepare(ground, self.nodes, options.rules, avoid, targets, patient=True, helping=self._helping(ground))

    def _obeyed(self, targets: Mapping[str, str]) -> set[str]:
        """VMs whose targets say no more where they go, as by the plan they have been there before."""
        moves = (action for action in self._old() if action.kind is ActionKind.MIGRATE)
        return {*self.moved, *(move.object.title for move in moves if move.target != targets.get(move.object.title))}

    def _helping(self, ground: Ground) -> dict[str, str]:
        """Who is to make room and has not left yet, and the node for whose sake."""
        return {
            action.object.title: action.node
            for action in self._old()
            if action.makes_room
            and action.node in self.nodes
            and _is_at(ground.cluster.workloads, action, action.source)
        }

    def _planned(self, scene: Scene, restarted: Collection[str]) -> tuple[Scene, list[Planned], set[str]]:
        """What is planned for whoever is on the nodes, and ids of actions that stay as they are as they have begun.

        restarted: ids of VMs that have come from other nodes of the batch.
        """
        here = {("VirtualMachineInstance", m.key): (m.id, m.vmi, m.node) for m in scene.residents.machines}
        here |= {("Pod", pod.key): (pod.id, pod.pod, pod.node) for pod in scene.residents.pods if not pod.stays}
        begun = {step.mover.id: step for step in scene.under_way}
        may_change = {action.id for action in self._changeable()}
        planned: list[Planned] = []
        untouched: set[str] = set()
        for action in self._old():
            if action.kind not in LEAVING:
                continue
            name, item, place = here.get((action.object.kind, action.object.title), ("", None, ""))
            is_it = item is not None and place == action.source and _is(action, item)
            ending = is_it and item is not None and bool(item["metadata"].get("deletionTimestamp"))
            if is_it and (action.id in self.ended or (ending and action.kind in HARMFUL)):
                # It has left a moment before it is seen, or is about to.
                begun.setdefault(name, gone(name, scene.residents, scene.board))
            # Its name alone is there: it has gone, and of who has come in its place nothing is planned. In mid-drain
            # that may be who was restarted, and comes to the node all the same: once is enough.
            anew = self.node is None or action.id in self.replaced or name in restarted
            replaced = anew and item is not None and not _is(action, item)
            if not replaced and self._has_begun(scene, action, begun.get(name) if is_it else None, is_it=is_it):
                untouched.add(action.id)
            elif is_it and name not in begun:
                trusted = any(other in untouched and ".migrate." not in other for other in action.after)
                planned.append(Planned(name, action, fixed=action.id not in may_change, trusted=trusted))
        return replace(scene, under_way=tuple(begun.values())), planned, untouched

    def _has_begun(self, scene: Scene, action: Action, step: Step | None, *, is_it: bool) -> bool:
        """Whether an action is under way, or over, as it was planned. step: by which it leaves already."""
        if action.id in self.ended:
            return False
        if is_it:
            return step is not None and step.node in (None, action.target)
        if is_foretold(action):
            return False  # it has not come, or has gone again
        return action.kind in HARMFUL or (
            action.kind is ActionKind.MIGRATE and _is_at(scene.cluster.workloads, action, action.target)
        )

    def _ignored(self, scene: Scene, planned: Iterable[Planned]) -> set[str]:
        """Those on other nodes than the one that may change, if nothing is planned for them."""
        if self.node is None:
            return set()
        places = {machine.id: machine.emptied for machine in scene.residents.machines}
        places |= {pod.id: pod.node for pod in scene.residents.pods}
        return {name for name, place in places.items() if place != self.node} - {entry.id for entry in planned}

    def _given(self, planned: Sequence[Planned], steps: Sequence[Step], kept: Collection[str]) -> dict[str, list[str]]:
        names = {entry.action.id: entry.id for entry in planned}
        for action in self._old():
            names.setdefault(action.id, self._mover_of(action, steps))
        # Also for whom somebody had to wait through another one, who may be gone.
        old = {action.id: action for action in self._old()}
        given = {
            mover: [names[other] for other in all_ahead(old, name) if names.get(other)]
            for name, mover in names.items()
            if mover
        }
        begun = {step.mover.id for step in steps if step.mover.id in names.values()} - {entry.id for entry in planned}
        harmed = {entry.id for entry in planned if entry.action.kind in HARMFUL} & set(kept)
        ahead: list[str] = []
        for step in steps:
            if step.mover.id in harmed:
                given[step.mover.id] = [*given.get(step.mover.id, ()), *ahead]
            elif step.mover.id not in kept and step.mover.id not in begun:
                ahead.append(step.mover.id)
        return given

    @staticmethod
    def _mover_of(action: Action, steps: Iterable[Step]) -> str:
        if action.kind not in LEAVING:
            return ""
        return next(
            (
                step.mover.id
                for step in steps
                if step.mover.key == action.object.title
                and (action.object.kind == VMI) == (step.mover.id != step.mover.key)
            ),
            "",
        )

    def _merged(self, found: Sequence[Action], blocked: Sequence[Blocked], untouched: Collection[str]) -> Plan:
        old = {action.id: action for action in self._old()}
        whole = {action.id: action for action in found}
        leaving = who_left(self._changeable())
        fresh = {
            name: wholly(whole, name)
            for name, action in whole.items()
            # Places were found beside where those others go now: a plan with their old ones would not be one.
            if self.node in (None, action.node)
            or (action.kind in LEAVING.union({ActionKind.START}) and action.object.title in leaving)
        }
        turns = {action.id: index for index, action in enumerate(found)}
        actions: dict[str, Action] = {}
        for action in (*old.values(), *fresh.values()):
            name = action.id
            if name in actions:
                continue
            if name in untouched or (name in self.ended and name in old) or action.node not in self.nodes:
                actions[name] = old[name]
            elif name in fresh:
                actions[name] = as_planned(old, fresh[name], turns)
            elif self._still(old, old[name], {entry.id for entry in found}, actions):
                actions[name] = old[name]
        actions = spared(closed(actions, self.nodes), old)
        return self._with(list(in_order(actions, list(old))), blocked, untouched)

    def _still(self, old: Mapping[str, Action], action: Action, found: Collection[str], known: Collection[str]) -> bool:
        """Whether an action that was not planned again stays: a node's own, or of a node that may not change.

        Who starts again stays with its stop, or without one, as that may have ended and been forgotten.
        """
        if action.kind is ActionKind.START:
            stops = (name for name in action.after if name in old and old[name].kind is ActionKind.STOP)
            return all(name in known for name in stops if old[name].object.title == action.object.title)
        if action.kind not in LEAVING:
            return True
        return self.node is not None and action.node != self.node and action.id in found

    def _with(self, actions: Sequence[Action], blocked: Sequence[Blocked], untouched: Collection[str]) -> Plan:
        looked_at = {self.node} if self.node is not None else set(self.nodes)
        busy = {
            (action.object.kind, action.object.title) for action in actions if action.id in self.ended.union(untouched)
        }
        entries = (
            *(entry for entry in self.plan.blocked if entry.node not in looked_at),
            *(
                entry
                for entry in blocked
                if entry.node in looked_at and (entry.object.kind, entry.object.title) not in busy
            ),
        )
        order = {entry: index for index, entry in enumerate(self.plan.blocked)}
        known = {(entry.object, entry.node, entry.passing): entry for entry in self.plan.blocked}
        entries = tuple(
            sorted(
                map(partial(as_told, known), entries),
                key=lambda entry: (self.plan.batch_of(entry.node) or 0, order.get(entry, len(order))),
            )
        )
        earlier = [action for action in self.plan.actions if action.batch < self.number]
        later = [action for action in self.plan.actions if action.batch > self.number]
        everything = (*earlier, *actions, *followed(later, self._old(), actions))
        counted = totals(everything, self.plan.totals.batch_seconds, self.plan.totals.batch_reserves)
        return replace(
            self.plan,
            actions=everything,
            blocked=entries,
            verdict=verdict(self.plan.batches, entries),
            totals=replace(counted, seconds=self.plan.totals.seconds),
        )


def _current(plan: Plan, ended: Collection[str]) -> int | None:
    """The number of the first batch that is not done. VMs that start again do not hold up a run."""
    left = (action.batch for action in plan.actions if action.id not in ended and action.kind is not ActionKind.START)
    return next(left, None)


def _is(action: Action, item: Mapping[str, object]) -> bool:
    """Whether an object that is there is the one of an action; one that the plan brings about has no uid in it."""
    uid = reference_of("", item).uid
    return action.object.uid in ("", uid) or not uid


def _is_at(workloads: Workloads, action: Action, node: str | None) -> bool:
    """Whether the VM of an action is on a node."""
    vmi = workloads.vmi(action.object.title)
    return vmi is not None and _is(action, vmi) and (vmi.get("status") or {}).get("nodeName") == node

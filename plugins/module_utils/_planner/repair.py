# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in the light of a fresh look: what is still right stays, the rest is planned anew with the least change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    Workloads,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_cordoned
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Plan,
    is_foretold,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING, who_left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import batch_actions, reference_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.carrying import start
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    Scene,
    Solution,
    drain_of,
    prepare,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.foretold import identified
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.merging import PlannedBatch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import all_ahead
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import Failing, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.planned_course import (
    HARMFUL,
    Planned,
    PlannedCourse,
    sparing_restarted,
    ways_left,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.reserve import MachineMemory, unreserved
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import targets_on
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
    start(ground, _off(plan, number, nodes, ground), PlanOptions.of(plan.options).profile, closed=nodes)
    known = identified(plan, number, ground.pods_on(nodes), ground.vmis_on(nodes))
    begun = nodes_cordoned(snapshot.lists["nodes"]).intersection(nodes)
    moved = who_left(action for action in plan.actions if action.batch < number)
    batch = PlannedBatch(known, number, nodes, node, frozenset(ended))
    found = _Repair(batch, frozenset(replaced), begun, moved)
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
    batch = PlannedBatch(plan, number, nodes, None, frozenset(ended))
    found = _Repair(batch, frozenset(), frozenset(begun), frozenset(moved))
    return found.made(ground, {}, frozenset(), memory)


@dataclass(frozen=True, slots=True)
class _Repair:
    """replaced: ids of actions whose objects others have replaced. begun: of the nodes, those that are cordoned.

    moved: who has left a node in an earlier batch, by namespace/name.
    """

    batch: PlannedBatch
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
        batch, old = self.batch, self.batch.actions()
        options = PlanOptions.of(batch.plan.options)
        # A batch that has begun is not left half way.
        has_begun = any(action.id in batch.ended for action in old)
        is_new = batch.node is None and not has_begun and options.reserve is not Failing.NONE
        memory = (memory or MachineMemory(ground)) if is_new else None
        ways_out = (True, False) if failures else (True,)
        for sparing in ways_out:
            scene = self._scene(ground, options)
            scene = replace(scene, ways=dict(ways_left(scene, failures, hopeless, sparing=sparing)))
            others = self.begun - {batch.node}
            scene, restarted = sparing_restarted(scene, (entry for entry in old if entry.node in others))
            scene, planned, untouched, lingering = self._planned(scene, restarted)
            known = {entry.object.title for entry in batch.plan.blocked}
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
        before = next((action.after for action in old if action.kind is ActionKind.CORDON), ())
        drain = drain_of(solution)
        found = batch_actions(batch.number, solution, drain, waits, before=before, options=options, begun=lingering)
        actions = _explained(found.actions, planned, found.leaving, course.objections, failures)
        held = [*found.blocked]
        if memory is not None and not untouched:
            held += unreserved(solution, memory.reserve(solution, options.reserve), options.reserve)
        return MendedBatch(batch.merged(actions, held, untouched), solution, drain)

    def _scene(self, ground: Ground, options: PlanOptions) -> Scene:
        nodes, batches, may = self.batch.nodes, self.batch.plan.batches, options.allowed
        later = [name for others in batches[self.batch.number :] for name in others]
        avoid = [name for name in (*options.avoid, *later) if name in ground.nodes]
        usable = {vmi: node for vmi, node in options.targets.items() if node in ground.nodes and node not in nodes}
        targets = targets_on(ground, nodes, usable, but=self._obeyed(options.targets))
        helping = self._helping(ground)
        return prepare(ground, nodes, options.rules, avoid, targets, patient=True, helping=helping, allowed=may)

    def _obeyed(self, targets: Mapping[str, str]) -> set[str]:
        """VMs whose targets say no more where they go, as by the plan they have been there before."""
        moves = (action for action in self.batch.actions() if action.kind is ActionKind.MIGRATE)
        return {*self.moved, *(move.object.title for move in moves if move.target != targets.get(move.object.title))}

    def _helping(self, ground: Ground) -> dict[str, str]:
        """Who is to make room and has not left yet, and the node for whose sake."""
        return {
            action.object.title: action.node
            for action in self.batch.actions()
            if action.makes_room
            and action.node in self.batch.nodes
            and _is_at(ground.cluster.workloads, action, action.source)
        }

    def _planned(
        self, scene: Scene, restarted: Collection[str]
    ) -> tuple[Scene, list[Planned], set[str], dict[str, str]]:
        """What is planned for whoever is on the nodes, and ids of actions that stay as they are as they have begun.

        Last, by ids of movers, those of actions that they are still about to leave by. restarted: ids of VMs that have
        come from other nodes of the batch.
        """
        here = {("VirtualMachineInstance", m.key): (m.id, m.vmi, m.node) for m in scene.residents.machines}
        here |= {("Pod", pod.key): (pod.id, pod.pod, pod.node) for pod in scene.residents.pods if not pod.stays}
        begun = {step.mover.id: step for step in scene.under_way}
        may_change = {action.id for action in self.batch.changeable()}
        planned: list[Planned] = []
        untouched: set[str] = set()
        lingering: dict[str, str] = {}
        for action in self.batch.actions():
            if action.kind not in LEAVING:
                continue
            name, item, place = here.get((action.object.kind, action.object.title), ("", None, ""))
            is_it = item is not None and place == action.source and _is(action, item)
            ending = is_it and item is not None and bool(item["metadata"].get("deletionTimestamp"))
            if is_it and (action.id in self.batch.ended or (ending and action.kind in HARMFUL)):
                # It has left a moment before it is seen, or is about to.
                moved = action.kind is not ActionKind.STOP
                begun.setdefault(name, gone(name, scene.residents, scene.board, moved=moved))
            if is_it and name in begun and action.kind is not ActionKind.RESTART:
                lingering[name] = action.id  # of a restart that would be until it runs elsewhere
            # Its name alone is there: it has gone, and of who has come in its place nothing is planned. In mid-drain
            # that may be who was restarted, and comes to the node all the same: once is enough.
            anew = self.batch.node is None or action.id in self.replaced or name in restarted
            replaced = anew and item is not None and not _is(action, item)
            if not replaced and self._has_begun(scene, action, begun.get(name) if is_it else None, is_it=is_it):
                untouched.add(action.id)
            elif is_it and name not in begun:
                trusted = any(other in untouched and ".migrate." not in other for other in action.after)
                planned.append(Planned(name, action, fixed=action.id not in may_change, trusted=trusted))
        return replace(scene, under_way=tuple(begun.values())), planned, untouched, lingering

    def _has_begun(self, scene: Scene, action: Action, step: Step | None, *, is_it: bool) -> bool:
        """Whether an action is under way, or over, as it was planned. step: by which it leaves already."""
        if action.id in self.batch.ended:
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
        if self.batch.node is None:
            return set()
        places = {machine.id: machine.emptied for machine in scene.residents.machines}
        places |= {pod.id: pod.node for pod in scene.residents.pods}
        return {name for name, place in places.items() if place != self.batch.node} - {entry.id for entry in planned}

    def _given(self, planned: Sequence[Planned], steps: Sequence[Step], kept: Collection[str]) -> dict[str, list[str]]:
        names = {entry.action.id: entry.id for entry in planned}
        old = {action.id: action for action in self.batch.actions()}
        for name, action in old.items():
            names.setdefault(name, self._mover_of(action, steps))
        # Also for whom somebody had to wait through another one, who may be gone.
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


def _explained(
    actions: Sequence[Action],
    planned: Iterable[Planned],
    leaving: Mapping[str, Action],
    objections: Mapping[str, str],
    failures: Mapping[str, Sequence[str]],
) -> list[Action]:
    """With why a VM does not go where it was to go. leaving, objections: by ids of movers."""
    told: dict[str, Action] = {}
    for entry in planned:
        action, before = leaving.get(entry.id), entry.action.target
        if action is None or action.target == before or {action.kind, entry.action.kind} != {ActionKind.MIGRATE}:
            continue
        has_failed = before in failures.get(action.object.title, ())
        objection = f"its migration to {before} has failed" if has_failed else objections.get(entry.id, "")
        if objection:
            told[action.id] = action.instead_of(before or "", objection)
    return [told.get(action.id, action) for action in actions]


def _off(plan: Plan, number: int, nodes: Collection[str], ground: Ground) -> dict[str, str]:
    """VMs that are off and were stopped for nodes of the batch that are back, with these: no other gets their places.

    nodes: of the batch, those that are not back. One is back before its VMs run, so these may count as started by now.
    """
    starts = (action for action in plan.actions if action.kind is ActionKind.START and action.batch == number)
    homes = {action.object.title: action.node for action in starts if action.node not in nodes}
    return {name: node for name, node in homes.items() if ground.cluster.workloads.vmi(name) is None}


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

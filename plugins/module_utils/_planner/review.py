# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a run's plan held against the cluster as it is: all batches, each on what the ones before it leave.

What was planned at noon may have become impossible by the evening for the last batch only, which nobody should learn
when it comes to that. It costs as much as to plan the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import find_mark, nodes_cordoned
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine, stays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import read_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Plan,
    kin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import who_left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import reference_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.carrying import (
    Comeback,
    carry,
    place,
    start,
    touched,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Solution
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.foretold import identified
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import has_begun, what_is_left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import followed, in_order
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import mend_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.reserve import MachineMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import (
    totals,
    verdict,
    with_starts,
)

# Namespace, and what the names of an owner's pods have in common.
_Kin = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Review:
    """`before`: the plan with the names that what it foretold has got. `plan`: the one to go by, mended if need be.

    changes: what is different in that, a line each; without one they are the same.
    """

    before: Plan
    plan: Plan
    changes: list[str]


def review(plan: Plan, snapshot: Snapshot, done: Collection[str]) -> Review:
    """The plan with the least change that makes all its batches right of which nodes are not done.

    Without what has left by it already, if its run has begun. Raises as `plan_run`.
    """
    is_under_way = has_begun(plan, snapshot, done)
    rest = what_is_left(plan, snapshot, done) if is_under_way else plan
    found = _Reviewed(rest, snapshot, frozenset(done), _evicted(plan) if is_under_way else frozenset())
    for number in range(1, len(plan.batches) + 1):
        found.take(number)
    before, mended = found.before(), found.mended()
    changes = differences(before, mended)
    return Review(before, mended if changes else before, changes)


def lasting_changes(plan: Plan, snapshot: Snapshot, done: Collection[str], found: Review) -> list[str]:
    """Which changes to a plan do not go away by themselves, a line each. found: its review of this very snapshot.

    Who waits for what passes is none of them, nor what comes of another maintenance's cordon or of somebody else's
    migration. Raises as `plan_run`.
    """
    if not found.changes:
        return []
    calm = _calm(plan, snapshot)
    lasting = found if calm is snapshot else review(plan, calm, done)
    return differences(lasting.before, lasting.plan, passing=False)


class _Reviewed:
    """Batches are taken one after the other; the ground is always as those that were taken leave it."""

    def __init__(self, plan: Plan, snapshot: Snapshot, done: frozenset[str], evicted: Collection[_Kin]) -> None:
        """evicted: of which pods some may wait for a node, as the run has evicted them."""
        self._plan, self._done, self._evicted = plan, done, evicted
        self._options = PlanOptions.of(plan.options)
        self._ground = Ground(snapshot)
        self._memory = MachineMemory(self._ground)
        self._parts = _by_batch(plan)
        self._mended: list[Plan] = []
        totals = plan.totals
        self._spans, self._reserves = list(totals.batch_seconds), list(totals.batch_reserves)
        self._moved: set[str] = set()
        self._cordoned = nodes_cordoned(snapshot.lists["nodes"])

    def take(self, number: int) -> None:
        part = self._parts[number - 1]
        nodes = [name for name in self._plan.batches[number - 1] if name not in self._done]
        # First of all, so that no other is sent to their places.
        started = self._start((action for action in part.actions if action.node not in nodes), closed=nodes)
        if nodes:
            pods, vmis = self._ground.pods_on(nodes), self._ground.vmis_on(nodes)
            part = self._parts[number - 1] = identified(part, number, pods, vmis)
            part = self._mend(part, number, nodes, started)
        self._memory.look(place(self._ground, self._waiting(), self._options.profile))
        self._mended.append(part)
        self._moved |= who_left((*self._parts[number - 1].actions, *part.actions))

    def before(self) -> Plan:
        return replace(self._plan, actions=tuple(action for part in self._parts for action in part.actions))

    def mended(self) -> Plan:
        actions = tuple(action for part in self._mended for action in part.actions)
        blocked = tuple(entry for part in self._mended for entry in part.blocked)
        counted = totals(actions, self._spans, self._reserves)
        return replace(
            self._plan,
            actions=actions,
            blocked=blocked,
            verdict=verdict(self._plan.batches, blocked),
            totals=counted if self._spans else replace(counted, seconds=self._plan.totals.seconds),
        )

    def _mend(self, part: Plan, number: int, nodes: Sequence[str], started: Mapping[str, Comeback]) -> Plan:
        """started: by namespace/name, those of the batch that were off and had to start first."""
        ended = {action.id for action in part.actions if action.node in self._done}
        begun = self._cordoned.intersection(nodes)
        found = mend_batch(part, number, nodes, self._ground, self._memory, ended=ended, begun=begun, moved=self._moved)
        reserve = self._memory.reserve(found.solution, self._options.reserve)
        back = carry(self._ground, found.solution, self._options.profile, found.drain.refused)
        self._memory.look(touched(found.solution, back))
        back |= self._start(found.plan.actions)
        actions = _with_comebacks(found.plan.actions, found.solution, {**started, **back})
        if self._mended:
            actions = tuple(followed(actions, self._parts[number - 2].actions, self._mended[-1].actions))
        if actions != part.actions:
            self._tell(number, found.drain.seconds, reserve.bytes if reserve else None)
        return replace(found.plan, actions=actions)

    def _start(self, actions: Iterable[Action], *, closed: Collection[str] = ()) -> dict[str, Comeback]:
        """Let those start that are off already, as a drain of an earlier start of the run has stopped them.

        closed: nodes that are about to be emptied.
        """
        starts = (action for action in actions if action.kind is ActionKind.START)
        known = self._ground.cluster.workloads
        homes = {action.object.title: action.node for action in starts if known.vmi(action.object.title) is None}
        started = start(self._ground, homes, self._options.profile, closed=closed)
        self._memory.look({back.node for back in started.values()})
        return started

    def _waiting(self) -> list[Object]:
        """Pods that have found no node yet, and may do so now that a batch is back."""
        pods = self._ground.pods_on([""])
        found = (pod for pod in pods if controller(pod) and not (is_leaving(pod) or stays(pod) or of_a_machine(pod)))
        return sorted((pod for pod in found if _kin(reference_of("Pod", pod)) in self._evicted), key=title)

    def _tell(self, number: int, seconds: int | None, reserve: int | None) -> None:
        """Of a batch that has changed, as far as the plan tells it."""
        for told, value in ((self._spans, seconds), (self._reserves, reserve)):
            if len(told) == len(self._plan.batches):
                told[number - 1] = value


def _evicted(plan: Plan) -> frozenset[_Kin]:
    return frozenset(_kin(action.object) for action in plan.actions if action.kind is ActionKind.EVICT)


def _kin(reference: ObjectReference) -> _Kin:
    return reference.namespace, kin(reference)


def _by_batch(plan: Plan) -> list[Plan]:
    """The plan with only what is about each batch."""
    numbers = {name: number for number, nodes in enumerate(plan.batches) for name in nodes}
    actions: list[list[Action]] = [[] for _nodes in plan.batches]
    blocked: list[list[Blocked]] = [[] for _nodes in plan.batches]
    for action in plan.actions:
        actions[action.batch - 1].append(action)
    for entry in plan.blocked:
        blocked[numbers[entry.node]].append(entry)
    return [replace(plan, actions=tuple(own), blocked=tuple(held)) for own, held in zip(actions, blocked, strict=True)]


def _with_comebacks(
    actions: Sequence[Action], solution: Solution, started: Mapping[str, Comeback]
) -> tuple[Action, ...]:
    """Of a batch: who is stopped in it, or is off, starts where it would now, as foretold if that is the same."""
    machines = {machine.id for machine in solution.scene.residents.machines}
    stopped = {
        step.mover.key
        for step in solution.steps
        if step.node is None and not step.mover.chosen and step.mover.id in machines
    }
    starts = {action.id: action for action in actions if action.kind is ActionKind.START}
    own = (action for action in starts.values() if action.object.title in stopped.union(started))
    bare = (replace(action, after=tuple(name for name in action.after if name not in starts)) for action in own)
    again = {action.id: action for action in with_starts(bare, started)}
    found = {action.id: _unless_same(action, again.get(action.id, action)) for action in actions}
    return tuple(in_order(found, [*(action.id for action in actions if action.id not in again), *again]))


def _unless_same(old: Action, new: Action) -> Action:
    """The new one, if it says anything else."""
    return old if (old.target, set(old.after)) == (new.target, set(new.after)) else new


def _calm(plan: Plan, snapshot: Snapshot) -> Snapshot:
    """As if others had uncordoned the nodes that the plan needs, and had not begun to migrate anything."""
    targets = {action.target for action in plan.actions}
    lists = dict(snapshot.lists)
    lists["nodes"] = [
        _uncordoned(node) if node["metadata"]["name"] in targets and _is_taken(node, plan.run) else node
        for node in lists["nodes"]
    ]
    begun = {str(item["metadata"].get("uid")): item for item in lists["migrations"] if _is_of_others(item, plan.run)}
    lists["migrations"] = [item for item in lists["migrations"] if item not in begun.values()]
    lists["pods"] = [
        pod for pod in lists["pods"] if (pod["metadata"].get("labels") or {}).get(MIGRATION_JOB) not in begun
    ]
    same = all(len(lists[name]) == len(snapshot.lists[name]) for name in ("migrations", "pods"))
    if same and lists["nodes"] == list(snapshot.lists["nodes"]):
        return snapshot
    return Snapshot(lists, snapshot.header)


def _is_taken(node: Object, run: str) -> bool:
    """Whether a node is cordoned, but not by the run."""
    mark = find_mark(node)
    return bool((node.get("spec") or {}).get("unschedulable")) and (mark is None or mark.owner != run)


def _uncordoned(node: Object) -> Object:
    taints = [taint for taint in node["spec"].get("taints") or () if taint["key"] != CORDON.key]
    return {**node, "spec": {**node["spec"], "unschedulable": False, "taints": taints}}


def _is_of_others(item: Object, run: str) -> bool:
    migration = read_migration(item)
    return migration.unfinished and migration.run != run

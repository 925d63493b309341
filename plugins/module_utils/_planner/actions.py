# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a solved batch means as actions of a plan, and what of it is blocked.

Each node is cordoned, what is on it leaves, it is maintained and uncordoned, and what was stopped starts again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import NOT_CREATED
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import drained_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_refused
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    CAUSE,
    FORETOLD,
    NO_ROOM,
    POLICIES,
    RESTARTS_LATER,
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Obstacle,
    action_id,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.assumptions import assumptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Solution
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    Outcome,
    PlannedMove,
    PodFate,
    PodOutcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.story import cause_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import interruption

NO_NODE = "no node can take it"
_LOSSES = {
    drained_pod.FORCE: "nothing would replace it",
    drained_pod.DELETE_EMPTYDIR_DATA: "the data in its emptyDir volumes would be lost",
}
_QUICK = "KubeVirt lets it go on, although it would abort it as it takes too long even with an idle guest"
# In a large cluster hundreds of nodes may be equally good for a pod.
_MOST_NAMED = 10
_LEAVE = (PodOutcome.MOVES, PodOutcome.WAITS, PodOutcome.ENDS)


@dataclass(frozen=True, slots=True)
class BatchActions:
    """`leaving`: by the mover's id, the action by which it leaves."""

    actions: tuple[Action, ...]
    blocked: tuple[Blocked, ...]
    leaving: Mapping[str, Action]


def batch_actions(
    number: int,
    solution: Solution,
    drain: DrainPlan,
    waits: Mapping[str, Collection[str]],
    *,
    before: Sequence[str] = (),
    options: PlanOptions,
    shaken: bool = False,
    begun: Mapping[str, str] | None = None,
) -> BatchActions:
    """number: of the batch. waits: for whom each mover has to wait, by ids of movers; who is not named waits for none.

    before: ids of actions that the batch as a whole waits for. shaken: whether it is taken for granted where the
    scheduler has put what left in earlier batches. begun: by ids of movers that have all but left, the ids of the
    actions by which they do, which are none of these.
    """
    nodes = [_node(number, solution, name, ActionKind.CORDON, before) for name in drain.nodes]
    cordons = tuple(action.id for action in nodes)
    held = list(blocked(solution, drain, options.allowed))
    kept = {(entry.object.kind, entry.object.title) for entry in held}
    found = [
        (mover, action)
        for mover, action in _leaving(number, solution, drain)
        if (action.object.kind, action.object.title) not in kept
    ]
    ids = {**(begun or {}), **{mover: action.id for mover, action in found}}
    order = {step.mover.id: index for index, step in enumerate(solution.steps)}
    assumed = assumptions(solution.scene.board, solution.steps, waits, options.profile, shaken=shaken)
    leaving = {
        mover: replace(
            action,
            after=(*cordons, *(ids[name] for name in waits.get(mover, ()) if name in ids)),
            assumed=(*action.assumed, *assumed.get(mover, ())),
        )
        for mover, action in sorted(found, key=lambda entry: order[entry[0]])
    }
    back = [action for name in drain.nodes for action in _given_back(number, solution, name, leaving.values(), cordons)]
    return BatchActions((*nodes, *leaving.values(), *back), tuple(held), leaving)


def uid_of(item: Object) -> str:
    """Empty for an object that only the plan knows."""
    uid = str(item["metadata"].get("uid") or "")
    return "" if FORETOLD in uid or uid.startswith(NOT_CREATED) else uid


def reference_of(kind: str, item: Object) -> ObjectReference:
    metadata = item["metadata"]
    return ObjectReference(kind, metadata.get("namespace") or "default", metadata["name"], uid_of(item))


def _node(number: int, solution: Solution, name: str, kind: ActionKind, after: Sequence[str]) -> Action:
    node = solution.scene.cluster.workloads.node(name)
    reference = ObjectReference("Node", "", name, uid_of(node) if node else "")
    whys = {
        ActionKind.CORDON: "Nothing may come to it while it is emptied and maintained.",
        ActionKind.MAINTAIN: "Everything that had to leave has left.",
        ActionKind.UNCORDON: "It is maintained.",
    }
    return Action(action_id(number, kind, reference), kind, number, name, reference, after=tuple(after), why=whys[kind])


def _given_back(
    number: int, solution: Solution, name: str, leaving: Collection[Action], cordons: Sequence[str]
) -> Iterator[Action]:
    own = [action for action in leaving if action.node == name]
    others = [action.id for action in leaving if action.node != name]
    cordon = _node(number, solution, name, ActionKind.CORDON, ()).id
    maintain = _node(number, solution, name, ActionKind.MAINTAIN, (cordon, *(action.id for action in own)))
    uncordon = _node(number, solution, name, ActionKind.UNCORDON, (maintain.id,))
    yield from (maintain, uncordon)
    for action in own:
        if action.kind is ActionKind.STOP:
            yield Action(
                id=action_id(number, ActionKind.START, action.object),
                kind=ActionKind.START,
                batch=number,
                node=name,
                object=action.object,
                target=name,
                after=(action.id, uncordon.id, *others),
                why="It was stopped until its node is back.",
            )


def _leaving(number: int, solution: Solution, drain: DrainPlan) -> Iterator[tuple[str, Action]]:
    """The id of a mover, and its action that waits for nothing yet."""
    scene = solution.scene
    machines = {machine.key: machine for machine in scene.residents.machines}
    for move in drain.moves:
        machine = machines[f"{move.namespace}/{move.name}"]
        yield machine.id, _migration(number, reference_of(VMI, machine.vmi), machine.emptied, move)
    for stuck in drain.stuck:
        machine = machines[f"{stuck.namespace}/{stuck.name}"]
        if stuck.wave is not None:
            yield machine.id, _interruption(number, reference_of(VMI, machine.vmi), stuck)
    pods = {pod.key: pod.pod for pod in scene.residents.pods}
    for fate in drain.pods:
        key = f"{fate.namespace}/{fate.name}"
        if fate.wave is not None and fate.outcome in _LEAVE:
            yield key, _eviction(number, reference_of("Pod", pods[key]), fate)


def _migration(number: int, reference: ObjectReference, node: str, move: PlannedMove) -> Action:
    """node: the one that is emptied by it, which need not be its source."""
    return Action(
        id=action_id(number, ActionKind.MIGRATE, reference),
        kind=ActionKind.MIGRATE,
        batch=number,
        node=node,
        object=reference,
        source=move.source_node,
        target=move.target_node,
        selector=move.node_selector,
        seconds=move.seconds,
        why=f"{move.why[:1].upper()}{move.why[1:]}.",
        assumed=(*move.unevaluated, *((_QUICK,) if move.ending is Ending.ABORTED else ())),
    )


def _interruption(number: int, reference: ObjectReference, stuck: StuckMachine) -> Action:
    """What its owner makes at once starts anew elsewhere; what waits for a node is off until START."""
    kind = ActionKind.RESTART if stuck.outcome is Outcome.RESTARTS else ActionKind.STOP
    return Action(
        id=action_id(number, kind, reference),
        kind=kind,
        batch=number,
        node=stuck.node,
        object=reference,
        source=stuck.node,
        target=stuck.target_node,
        why=f"{stuck.why}{CAUSE}{cause_of(stuck) if stuck.blockers else f'{NO_NODE}: {cause_of(stuck)}'}.",
        assumed=tied(stuck.target_node, stuck.choices),
    )


def _eviction(number: int, reference: ObjectReference, fate: PodFate) -> Action:
    waits = f"PodDisruptionBudget {', '.join(fate.budgets)} allows its eviction in time"
    return Action(
        id=action_id(number, ActionKind.EVICT, reference),
        kind=ActionKind.EVICT,
        batch=number,
        node=fate.node,
        object=reference,
        source=fate.node,
        target=fate.target_node,
        why=fate.why,
        assumed=(*tied(fate.target_node, fate.choices), *((waits,) if fate.budgets else ())),
    )


def tied(target: str | None, choices: Sequence[str]) -> tuple[str, ...]:
    """What is taken for granted of a node that the scheduler draws; nothing if it has no choice."""
    if target is None or len(choices) < 2:
        return ()
    more = f" and {len(choices) - _MOST_NAMED} more" if len(choices) > _MOST_NAMED else ""
    named = ", ".join(choices[:_MOST_NAMED])
    return (f"of {named}{more}, which are equally good for it, the scheduler takes {target}",)


def blocked(solution: Solution, drain: DrainPlan, allowed: frozenset[str]) -> Iterator[Blocked]:
    """What does not leave. allowed: what evictions may need."""
    for stuck, machine, reasons, passing in _kept_machines(solution, drain):
        obstacle = _obstacle(stuck, machine, solution, passing=passing)
        yield Blocked(reference_of(VMI, machine.vmi), stuck.node, reasons, passing, obstacle)
    pods = {pod.key: pod.pod for pod in solution.scene.residents.pods}
    for fate in drain.pods:
        pod = pods[f"{fate.namespace}/{fate.name}"]
        if reasons := tuple(_holds(fate, allowed)):
            yield Blocked(reference_of("Pod", pod), fate.node, reasons, obstacle=_obstacle_of_pod(fate, allowed))


def nodes_not_emptied(solution: Solution, drain: DrainPlan, allowed: frozenset[str]) -> set[str]:
    """The nodes that something does not leave for a reason that does not pass by itself."""
    kept = {stuck.node for stuck, _machine, _reasons, passing in _kept_machines(solution, drain) if not passing}
    return kept | {fate.node for fate in drain.pods if any(_holds(fate, allowed))}


def _kept_machines(
    solution: Solution, drain: DrainPlan
) -> Iterator[tuple[StuckMachine, Machine, tuple[str, ...], bool]]:
    """VMs that do not leave, with the reasons, and whether these pass by themselves."""
    machines = {machine.key: machine for machine in solution.scene.residents.machines}
    for stuck in drain.stuck:
        machine = machines[f"{stuck.namespace}/{stuck.name}"]
        prospect = solution.prospects.get(machine.id)
        if reasons := tuple(_keeps(stuck, drain)):
            passing = stuck.outcome is Outcome.WAITS or prospect is not None
            yield stuck, machine, reasons if prospect is None else (prospect,), passing


def as_told(known: Mapping[tuple[ObjectReference, str, bool], Blocked], entry: Blocked) -> Blocked:
    """As it was told before, if only the scheduler's words for it have changed, as they do all the time."""
    earlier = known.get((entry.object, entry.node, entry.passing), entry)
    return (
        earlier if all(each.reasons[:1] and each.reasons[0].startswith(NO_NODE) for each in (earlier, entry)) else entry
    )


def _obstacle(stuck: StuckMachine, machine: Machine, solution: Solution, *, passing: bool) -> Obstacle:
    if stuck.target_node is not None:
        return Obstacle("tolerates-cordon", "it tolerates the cordon, and starts again on a node that is drained")
    if stuck.blockers and passing and stuck.outcome is Outcome.STAYS:
        return Obstacle(RESTARTS_LATER, "it restarts once others have arrived, or somebody has uncordoned a node")
    if stuck.blockers:
        blocker = stuck.blockers[0]
        # Whatever its policy is, who can go soon is waited for, and may be going already.
        cleared_by = (POLICIES,) if not passing and _can_be_stopped(stuck, machine, solution) else ()
        return Obstacle(blocker.id, blocker.problem, blocker.advice, cleared_by)
    if passing:
        return Obstacle("room-to-come", "others have to arrive first, or somebody has to uncordon a node")
    return Obstacle(NO_ROOM, NO_NODE)


def _can_be_stopped(stuck: StuckMachine, machine: Machine, solution: Solution) -> bool:
    """Whether a policy of stopping what KubeVirt calls not migratable would let it go."""
    if stuck.policy is not Policy.FAIL or not is_refused(machine.vmi):
        return False
    scene = solution.scene
    return isinstance(interruption(machine, Policy.STOP, scene.cluster, scene.board.state), Mover)


def _obstacle_of_pod(fate: PodFate, allowed: frozenset[str]) -> Obstacle:
    if fate.outcome is PodOutcome.REFUSED:
        return Obstacle("eviction-refused", "its eviction is refused", "see why in the plan's text")
    if fate.outcome is PodOutcome.RETURNS:
        return Obstacle(
            "tolerates-cordon", "its replacement tolerates the cordon and comes back", "drop the toleration"
        )
    missing = tuple(need for need in fate.needs if need not in allowed)
    return Obstacle("-and-".join(missing), " and ".join(_LOSSES[need] for need in missing), "", missing)


def _keeps(stuck: StuckMachine, drain: DrainPlan) -> Iterator[str]:
    """Why a VM does not leave; nothing if it does."""
    if stuck.target_node in drain.nodes:
        yield f"it tolerates the cordon, and starts again on {stuck.target_node}"
    elif stuck.outcome is Outcome.WAITS:
        yield cause_of(stuck)
    elif stuck.outcome is Outcome.STAYS:
        yield cause_of(stuck) if stuck.blockers else f"{NO_NODE}: {cause_of(stuck)}"
        if "Nor can it" in stuck.why:
            yield f"n{stuck.why[stuck.why.index('Nor can it') + 1 :].rstrip('.')}"


def _holds(fate: PodFate, allowed: frozenset[str]) -> Iterator[str]:
    """Why a pod does not leave; nothing if it does."""
    if fate.outcome in (PodOutcome.REFUSED, PodOutcome.RETURNS):
        yield fate.why.rstrip(".")
    missing = [need for need in fate.needs if need not in allowed]
    if missing and fate.outcome is not PodOutcome.STAYS:
        yield f"{' and '.join(_LOSSES[need] for need in missing)}; set {' and '.join(missing)} if it may go"

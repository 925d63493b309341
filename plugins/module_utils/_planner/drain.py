# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can these nodes be drained together, and how: lists of a cluster in, a plan out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fate import Event, fate
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import queue
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import EvictionRefusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import needs
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import outcome, story
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.course import Course
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    MachineFates,
    PodFate,
    PodOutcome,
    Policy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.pace import seconds
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import NEEDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, policy_for
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.prospects import prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import (
    Machine,
    Residents,
    helpers,
    residents,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.under_way import find_under_way
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waves import Caps
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import (
    eviction,
    interruption,
    migration,
    passes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

_ATTEMPT = "plan the drain"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a plan is about. By id of VMs: `ways` out by migration, `policies`; of pods: `refusals` of their eviction.

    kept: ids of pods that are not to be evicted. under_way: steps that have begun. patient: nobody is interrupted who
    has a prospect.

    Playing it changes its board, which is cleared before there is another scene of the same ground.
    """

    nodes: tuple[str, ...]
    targets: Mapping[str, str]
    cluster: Surroundings
    board: Board
    residents: Residents
    ways: Mapping[str, Mover | tuple[Blocker, ...]]
    policies: Mapping[str, Policy]
    refusals: Mapping[str, EvictionRefusal]
    kept: frozenset[str] = frozenset()
    under_way: tuple[Step, ...] = ()
    patient: bool = False


def plan_drain(
    lists: Lists,
    nodes: Sequence[str],
    *,
    policies: Sequence[Rule] = (),
    avoid: Sequence[str] = (),
    targets: Mapping[str, str] | None = None,
    profile: Profile = Profile.LOW_NODE_UTILIZATION,
) -> DrainPlan:
    """The plan to empty the nodes, which are taken as cordoned, whether they are or not.

    avoid: nodes that VMs go to only if they fit nowhere else. targets: nodes for VMs, given as namespace/name.
    profile: how nodes that fit are ranked. Raises `InvalidRequest`, WorkloadError, `SelectorError`, `QuantityError`,
    `MissingLibrary`.
    """
    (found,) = plan_drains(
        Ground(Snapshot(lists)), [nodes], policies=policies, avoid=avoid, targets=targets, profile=profile
    )
    return found


def plan_drains(
    ground: Ground,
    batches: Sequence[Sequence[str]],
    *,
    policies: Sequence[Rule] = (),
    avoid: Sequence[str] = (),
    targets: Mapping[str, str] | None = None,
    profile: Profile = Profile.LOW_NODE_UTILIZATION,
) -> list[DrainPlan]:
    """A plan for each batch of nodes, as if it were the only one; the rest is as in `plan_drain`.

    The ground can be planned on again, also if that raises.
    """
    plans = []
    for nodes in batches:
        scene = prepare(ground, nodes, policies, avoid, targets or {})
        try:
            plans.append(plan(scene, profile))
        finally:
            scene.board.clear()
    return plans


def prepare(
    ground: Ground,
    nodes: Sequence[str],
    policies: Sequence[Rule],
    avoid: Sequence[str],
    targets: Mapping[str, str],
    *,
    patient: bool = False,
    helping: Mapping[str, str] | None = None,
    allowed: frozenset[str] = frozenset(NEEDS),
) -> Scene:
    """What costs in proportion to the nodes, and to what is on those that are drained; raises as `plan_drain` does.

    patient: what is under way is taken into the plan, and nobody is interrupted who has a prospect. helping: VMs that
    make room where they are, by namespace/name, and the drained nodes for whose sake. allowed: what evictions may need.
    """
    _check(ground, nodes, avoid, targets)
    draining, cluster = frozenset(nodes), ground.cluster
    ground.state.cordon(draining)
    board = Board(ground.state, draining, frozenset(avoid))
    found = residents(ground.pods_on(draining), cluster.workloads)
    if helping:
        found = replace(found, machines=(*found.machines, *helpers(helping, ground.pods_on, cluster.workloads)))
    kubevirt = cluster.configuration.namespace
    refusals = ((pod.id, cluster.budgets.refusal(pod.pod)) for pod in found.pods if not pod.stays)
    return Scene(
        tuple(dict.fromkeys(nodes)),
        targets,
        cluster,
        board,
        found,
        ways={vm.id: migration(vm, cluster, board.state, targets.get(vm.key)) for vm in found.machines},
        policies={vm.id: Policy.FAIL if vm.helps else policy_for(vm.vmi, policies) for vm in found.machines},
        refusals={name: refusal for name, refusal in refusals if refusal is not None},
        kept=frozenset(pod.id for pod in found.pods if not allowed.issuperset(needs(pod.pod, kubevirt=kubevirt))),
        under_way=find_under_way(found, cluster, board) if patient else (),
        patient=patient,
    )


@dataclass(frozen=True, slots=True)
class Solution:
    """How everything leaves that can. The board of the scene is at the end of the waves.

    waves: what may start together. last: ids of those that leave only after all that leave unharmed.
    By ids of VMs, objections: why their policies cannot be followed; prospects: what those wait for who leave later.
    """

    scene: Scene
    waves: Sequence[Sequence[Step]]
    last: frozenset[str]
    objections: Mapping[str, str]
    prospects: Mapping[str, str]

    @property
    def steps(self) -> list[Step]:
        """Legal one after the other."""
        return [step for wave in self.waves for step in wave]


def solve(scene: Scene, profile: Profile = Profile.LOW_NODE_UTILIZATION) -> Solution:
    """What costs in proportion to what is on the drained nodes; raises as `plan_drain` does."""
    course = course_of(scene, profile)
    course.move(movers(scene))
    return finish(scene, course)


def course_of(scene: Scene, profile: Profile) -> Course:
    """With what has begun already."""
    course = Course(scene.board, Caps.of(scene.cluster.configuration.migrations), profile)
    course.begin(scene.under_way)
    return course


def movers(scene: Scene) -> list[Mover]:
    """All that can leave unharmed and has not begun to."""
    begun = {step.mover.id for step in scene.under_way}
    held = {*scene.kept, *(name for name, refusal in scene.refusals.items() if not refusal.passing)}
    pods = (pod for pod in scene.residents.pods if not (pod.stays or is_leaving(pod.pod) or pod.id in held))
    evictions = [eviction(pod, scene.board.state) for pod in pods]
    found = [*evictions, *(way for way in scene.ways.values() if isinstance(way, Mover))]
    return [mover for mover in found if mover.id not in begun]


def finish(scene: Scene, course: Course) -> Solution:
    """Let those leave that have no place: by their policies, if they have no prospect either.

    Who would restart and has no place for that may have a prospect of one.
    """
    board, patient = scene.board, dict[str, str]()
    if scene.patient:
        patient = prospects(board, [mover for mover in course.stuck if mover.chosen], scene.cluster)
    waiting = {name for name, way in scene.ways.items() if passes(way) or scene.policies[name] is Policy.FAIL}
    left = [vm for vm in scene.residents.machines if vm.id not in waiting | patient.keys() | course.on_their_way()]
    found = {vm.id: interruption(vm, scene.policies[vm.id], scene.cluster, board.state) for vm in left}
    interruptions = {name: mover for name, mover in found.items() if isinstance(mover, Mover)}
    course.depart(interruptions, {name for name in interruptions if scene.policies[name] is Policy.RESTART})
    objections = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    if scene.patient:
        held = [mover for name, mover in interruptions.items() if name not in course.on_their_way()]
        patient |= prospects(board, held, scene.cluster)
    still = {name: clause for name, clause in patient.items() if name not in course.on_their_way()}
    return Solution(scene, course.waves, frozenset(course.last), objections, still)


def plan(scene: Scene, profile: Profile = Profile.LOW_NODE_UTILIZATION) -> DrainPlan:
    """The plan to play a scene; raises as `plan_drain` does."""
    return drain_of(solve(scene, profile))


def drain_of(solution: Solution) -> DrainPlan:
    """What a solution means for everything on the nodes."""
    scene, board = solution.scene, solution.scene.board
    machines, steps = [vm for vm in scene.residents.machines if not vm.helps], outcome.numbered(solution.waves)
    moves = outcome.moves(scene.residents.machines, steps, board, scene.targets, scene.cluster)
    stuck = outcome.stuck_machines(machines, scene.ways, scene.policies, solution.objections, steps, board)
    pod_fates = _pod_fates(solution, steps)
    prevented, delayed = outcome.is_prevented(stuck, pod_fates, board), outcome.is_delayed(stuck)
    feasible = not (prevented or delayed)
    migrations = queue(scene.cluster)
    return DrainPlan(
        nodes=scene.nodes,
        feasible=feasible,
        passing=delayed and not prevented,
        message=story.summary(scene.nodes, feasible, moves, stuck, pod_fates),
        moves=moves,
        stuck=stuck,
        pods=pod_fates,
        seconds=seconds(moves, migrations, scene.cluster),
        queue=migrations.machines(),
        fates=_machine_fates(machines, scene.cluster),
    )


def _pod_fates(solution: Solution, steps: outcome.Steps) -> tuple[PodFate, ...]:
    """As the steps have it, but for what budgets keep because others that left before find no node either."""
    scene, pods = solution.scene, solution.scene.residents.pods
    fates = outcome.pod_fates(pods, scene.refusals, steps, scene.board, scene.cluster)
    waiting = {f"{fate.namespace}/{fate.name}" for fate in fates if fate.outcome is PodOutcome.WAITS}
    kept = scene.cluster.budgets.overdrawn(pod.pod for pod in pods if pod.key in waiting)
    refusals = {title(pod): refusal for pod, refusal in kept}
    if not refusals:
        return fates
    return outcome.pod_fates(pods, {**scene.refusals, **refusals}, steps, scene.board, scene.cluster)


def _check(ground: Ground, nodes: Sequence[str], avoid: Sequence[str], targets: Mapping[str, str]) -> None:
    problems = [
        *unknown_names(ground, (*nodes, *avoid), targets),
        *(f"{name} is to go to {node}, which is drained itself" for name, node in targets.items() if node in nodes),
    ]
    if not nodes:
        problems.append("no node is named")
    if problems:
        raise InvalidRequest(
            _ATTEMPT, list(dict.fromkeys(problems)), "Name nodes and VMs that are in the snapshot, or take a new one."
        )


def unknown_names(ground: Ground, nodes: Collection[str], targets: Mapping[str, str]) -> list[str]:
    """Clauses on nodes, and on VMs and nodes among the targets, that are not there."""
    missing = [name for name in (*nodes, *targets.values()) if name not in ground.nodes]
    return [
        *(_unknown("node", name, ground.nodes) for name in missing),
        *(_unknown("VirtualMachineInstance", name, ground.vmis) for name in targets if name not in ground.vmis),
    ]


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"there is no {kind} {name}" + (f" (do you mean {near[0]}?)" if near else "")


def _machine_fates(machines: Iterable[Machine], cluster: Surroundings) -> tuple[MachineFates, ...]:
    """What becomes of those that run there if nobody follows the plan, by name. Raises `QuantityError`."""
    found = [_fates(machine, cluster) for machine in machines if not (machine.unknown or machine.arriving)]
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))


def _fates(machine: Machine, cluster: Surroundings) -> MachineFates:
    namespace, _slash, name = machine.key.partition("/")
    return MachineFates(
        namespace=namespace,
        name=name,
        node=machine.node,
        drain=fate(machine.vmi, Event.DRAIN, cluster),
        eviction=fate(machine.vmi, Event.EVICTION, cluster),
        node_failure=fate(machine.vmi, Event.NODE_FAILURE, cluster),
    )

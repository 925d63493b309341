# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run: all its batches, one after the other; a node that is drained alone is a batch of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    RESTARTS_LATER,
    Action,
    ActionKind,
    Blocked,
    Plan,
    PlannedCluster,
    PlannedFrom,
    Totals,
    Verdict,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import PLACED
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import batch_actions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.bound import have_to_move
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.carrying import Comeback, carry, touched
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    Scene,
    Solution,
    drain_of,
    prepare,
    unknown_names,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.making_room import solved
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import GIVING_BACK
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import Failing, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.reserve import MachineMemory, unreserved
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waits import find_waits


def plan_run(snapshot: Snapshot, run: str, batches: Sequence[Sequence[str]], options: PlanOptions) -> Plan:
    """Empty, maintain and give back the nodes of each batch, from what the ones before it leave.

    run: its name, empty outside a run. A node of a later batch takes a VM only if no other one can. Others make room
    only if somebody would stay, or be interrupted, without it.

    Raises `InvalidRequest`, LauncherError, WorkloadError, `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    ground = Ground(snapshot)
    check_batches(ground, batches, options)
    found = [_step_by_step(ground, snapshot, run, batches, options, 0)]
    if options.room and is_harmful(found[0]):
        found.append(_step_by_step(Ground(snapshot), snapshot, run, batches, options, options.room))
    return min(found, key=cost)


def _step_by_step(
    ground: Ground, snapshot: Snapshot, run: str, batches: Sequence[Sequence[str]], options: PlanOptions, room: int
) -> Plan:
    growing = GrowingPlan(ground, options, room)
    for number, nodes in enumerate(batches, start=1):
        growing.take(growing.drained(nodes, [name for others in batches[number:] for name in others]))
    return growing.plan(snapshot, run)


def cost(plan: Plan) -> tuple[int, int, int, int, int]:
    """The less the better: who stays, who is harmed, now or later, who waits, who moves, how many batches there are."""
    totals, waiting = plan.totals, sum(entry.passing for entry in plan.blocked)
    later = sum(entry.obstacle.id == RESTARTS_LATER for entry in plan.blocked)
    harmed = totals.stops + totals.restarts + later
    return len(plan.blocked) - waiting, harmed, waiting, totals.migrations, len(plan.batches)


def is_harmful(plan: Plan) -> bool:
    """Whether a VM or pod stays on its node, or a VM is interrupted."""
    return any(cost(plan)[:2])


class GrowingPlan:
    """The plan of a run, batch after batch; the ground is always as the batches that were taken leave it.

    room: how many VMs may make room for others in all.
    """

    def __init__(self, ground: Ground, options: PlanOptions, room: int) -> None:
        self._ground, self._options = ground, options
        self._batches: list[tuple[str, ...]] = []
        self._actions: list[Action] = []
        self._blocked: list[Blocked] = []
        self._spans: list[int | None] = []
        self._reserves: list[int | None] = []
        self._memory = MachineMemory(ground)
        self._moved: set[str] = set()
        self._room = room
        self._before: tuple[str, ...] = ()
        self._shaken = False

    def drained(self, nodes: Sequence[str], later: Iterable[str], *, room: bool = True) -> Solution:
        """How these nodes are drained next, if later ones are avoided. It has to be taken, or its board cleared.

        room: whether others may make room, as far as that is left.
        """
        options, ground = self._options, self._ground
        targets = targets_on(ground, nodes, options.targets, but=self._moved)
        avoid = [*options.avoid, *later]

        def prepared(helping: Mapping[str, str]) -> Scene:
            return prepare(
                ground,
                nodes,
                options.rules,
                avoid,
                targets,
                patient=True,
                helping=helping,
                allowed=options.allowed,
            )

        return solved(prepared, ground, options.profile, self._room if room else 0)

    def unreserved(self, solution: Solution) -> list[Blocked]:
        """The nodes of a solution, if they cannot be away together as too little would be left in reserve."""
        failing = self._options.reserve
        if failing is Failing.NONE:
            return []
        return list(unreserved(solution, self._memory.reserve(solution, failing), failing))

    def take(self, solution: Solution, drain: DrainPlan | None = None) -> set[str]:
        """The names of all nodes that are not as they were. drain: the solution's, if somebody has it already."""
        scene, number = solution.scene, len(self._batches) + 1
        drain = drain or drain_of(solution)
        begun = {step.mover.id for step in scene.under_way}
        waits = find_waits(scene.board, solution.steps, last=solution.last, begun=begun)
        profile, shaken = self._options.profile, self._shaken
        found = batch_actions(number, solution, drain, waits, before=self._before, options=self._options, shaken=shaken)
        reserve = self._memory.reserve(solution, self._options.reserve)
        self._reserves.append(reserve.bytes if reserve else None)
        self._blocked += [*found.blocked, *unreserved(solution, reserve, self._options.reserve)]
        # Where those come that have no node yet the plan does not tell at all.
        late = any(step.node is None and step.mover.newcomer is not None for step in solution.steps)
        shaken = shaken or late or any(action.assumed for action in found.actions if action.kind in PLACED)
        started = carry(self._ground, solution, profile, drain.refused, shaken=shaken)
        self._batches.append(scene.nodes)
        self._actions += with_starts(found.actions, started)
        self._shaken = shaken or any(back.assumed for back in started.values())
        self._moved |= {action.object.title for action in found.leaving.values()}
        self._room -= sum(action.makes_room for action in found.leaving.values())
        self._spans.append(drain.seconds)
        self._before = tuple(action.id for action in found.actions if action.kind in GIVING_BACK)
        changed = touched(solution, started)
        self._memory.look(changed)
        return changed

    def plan(self, snapshot: Snapshot, run: str) -> Plan:
        return Plan(
            run=run,
            cluster=PlannedCluster.of(snapshot.header),
            snapshot=PlannedFrom.of(snapshot.header),
            options=self._options.to_json(),
            verdict=verdict(self._batches, self._blocked),
            batches=tuple(self._batches),
            actions=tuple(self._actions),
            blocked=tuple(self._blocked),
            totals=totals(self._actions, self._spans, self._reserves),
        )


def targets_on(
    ground: Ground, nodes: Collection[str], targets: Mapping[str, str], *, but: Collection[str] = ()
) -> dict[str, str]:
    """Those of the targets that are for VMs on these nodes; but: VMs that have obeyed theirs already."""
    found = {}
    for name, target in targets.items():
        vmi = ground.cluster.workloads.vmi(name)
        if name not in but and vmi is not None and (vmi.get("status") or {}).get("nodeName") in nodes:
            found[name] = target
    return found


def check_batches(ground: Ground, batches: Sequence[Sequence[str]], options: PlanOptions) -> None:
    """Raises InvalidRequest that tells all that is wrong."""
    nodes = [name for batch in batches for name in batch]
    twice = sorted(name for name, count in Counter(nodes).items() if count > 1)
    problems = [
        *(f"{name} is to be maintained twice" for name in twice),
        *unknown_names(ground, [*nodes, *options.avoid], options.targets),
        *(f"batch {number} has no node" for number, batch in enumerate(batches, start=1) if not batch),
    ]
    if problems:
        raise InvalidRequest(
            "plan the maintenance", problems, "Name nodes and VMs that are in the snapshot, each once."
        )


def with_starts(actions: Iterable[Action], started: Mapping[str, Comeback]) -> list[Action]:
    """Of a batch. What was stopped starts where the scheduler puts it, which need not be its node."""
    found, starts = [], {}
    for action in actions:
        if action.kind is ActionKind.START:
            starts[action.object.title] = action
        else:
            found.append(action)
    names = [name for name in started if name in starts]
    for name in (*names, *(name for name in starts if name not in started)):
        start, back = starts[name], started.get(name)
        after = tuple(starts[other].id for other in back.after if other in starts) if back else ()
        found.append(
            replace(
                start,
                target=back.node if back else None,
                after=(*start.after, *after),
                assumed=back.assumed if back else (),
            )
        )
    return found


def verdict(batches: Sequence[Collection[str]], blocked: Iterable[Blocked]) -> Verdict:
    closed = {entry.node for entry in blocked if not entry.passing}
    if not closed:
        return Verdict.FEASIBLE
    free = any(closed.isdisjoint(nodes) for nodes in batches)
    return Verdict.PARTIAL if free else Verdict.INFEASIBLE


def totals(actions: Iterable[Action], spans: Sequence[int | None], reserves: Sequence[int | None]) -> Totals:
    """spans: of the migrations of each batch, in seconds. reserves: in bytes."""
    known = list(actions)
    kinds = Counter(action.kind for action in known)
    least = len(have_to_move(known))
    return Totals(
        migrations=kinds[ActionKind.MIGRATE],
        evictions=kinds[ActionKind.EVICT],
        stops=kinds[ActionKind.STOP],
        restarts=kinds[ActionKind.RESTART],
        seconds=None if None in spans else sum(span or 0 for span in spans),
        batch_seconds=tuple(spans),
        batch_reserves=tuple(reserves),
        lower_bound=least,
        proof="optimal" if least == kinds[ActionKind.MIGRATE] else "none",
    )

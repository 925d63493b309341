# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run whose batches, and their order, the planner chooses.

Batch after batch is proposed by an estimate, and then drained in truth. Where somebody finds no node although it may be
migrated, or a budget keeps a pod because another one of the batch is away, the node is put off, and another batch is
tried; where no batch of that size works, a smaller one. Pods that stay away until their node is back are avoided if
another batch of the same size does, and else are no reason for a smaller one. Who turns out to migrate from nowhere is
not counted on a second attempt, as nothing has to be kept free for those. The plan is never worse than the one for the
order in which the nodes are given; of many nodes that one is tried only if somebody is stuck. Only if somebody stays or
is interrupted whatever the order, VMs on other nodes make room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import nodes_not_emptied
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.batching import Batching
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.bound import bounded
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Solution, drain_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import (
    GrowingPlan,
    check_batches,
    cost,
    is_harmful,
)

# How many batches are tried in vain at most before the best of them is taken; and in all, for each node of the run.
_MOST_TRIES, _MOST_PER_NODE = 24, 3
# How many batches are tried for one in which no pod has to stay away.
_FEW = 3
# Of so many nodes at most other orders are tried in any case, which takes as long again.
_MOST_COMPARED = 100
# Nodes on which somebody was stuck so many times are tried after all others.
_OFTEN = 3


def plan_whole_run(
    snapshot: Snapshot, run: str, nodes: Sequence[str], options: PlanOptions, begun: Collection[str] = ()
) -> Plan:
    """Empty, maintain and give back all of these nodes, in batches as the options want them.

    begun: those that are out of service already, which come first in any order. The rest is as in `plan_run`.
    """
    rules = options.batching or BatchRules()
    first = [name for name in nodes if name in begun]
    best = _best(partial(_planned, snapshot, run, nodes, options, begun=first), rules, 0)
    if options.room and is_harmful(best):
        best = min(
            best, _best(partial(_planned, snapshot, run, nodes, options, begun=first), rules, options.room), key=cost
        )
    return best


def _best(planned: Callable[..., Plan], rules: BatchRules, room: int) -> Plan:
    """Of the orders that are tried. planned: makes a plan by rules, and with so much room that may be made."""
    found = [planned(rules, room)]
    nodes = sum(map(len, found[0].batches))
    if (
        not _is_best(found[0], rules)
        and rules.free
        and (nodes <= _MOST_COMPARED or found[0].verdict is not Verdict.FEASIBLE)
    ):
        if bound := _never_moving(found[0]):
            found.append(planned(rules, room, bound=bound))
        found.append(planned(replace(rules, free=False), room))
    return min(found, key=cost)


def _is_best(plan: Plan, rules: BatchRules) -> bool:
    """Whether no other order could be better, as nobody is harmed, nobody moves without need, and no batch is small."""
    nodes, totals = sum(map(len, plan.batches)), plan.totals
    harmless = not plan.blocked and totals.stops + totals.restarts == 0
    return harmless and totals.proof == "optimal" and len(plan.batches) == -(-nodes // (rules.size or max(nodes, 1)))


def _never_moving(plan: Plan) -> frozenset[str]:
    """VMs, as namespace/name, that are stopped or restarted, or do not leave, and never migrate."""
    harmed = {action.object.title for action in plan.actions if action.kind in (ActionKind.STOP, ActionKind.RESTART)}
    kept = {entry.object.title for entry in plan.blocked if entry.object.kind == VMI and not entry.passing}
    moving = {action.object.title for action in plan.actions if action.kind is ActionKind.MIGRATE}
    return frozenset((harmed | kept) - moving)


def _planned(
    snapshot: Snapshot,
    run: str,
    nodes: Sequence[str],
    options: PlanOptions,
    rules: BatchRules,
    room: int,
    *,
    begun: Sequence[str],
    bound: frozenset[str] = frozenset(),
) -> Plan:
    ground = Ground(snapshot)
    check_batches(ground, [nodes] if nodes else [], options)
    search = _Search(ground, nodes, rules, GrowingPlan(ground, options, room), bound, options.allowed)
    regions = search.batching.regions
    search.begin(begun)
    while search.batching.left:
        search.take_next()
    return bounded(search.growing.plan(snapshot, run), regions)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A batch, and those of its nodes that are better put off.

    cost: how many VMs find no node although they could migrate, or are to restart as soon as there is one, how many
    pods a budget keeps because others of the batch are away, and one for a reserve that is not kept, and how many pods
    stay away until their node is back.
    """

    nodes: tuple[str, ...]
    put_off: frozenset[str]
    cost: tuple[int, int, int]

    @property
    def works(self) -> bool:
        return not any(self.cost[:2])


class _Search:
    """`hopeless`: nodes that somebody cannot leave whoever goes first; they come last."""

    def __init__(
        self,
        ground: Ground,
        nodes: Sequence[str],
        rules: BatchRules,
        growing: GrowingPlan,
        bound: frozenset[str],
        allowed: frozenset[str],
    ) -> None:
        self.rules, self.growing, self.allowed, self._bound = rules, growing, allowed, bound
        self.batching = Batching(ground, nodes, rules, bound)
        self.hopeless: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._patience = _MOST_TRIES + _MOST_PER_NODE * len(nodes)

    def begin(self, nodes: Sequence[str]) -> None:
        """With these, whatever stands against it."""
        rest = list(nodes)
        while rest:
            batch = self.batching.opening(rest)
            self._take(self._drained(batch))
            rest = [name for name in rest if name not in batch]

    def take_next(self) -> None:
        """The first batch that everybody can leave, else the one with the fewest who cannot."""
        best: _Trial | None = None
        trials: list[_Trial] = []
        for nodes in self._proposals(trials):
            if best is not None and best.works and (len(nodes) < len(best.nodes) or len(trials) >= _FEW):
                break
            solution = self._drained(nodes, room=not self.rules.free)
            trial = _judged(solution, self._bound, short=bool(self.growing.unreserved(solution)))
            if not self.rules.free or not any(trial.cost):
                drain = drain_of(solution)
                stuck = self._stuck(solution, drain)
                if not self.rules.free or not stuck:
                    self._take(solution, drain)
                    return
                self.hopeless |= stuck
            elif trial.works and (stuck := self._stuck(solution, drain_of(solution))):
                self.hopeless |= stuck
            elif best is None or trial.cost < best.cost:
                best = trial
            solution.scene.board.clear()
            trials.append(trial)
            self._failures.update(() if trial.works else trial.put_off)
            self._patience -= 1
        self._take(self._drained(best.nodes if best else self.batching.left[: self.rules.size or 1]))

    def _stuck(self, solution: Solution, drain: DrainPlan) -> set[str]:
        """Nodes that this batch does not empty, and that were not hopeless before."""
        return nodes_not_emptied(solution, drain, self.allowed) - self.hopeless

    def _drained(self, nodes: Sequence[str], *, room: bool = True) -> Solution:
        """room: whether others may make room, which is left until no batch can be emptied without that."""
        return self.growing.drained(nodes, [name for name in self.batching.left if name not in nodes], room=room)

    def _take(self, solution: Solution, drain: DrainPlan | None = None) -> None:
        self.batching.done(solution.scene.nodes, self.growing.take(solution, drain))

    def _proposals(self, trials: Sequence[_Trial]) -> Iterator[list[str]]:
        """Batches to try, each once, in the light of the trials made so far.

        Nodes that somebody could not leave are put off; then come smaller batches, and then what promises little.
        """
        often = {name for name, count in self._failures.items() if count >= _OFTEN}
        seen: set[tuple[str, ...]] = set()
        for reserved in (often, set[str]()):
            put_off, size = set(reserved), len(self.batching.proposal(reserved | self.hopeless))
            while size and (self._patience > 0 or not trials):
                nodes = self.batching.proposal(put_off | self.hopeless, size)
                if nodes and tuple(nodes) not in seen:
                    seen.add(tuple(nodes))
                    yield nodes
                    put_off |= trials[-1].put_off
                else:
                    put_off, size = set(reserved), size - 1


def _judged(solution: Solution, bound: Collection[str], *, short: bool) -> _Trial:
    """bound: VMs that migrate nowhere in any case. short: too little is left in reserve while they are away."""
    scene = solution.scene
    moving = {step.mover.id for step in solution.steps if step.mover.chosen}
    ways = (way for way in scene.ways.values() if isinstance(way, Mover) and way.key not in bound)
    stuck = [way.source for way in ways if way.id not in moving]
    tied = solution.prospects.keys() - {way.id for way in scene.ways.values() if isinstance(way, Mover)}
    stuck += [vm.node for vm in scene.residents.machines if vm.id in tied]
    waiting = {
        step.mover.id: step.mover.source
        for step in solution.steps
        if step.mover.newcomer is not None and step.node is None and step.mover.id not in scene.ways
    }
    away = [pod.pod for pod in scene.residents.pods if pod.id in waiting]
    kept = [pod["spec"]["nodeName"] for pod, _refusal in scene.cluster.budgets.overdrawn(away)]
    put_off = stuck or kept or waiting.values()
    return _Trial(scene.nodes, frozenset(put_off), (len(stuck), len(kept) + short, len(waiting)))

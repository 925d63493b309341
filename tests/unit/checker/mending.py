# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters, carried out in part, disturbed, mended, and held against the checker from there on.

    python -m unit.checker.mending --seed 7 --clusters 2000

Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import for_node, of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair

from checker.cluster import CarriedCluster
from checker.order import ByLot, Choice, MuchAtOnce, OneByOne, Order, anywhere
from checker.outline import outlined, waits_in_vain
from checker.replay import Replay
from checker.stuck import free_to_leave
from checker.violation import Fault, PlanFlaw
from unit.checker import clusters
from unit.checker.disturbances import Disturber, LateMachine

# So many moments of each plan.
MOMENTS = 4
_FAILS = 0.3
# Fields of a VMI's spec by which other pods matter to it.
_RULES = ("affinity", "topologySpreadConstraints")
_planned = lru_cache(maxsize=1)(clusters.planned)


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at the moment at which its plan is mended, after a disturbance. number: of its batch.

    node: for whose sake it is mended, None for the batch as a whole. failures: nodes to which migrations of VMs have
    failed, by title.
    """

    replay: Replay
    plan: Plan
    number: int
    node: str | None
    failures: Mapping[str, Sequence[str]]
    disturbance: str

    def mended(self) -> Plan:
        snapshot = from_plain(self.replay.look())
        return repair(self.plan, snapshot, node=self.node, failures=self.failures, ended=self.replay.ended)

    def asked(self, plan: Plan) -> set[str]:
        """Ids of actions of a mended plan that are still to begin, and that it answers for.

        Of several nodes each drain mends what is for its own sake: what is for the others' may be wrong meanwhile.
        """
        asked = plan if self.node is None else for_node(plan, self.node)
        return {action.id for action in asked.actions} - self.replay.ended - {action.id for action in self.replay.begun}


def moment(seed: int, *, whole: bool = False) -> Moment | None:
    """The same for the same seed; None if nothing is left to do. whole: all of the batch, whatever the dice say."""
    dice = random.Random(seed)
    lists, plan = _planned(seed // MOMENTS)
    lists = {**lists, "vms": [*lists["vms"]]}
    late = LateMachine.twin(lists, dice)
    replay = Replay(lists, plan, ByLot(dice.randrange), choice=anywhere(dice.randrange) if seed % 2 else None)
    replay.run(most=dice.randrange(len(plan.actions)))
    while _is_between(replay, plan):
        before = len(replay.ended)
        replay.run(most=before + 1)
        if len(replay.ended) == before:
            return None
    left = [action for action in plan.actions if action.id not in replay.ended and action.kind is not ActionKind.START]
    if not left:
        return None
    failures = dict(_failed(replay, dice))
    replay.look()
    away = {action.node for action in plan.actions if action.kind is ActionKind.MAINTAIN and action.id in replay.ended}
    disturbance = Disturber(replay.cluster, late, away, _spoken_for(replay, plan), dice).disturb()
    node = dice.choice(plan.batches[left[0].batch - 1]) if dice.random() < 0.5 else None
    return Moment(replay, plan, left[0].batch, None if whole else node, failures, disturbance)


def _is_between(replay: Replay, plan: Plan) -> bool:
    """Whether a node is just given back, or VMs of the batch before are still to start: nobody mends a plan then."""
    left = [action for action in plan.actions if action.id not in replay.ended]
    current = next((action.batch for action in left if action.kind is not ActionKind.START), 0)
    late = any(action.kind is ActionKind.START and action.batch < current for action in left)
    return late or any(action.kind is ActionKind.UNCORDON for action in replay.begun)


def _failed(replay: Replay, dice: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Some migrations come to nothing. So does what is done to a node, as who mends its plan empties it again."""
    for action in replay.begun:
        if action.kind is ActionKind.MAINTAIN:
            replay.fail(action)
        elif action.kind is ActionKind.MIGRATE and dice.random() < _FAILS:
            replay.fail(action)
            yield action.object.title, [str(action.target)]


def _spoken_for(replay: Replay, plan: Plan) -> set[str]:
    """Whom nobody disturbs: who is in flight; and who is shut down, which nothing tells from one that others end."""
    harmed = (action for action in plan.actions if action.kind in (ActionKind.STOP, ActionKind.RESTART))
    return {action.object.title for action in (*replay.begun, *harmed)}


@dataclass(slots=True)
class _Judge:
    """Who is blocked for good in a batch, and could leave when the others have left."""

    plan: Plan
    number: int
    found: list[PlanFlaw] = field(default_factory=list)

    def __call__(self, cluster: CarriedCluster, _batch: int) -> None:
        lasting = tuple(entry for entry in self.plan.blocked if not entry.passing and cluster.is_cordoned(entry.node))
        self.found += free_to_leave(cluster, replace(self.plan, blocked=lasting), self.number)


def flaws(seed: int, *, whole: bool = False) -> Iterator[PlanFlaw]:
    """What is wrong with the plan that is mended at a moment."""
    now = moment(seed, whole=whole)
    if now is None:
        return
    mended = now.mended()
    if found := waits_in_vain(mended):
        yield from found
        return
    yield from outlined(mended)
    plan, lots = of_batch(mended, mended.batches[now.number - 1][0]), [random.Random(lot).randrange for lot in range(3)]
    ways: list[tuple[Order, Choice | None]] = [
        (OneByOne(), None),
        (MuchAtOnce(), None),
        (ByLot(lots[0]), None),
        (MuchAtOnce(), anywhere(lots[1])),
        (ByLot(lots[2]), anywhere(lots[2])),
    ]
    for order, choice in ways:
        again = moment(seed, whole=whole)
        assert again is not None
        yield from _carried_out(again, plan, order, choice)


def _carried_out(now: Moment, plan: Plan, order: Order, choice: Choice | None) -> Iterator[PlanFlaw]:
    replay, judge = now.replay, _Judge(plan, now.number)
    unpromised = set(_unpromised(now, plan, roaming=choice is not None))
    known, one_by_one = len(replay.violations), isinstance(order, OneByOne)
    replay.follow(
        _emptied_first(plan, replay.ended) if one_by_one else plan,
        order,
        choice=choice,
        emptied=judge if one_by_one and now.node is None else None,
    )
    asked = now.asked(plan)
    replay.run()
    for flaw in replay.violations[known:]:
        if flaw.subject in asked and not (flaw.fault is Fault.NO_PLACE and flaw.subject in unpromised):
            yield flaw
    yield from judge.found


def _emptied_first(plan: Plan, ended: Collection[str]) -> Plan:
    """In an order in which all nodes of the batch are empty before one is maintained, and none is back before that.

    Who starts on one that is back already, by these ids of actions, is there by then.
    """
    turns = {ActionKind.MAINTAIN: 1, ActionKind.UNCORDON: 2, ActionKind.START: 2}
    back = {action.node for action in plan.actions if action.kind is ActionKind.UNCORDON and action.id in ended}

    def turn(action: Action) -> int:
        return 0 if action.kind is ActionKind.START and action.node in back else turns.get(action.kind, 0)

    return replace(plan, actions=tuple(sorted(plan.actions, key=turn)))


def _unpromised(now: Moment, plan: Plan, *, roaming: bool) -> Iterator[str]:
    """Ids of those for whom a mended plan promises no place.

    Where VMs start again is not planned anew. If pods come elsewhere than expected, VMs that go as planned have room
    all the same, and nothing else; for all others the plan is mended once more. Where pods of one node come back
    depends on where those of the others do, which is as it was planned before as long as only one node's are mended.
    """
    before = {(action.id, action.target) for action in now.plan.actions}
    simple = {title(vmi) for vmi in now.replay.look()["vmis"] if not {*vmi["spec"]}.intersection(_RULES)}
    alone = now.node is None or len(plan.batches[now.number - 1]) == 1
    for action in plan.actions:
        as_before = (action.id, action.target) in before
        steady = as_before and action.object.title in simple
        expected = alone or as_before or action.kind is not ActionKind.EVICT
        if action.kind is ActionKind.START or (roaming and not steady) or not expected:
            yield action.id


def faults(seeds: Iterable[int]) -> Iterator[str]:
    """What is wrong with the plans that are mended for these clusters, each a line."""
    for seed in (cluster * MOMENTS + number for cluster in seeds for number in range(MOMENTS)):
        for flaw in dict.fromkeys(flaws(seed)):
            now = moment(seed)
            told = f"{now.disturbance}; for {now.node or 'all'}" if now else ""
            yield f"moment {seed} ({told}), {flaw.fault.value}: {flaw.sentence}"


if __name__ == "__main__":
    sys.exit(clusters.search(__doc__, faults))

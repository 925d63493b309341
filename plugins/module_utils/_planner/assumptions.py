# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of whom the scheduler places, whether the node that a plan tells depends on more than the plan.

It may depend on who comes first of those in flight together. All their orders cannot be looked at, so the ends are: as
if nobody of them had moved yet, as if all had, and as if all pods that could were on that very node. A node is sure
only if the least points it gets are more than the most that any other node gets.

For each of those who are placed that is three looks over the nodes at most, however many others there are; what others
are tied to by waits is put in its place before each look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Options
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

IN_ORDER = (
    "others in flight beside it come to their nodes in the order of the plan, by which the scheduler takes this one"
)
AS_BEFORE = "what came before in the plan has come where that says, by which the scheduler takes this one"
SAMPLED = "the scheduler compares all nodes that fit, although in a cluster of this size it may look at some only"
# So many nodes are all compared, and of more at least so many, and so many of a hundred.
_FEW, _LEAST_PERCENT = 100, 5
_MOST_POINTS = 2**63 - 1


@dataclass(slots=True)
class _Landing:
    """least: points of the node at its worst. most: of any other one at its best, -1 if none fits. fits: who ever did.

    choices: numbers of the nodes among which it goes by lot in any case, the one foretold among them. is_bound: no
    other node may ever take it, whoever is there.
    """

    node: int
    choices: Collection[int]
    fits: BoolArray
    is_bound: bool
    least: int = _MOST_POINTS
    most: int = -1
    widest: int = 0

    @classmethod
    def begin(cls, board: Board, pod: Pod, node: str, choices: Collection[str] = ()) -> _Landing:
        numbers = board.state.nodes.index
        known, reach = {numbers[name] for name in (node, *choices)}, board.reach(pod)
        return cls(numbers[node], known, board.state.nodes.none(), is_bound=int(reach.sum()) < 2)

    def look(self, options: Options) -> None:
        points = options.points(len(self.fits))
        self.fits |= points >= 0
        self.least = min(self.least, int(points[self.node]))
        points[list(self.choices)] = -1
        self.most = max(self.most, int(points.max()))
        self.widest = max(self.widest, len(options))

    @property
    def has_rivals(self) -> bool:
        """Whether another node was seen to fit."""
        return self.most >= 0

    @property
    def is_sure(self) -> bool:
        return self.is_bound or self.least > self.most

    def phrases(self, *, shaken: bool) -> tuple[str, ...]:
        sampled = self.widest > compared(len(self.fits))
        told = {IN_ORDER: not self.is_sure, AS_BEFORE: shaken and not self.is_bound, SAMPLED: sampled}
        return tuple(phrase for phrase, holds in told.items() if holds)


def assumptions(
    board: Board,
    steps: Sequence[Step],
    waits: Mapping[str, Collection[str]],
    profile: Profile,
    *,
    shaken: bool = False,
) -> dict[str, tuple[str, ...]]:
    """What is taken for granted of the nodes that the scheduler chooses, phrases by ids of movers; of most nothing.

    steps: in an order in which nobody comes before what it waits for, at whose end the board is, and is left. waits: as
    of `find_waits`. shaken: whether something of the same kind is taken for granted of what was planned before.
    """
    landings = {
        step.mover.id: _Landing.begin(board, step.mover.newcomer, step.node, step.choices)
        for step in steps
        if step.node is not None and step.mover.newcomer is not None and not step.mover.chosen
    }
    if landings:
        _Looks(board, steps, waits, profile).take(landings)
    told = {name: landing.phrases(shaken=shaken) for name, landing in landings.items()}
    return {name: phrases for name, phrases in told.items() if phrases}


class _Looks:
    def __init__(
        self, board: Board, steps: Sequence[Step], waits: Mapping[str, Collection[str]], profile: Profile
    ) -> None:
        self._board, self._profile = board, profile
        self._steps = {step.mover.id: step for step in steps}
        self._ahead: dict[str, set[str]] = {}
        self._behind: dict[str, set[str]] = {name: set() for name in self._steps}
        for name in self._steps:
            direct = [other for other in waits.get(name, ()) if other in self._ahead]
            self._ahead[name] = set(direct).union(*(self._ahead[other] for other in direct))
            for other in self._ahead[name]:
                self._behind[other].add(name)

    def take(self, landings: Mapping[str, _Landing]) -> None:
        self._put(self._steps, Stage.BEFORE)
        for name, landing in landings.items():
            self._look(name, landing, self._ahead[name], Stage.AFTER, Stage.BEFORE)
        self._put(self._steps, Stage.AFTER)
        for name, landing in landings.items():
            self._look(name, landing, self._behind[name], Stage.BEFORE, Stage.AFTER)
        roaming = [name for name, landing in landings.items() if landing.has_rivals]
        for name, landing in landings.items():
            if landing.is_sure:
                self._look_amid(name, landings, roaming)

    def _look(self, name: str, landing: _Landing, tied: Collection[str], stage: Stage, others: Stage) -> None:
        """As if those that it is tied to were at one stage and all others at another, where they are."""
        self._put((name,), Stage.BEFORE)
        self._put(tied, stage)
        landing.look(self._board.options(self._steps[name].mover, self._profile))
        self._put((*tied, name), others)

    def _look_amid(self, name: str, landings: Mapping[str, _Landing], roaming: Iterable[str]) -> None:
        """As if all were on its node that may come there meanwhile, though they are expected elsewhere."""
        landing, tied = landings[name], {*self._ahead[name], *self._behind[name], name}
        guests = [
            other
            for other in roaming
            if other not in tied and landings[other].node != landing.node and landings[other].fits[landing.node]
        ]
        if guests:
            for other in guests:
                self._board.put(self._steps[other].mover, Stage.AFTER, self._steps[name].node)
            self._look(name, landing, self._behind[name], Stage.BEFORE, Stage.AFTER)
            self._put(guests, Stage.AFTER)

    def _put(self, names: Iterable[str], stage: Stage) -> None:
        for name in names:
            self._board.put(self._steps[name].mover, stage, self._steps[name].node)


def assumptions_of_starts(
    board: Board, started: Sequence[tuple[Pod, str]], profile: Profile, *, shaken: bool = False
) -> list[tuple[str, ...]]:
    """The same of pods that are on their nodes by now, and have come there in any order since the nodes were back."""
    state = board.state
    landings = [_Landing.begin(board, pod, node) for pod, node in started]
    for pod, _node in started:
        state.remove(pod.occupant.key)
    for (pod, _node), landing in zip(started, landings, strict=True):
        landing.look(board.ranked(pod, profile))
    for pod, node in started:
        state.add(pod.occupant, node)
    for (pod, node), landing in zip(started, landings, strict=True):
        state.remove(pod.occupant.key)
        landing.look(board.ranked(pod, profile))
        state.add(pod.occupant, node)
    return [landing.phrases(shaken=shaken) for landing in landings]


def compared(nodes: int) -> int:
    """How many nodes that fit the scheduler compares in a cluster of so many.

    Follows numFeasibleNodesToFind in pkg/scheduler/schedule_one.go, with the percentage that is the default.
    """
    return nodes if nodes < _FEW else max(_FEW, nodes * max(_LEAST_PERCENT, 50 - nodes // 125) // 100)

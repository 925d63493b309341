# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find who gains by moving, one after the other: the mover with the largest gain first, then whoever has to follow it.

A pod or VM follows when the move takes away what its own required rules ask for, as with required pod affinity. If one
of them could not follow, or all together would gain nothing, nobody of the group moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Option
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    MAX_SCORE,
    FilterPlugin,
    PluginError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.inter_pod_affinity import (
    InterPodAffinity,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_affinity import NodeAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.inter_pod_affinity_score import (
    own_wishes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_affinity_score import (
    NodeAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.pod_topology_spread_score import (
    PodTopologySpreadScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile, Scorers
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.taint_toleration_score import (
    TaintTolerationScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

# The rules that bind a pod only when it is placed, and that others can break later by moving away or coming near.
_PLACING: tuple[FilterPlugin, ...] = (NodeAffinity(), InterPodAffinity())


@dataclass(frozen=True, slots=True)
class Change:
    """A step with what it gains, in points of `soft_points`, and a sentence on why it is made."""

    step: Step
    gain: int
    why: str


class Improvement:
    """`movers` in a fixed order, all at their source on the board.

    is_cut: whether some stay who would gain, as all who have to move with them are too many.
    """

    def __init__(self, board: Board, movers: Sequence[Mover], profile: Profile) -> None:
        self._board = board
        # Who may go nowhere only keeps others from leaving it.
        self._mobile = [mover for mover in movers if mover.only is None or mover.only]
        self._bound = [(mover, keys) for mover in movers if (keys := _nearness(mover))]
        self._profile = profile
        self._moved: set[str] = set()
        self.is_cut = False

    def find(self, limit: int) -> list[Change]:
        """At most so many changes, legal in their order. Everybody moves once at most."""
        changes: list[Change] = []
        for mover in self._mobile:
            if len(changes) >= limit:
                return changes
            if self._displaced(mover):
                changes += self._group(mover, "Its required rules do not hold where it is.", limit - len(changes))
        found = True
        while found:
            found = False
            for mover in self._by_gain():
                if len(changes) >= limit:
                    return changes
                group = self._group(
                    mover, "Its preferred rules are met better there.", limit - len(changes), gainful=True
                )
                changes += group
                found = found or bool(group)
        return changes

    def _by_gain(self) -> list[Mover]:
        """Who would gain by moving now, the largest gain first."""
        gains = []
        for mover in self._mobile:
            best = self._best(mover) if mover.id not in self._moved else None
            if best is not None and best[1] > 0:
                gains.append((-best[1], mover.key, mover))
        return [mover for _gain, _key, mover in sorted(gains, key=lambda entry: entry[:2])]

    def _group(self, mover: Mover, why: str, limit: int, *, gainful: bool = False) -> list[Change]:
        """A mover and its followers, moved; nobody if they are too many, cannot all move, or gain nothing."""
        if mover.id in self._moved:
            return []
        changes = self._place(mover, why)
        if changes is None:
            return []
        gain = sum(change.gain for change in changes)
        is_gain = not gainful or (changes[0].gain > 0 and gain > 0)
        if is_gain and len(changes) <= limit:
            return changes
        self.is_cut = self.is_cut or is_gain
        self._take_back(changes)
        return []

    def _place(self, mover: Mover, why: str) -> list[Change] | None:
        """Move somebody to the best place, and whoever has to follow. None, and all as before, if one cannot."""
        best = self._best(mover)
        if best is None:
            return None
        step, gain = best
        neighbours = [other for other in self._neighbours(mover) if not self._displaced(other)]
        self._board.put(mover, Stage.AFTER, step.node)
        self._moved.add(mover.id)
        changes = [Change(step, gain, why)]
        for follower in neighbours:
            if follower.id not in self._moved and self._displaced(follower):
                more = self._place(follower, f"It has to follow {mover.key}.")
                if more is None:
                    self._take_back(changes)
                    return None
                changes += more
        return changes

    def _take_back(self, changes: Sequence[Change]) -> None:
        for change in reversed(changes):
            self._board.put(change.step.mover, Stage.BEFORE)
            self._moved.discard(change.step.mover.id)

    def _best(self, mover: Mover) -> tuple[Step, int] | None:
        """Where a mover at its source goes to, and its gain there; None if it can go nowhere.

        A VM goes where it gains most. A pod goes where the scheduler puts it: of nodes that are equally good for the
        scheduler, the worst for the pod counts.
        """
        options: Sequence[Option] = self._board.options(mover, self._profile)
        if mover.chosen:
            options = [option for option in options if not option.uneven]
        else:
            options = [option for option in options if option.score == options[0].score]
        gains = self._gains(mover, options)
        if not gains:
            return None
        gain = max(gains) if mover.chosen else min(gains)
        option = options[gains.index(gain)]
        return Step(mover, option, len(options), (option.node,)), gain

    def _gains(self, mover: Mover, options: Sequence[Option]) -> list[int]:
        """What a mover gains on each of the nodes. Nobody gains what cannot be reckoned."""
        if mover.newcomer is None or not options:
            return []
        state = self._board.state
        numbers = [state.nodes.index[name] for name in (*(option.node for option in options), mover.source)]
        with self._absent(mover):
            try:
                points = soft_points(mover.newcomer, state, np.array(numbers))
            except PluginError:
                return []
        return [int(there) - int(points[-1]) for there in points[:-1]]

    def _displaced(self, mover: Mover) -> bool:
        """Whether somebody at its source could not be placed there any more, by the rules that bind only then."""
        if mover.newcomer is None:
            return False
        with self._absent(mover):
            try:
                verdict = evaluate(mover.newcomer, self._board.state, _PLACING)
            except PluginError:
                return False
        return not verdict.fits[self._board.state.nodes.index[mover.source]]

    def _neighbours(self, mover: Mover) -> Iterator[Mover]:
        """Those at their source that have to be near something, and share a domain with a mover."""
        nodes = self._board.state.nodes
        here = nodes.nodes[nodes.index[mover.source]].labels
        for other, keys in self._bound:
            if other.id in self._moved or other is mover:
                continue
            there = nodes.nodes[nodes.index[other.source]].labels
            if any(key in here and there.get(key) == here[key] for key in keys):
                yield other

    @contextmanager
    def _absent(self, mover: Mover) -> Iterator[None]:
        """As if a mover at its source were not there, within a `with` statement."""
        self._board.put(mover, Stage.AFTER)
        try:
            yield
        finally:
            self._board.put(mover, Stage.BEFORE)


def _nearness(mover: Mover) -> list[str]:
    """Keys of the labels whose values a mover has to share with others."""
    newcomer = mover.newcomer
    return [] if newcomer is None else [term.topology_key for term in newcomer.occupant.affinity.required]


class OwnWishes:
    """The part of InterPodAffinity that is the pod's own."""

    name = "OwnWishes"

    def score(self, pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray | None:
        wishes = own_wishes(pod, state)[nodes]
        least, most = int(wishes.min()), int(wishes.max())
        if least == most:
            return None
        points: IntArray = MAX_SCORE * (wishes - least) // (most - least)
        return points


def soft_points(pod: Pod, state: ClusterState, nodes: IntArray) -> IntArray:
    """How well each of the nodes, by their numbers, meets what the pod itself would rather have.

    In the points and weights of kube-scheduler's scores, which compare with each other only. Its preferred node labels,
    preferred neighbours and soft spread constraints count, and taints that are to be avoided. How full nodes are, and
    what other pods wish about this one, does not: nobody is moved for that. Raises `PluginError`.
    """
    total = np.zeros(len(nodes), dtype=np.int64)
    for weight, scorer in _scorers(pod):
        found = scorer.score(pod, state, nodes)
        if found is not None:
            total += weight * found
    return total


def _scorers(pod: Pod) -> Scorers:
    """Weights as in scores/registry.py. Without a soft constraint of its own, a pod is spread by the scheduler's."""
    spread = ((2, PodTopologySpreadScore()),) if any(not entry.hard for entry in pod.spread) else ()
    return (3, TaintTolerationScore()), (2, NodeAffinityScore()), (2, OwnWishes()), *spread

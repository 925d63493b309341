# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order the actions of a plan begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from checker.cluster import CarriedCluster

_AFTERWARDS = (ActionKind.MAINTAIN, ActionKind.UNCORDON)
# A number from 0, below the given one, by lot: `random.Random(seed).randrange`.
Lot = Callable[[int], int]
# Where a pod is made again: one of the nodes that fit it in a cluster.
Choice = Callable[[CarriedCluster, Pod, Sequence[str]], str]


def anywhere(lot: Lot) -> Choice:
    return lambda _cluster, _pod, fits: fits[lot(len(fits))]


def by_points(lot: Lot, profile: Profile) -> Choice:
    """As kube-scheduler does it: of those with the most points any."""
    return lambda cluster, pod, fits: (best := cluster.best_nodes(pod, profile) or fits)[lot(len(best))]


def crowding(node: str) -> Choice:
    """Each pod comes to this node that may."""
    return lambda _cluster, _pod, fits: node if node in fits else fits[0]


class Order(Protocol):
    """Each time one begins, or ends. Both sequences are in the order of the plan or of beginning; one has entries."""

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        """One of those who may begin, or who may end."""

    def hurries(self) -> bool:
        """Whether the scheduler places a pod before the one that it replaces is gone."""


class MuchAtOnce:
    """Nobody ends as long as somebody may begin."""

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        return (able or begun)[0]

    def hurries(self) -> bool:
        return True


class OneByOne:
    """Nobody begins before the others have ended."""

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        return (begun or able)[0]

    def hurries(self) -> bool:
        return True


class ByLot:
    """How much is begun at once is drawn, too."""

    def __init__(self, lot: Lot) -> None:
        self._lot = lot
        self._haste = 1 + lot(3)

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        begins = able and (not begun or self._lot(4) < self._haste)
        chosen = able if begins else begun
        return chosen[self._lot(len(chosen))]

    def hurries(self) -> bool:
        return bool(self._lot(2))


class DrainedTogether:
    """As another order, but no node of a batch is maintained before all that leaves the batch has left."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        early = [[action for action in actions if action.kind not in _AFTERWARDS] for actions in (able, begun)]
        return self._order.next(*early) if any(early) else self._order.next(able, begun)

    def hurries(self) -> bool:
        return self._order.hurries()


class Holding:
    """As another order, but somebody is late: one action begins, or ends, only after a second one has begun."""

    def __init__(self, order: Order, late: str, first: str, *, begins: bool) -> None:
        """begins: the late one begins at once, and ends late."""
        self._order, self._late, self._first, self._begins = order, late, first, begins
        self._free = False

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        chosen = self._next(able, begun)
        self._free = self._free or chosen.id == self._first
        return chosen

    def hurries(self) -> bool:
        return self._order.hurries()

    def _next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        wanted = [action for action in able if self._begins and action.id == self._late]
        wanted += [action for action in able if action.id == self._first]
        if self._free:
            return self._order.next(able, begun)
        if wanted:
            return wanted[0]
        others = [[action for action in actions if action.id != self._late] for actions in (able, begun)]
        return self._order.next(*others) if any(others) else self._order.next(able, begun)


class InTheThickOfIt:
    """One action, and then another one, while all others are in flight that may be, or when these are over."""

    def __init__(self, first: str, second: str, *, in_flight: bool, begins: bool) -> None:
        """begins: the second one begins at once, and ends last."""
        self._first, self._second = first, second
        self._in_flight, self._begins = in_flight, begins

    def next(self, able: Sequence[Action], begun: Sequence[Action]) -> Action:
        others = [[a for a in actions if a.id not in (self._first, self._second)] for actions in (begun, able)]
        second = [action for action in able if action.id == self._second]
        turns: list[Sequence[Action]] = [
            *((second,) if self._begins else ()),
            *(others[1:] if self._in_flight else others),
            [action for action in (*able, *begun) if action.id == self._first],
            second,
            others[0],
            begun,
        ]
        return next(filter(None, turns))[0]

    def hurries(self) -> bool:
        return True

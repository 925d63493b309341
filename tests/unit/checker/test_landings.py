# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a plan takes nothing for granted the scheduler comes to the same, whoever is first; and often not elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import PLACED
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from checker.order import ByLot, DrainedTogether, MuchAtOnce, Order, by_points
from checker.replay import Replay
from unit.checker.clusters import planned

ORDERS = 6
# Whether something is taken for granted of a node, and whether another one was taken in one of the orders.
Counts = Counter[tuple[bool, bool]]


def landings(seeds: Iterable[int]) -> tuple[Counts, list[str]]:
    """How many there are, and those of which nothing is taken for granted and that come elsewhere."""
    counts, astray = Counts(), list[str]()
    for seed in seeds:
        lists, plan = planned(seed)
        placed = [action for action in plan.actions if action.kind in PLACED and action.target is not None]
        elsewhere = set[str]()
        for number in range(ORDERS):
            lot = random.Random(number).randrange
            order: Order = ByLot(lot) if number else MuchAtOnce()
            replay = Replay(lists, plan, DrainedTogether(order), choice=by_points(lot, Profile.LOW_NODE_UTILIZATION))
            replay.run()
            elsewhere |= {action.id for action in placed if replay.came.get(action.id, action.target) != action.target}
        counts.update((bool(action.assumed), action.id in elsewhere) for action in placed)
        astray += [f"cluster {seed}: {action.id}" for action in placed if action.id in elsewhere and not action.assumed]
    return counts, astray


def test_landings_of_a_few_clusters() -> None:
    counts, astray = landings([0, 5, 25, 29, 35, 39])
    assert astray == []
    assert counts[True, True] > counts[True, False] > 0
    assert counts[False, False] > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 120, 20))
def test_landings_of_many_clusters(first: int) -> None:
    assert landings(range(first, first + 20))[1] == []

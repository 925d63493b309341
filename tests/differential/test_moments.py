# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a plan's pods come at their moments, with others in flight, kube-scheduler would have them come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from differential.moments import Moment, carried, disagreements
from unit.checker.clusters import planned

ORDERS = 3
FEW, MANY, CHUNK = 16, 264, 24


def moments(seeds: Iterable[int]) -> list[Moment]:
    """Of the plans of these clusters, in some orders; all that is told without a reservation comes true in them."""
    found = [carried(seed, ORDERS, planned) for seed in seeds]
    assert [astray for replays in found for astray in replays.astray] == []
    return [moment for replays in found for moment in replays.moments]


def test_the_scheduler_agrees_with_every_moment() -> None:
    found = moments(range(FEW))
    assert list(disagreements(found)) == []
    for few in (
        [moment for moment in found if moment.pinned],
        [moment for moment in found if moment.chosen and moment.node],
        [moment for moment in found if moment.node is None],
    ):
        assert len(few) > 50


def test_a_moment_that_is_wrong_is_seen() -> None:
    right = carried(0, 1, planned).moments
    migrated = next(moment for moment in right if moment.pinned and moment.node)
    placed = next(moment for moment in right if moment.chosen and moment.node)
    away = [replace(migrated, node=None), replace(migrated, node="n0"), replace(placed, node="nowhere")]
    assert migrated.node != "n0"
    assert [line.partition(": ")[2].split()[:2] for line in disagreements(away)] == [
        [migrated.node, "can"],
        ["it", "comes"],
        ["it", "comes"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, MANY, CHUNK))
def test_the_scheduler_agrees_with_every_moment_of_many_clusters(first: int) -> None:
    assert list(disagreements(moments(range(first, first + CHUNK)))) == []

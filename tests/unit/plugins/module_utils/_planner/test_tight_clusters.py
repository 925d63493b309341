# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans on small clusters that are nearly full: each is carried out, and asked whether a better one was missed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import QuantityError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    plan_drain,
    plan_drains,
    prepare,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import search
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._planner.replay import Replay
from unit.plugins.module_utils._planner.tight import tight_cluster

ORDERS = 3
POLICIES = compile_rules(
    [{"selector": {"app": "g0"}, "policy": "restart"}, {"selector": {"app": "g1"}, "policy": "stop"}]
)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(40))
def test_what_is_planned_is_legal_at_its_moment_and_what_is_stuck_is_stuck(seed: int) -> None:
    lists = tight_cluster(seed, nodes=5, machines=11, pods=4)
    plan = plan_drain(lists, ["n0", "n1"][: 1 + seed % 2], policies=POLICIES if seed % 3 == 0 else ())
    for order in range(ORDERS):
        replay = Replay(lists, plan)
        replay.run(random.Random(order))
        assert replay.wrong == []
        for machine in plan.stuck:
            if machine.target_node is None and machine.wave is None:
                assert replay.unpinned_message(machine) == machine.message != ""


# In the first ones VMs have to go before pods, or to fuller nodes, for all to have a place.
@pytest.mark.campaign
@pytest.mark.parametrize("seed", [3, 14, 23, 77, 237, *range(400, 430)])
def test_the_scheduler_chooses_for_pods_what_is_foretold(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    replay = Replay(lists, plan_drain(lists, ["n0", "n1"][: 1 + seed % 2]))
    replay.run_as_foretold()
    assert replay.wrong == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [133, 373])
def test_vms_that_are_spread_may_be_anywhere_on_their_way(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    plan = plan_drain(lists, ["n0", "n1"])
    for order in range(60):
        replay = Replay(lists, plan)
        replay.run(random.Random(order))
        assert replay.wrong == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_batches_are_planned_as_if_each_were_the_only_one(seed: int) -> None:
    lists = tight_cluster(seed, nodes=5, machines=11, pods=6)
    batches = [["n0"], ["n1", "n2"], ["n3"], ["n0"]]
    assert plan_drains(Ground(Snapshot(lists)), batches, policies=POLICIES) == [
        plan_drain(lists, nodes, policies=POLICIES) for nodes in batches
    ]


def test_a_plan_that_fails_leaves_the_cluster_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(_solution: drain.Solution) -> None:
        raise QuantityError("a quantity that is none")

    lists = tight_cluster(3)
    ground = Ground(Snapshot(lists))
    with monkeypatch.context() as broken:
        broken.setattr(drain, "drain_of", failed)
        with pytest.raises(QuantityError):
            plan_drains(ground, [["n0", "n1"]])
    assert plan_drains(ground, [["n0"]]) == [plan_drain(lists, ["n0"])]


def test_the_same_cluster_gives_the_same_plan() -> None:
    first, second = (plan_drain(tight_cluster(3), ["n0", "n1"]) for _time in range(2))
    assert first == second


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 130))
def test_no_better_plan_is_missed(seed: int) -> None:
    scene = prepare(Ground(Snapshot(tight_cluster(seed, machines=8, pods=0))), ["n0"], (), (), {})
    movers = [way for way in scene.ways.values() if isinstance(way, Mover)]
    found = search(scene.board, movers, Profile.LOW_NODE_UTILIZATION)
    assert len(found.stuck) == fewest_stuck(scene.board, movers)


def fewest_stuck(board: Board, left: Sequence[Mover]) -> int:
    """By trying every order and every node."""
    least = len(left)
    for mover in left:
        others = [other for other in left if other is not mover]
        for option in board.options(mover, Profile.NO_SCORING):
            board.put(mover, Stage.AFTER, option.node)
            least = min(least, fewest_stuck(board, others))
            board.put(mover, Stage.BEFORE)
            if least == 0:
                return 0
    return least

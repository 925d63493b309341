# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demonstration application, as recorded from a running cluster: what is known of its drains."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan, Outcome, PodOutcome
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

from unit.plugins.module_utils._planner.replay import Replay
from unit.plugins.module_utils._planner.scene import Json, Lists

RECORDED: Lists = json.loads(Path(__file__).with_name("customapp.json").read_text())
STOP = [{"selector": {"app": "mssql2016"}, "policy": "stop"}]
# Whoever has a node gets it by the zone's rules; the other nodes of high performance are in other zones.
NO_NODE = (
    "0/6 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules, "
    "3 node(s) didn't match Pod's node affinity/selector."
)


def plan(*nodes: str, lists: Lists = RECORDED, policies: Sequence[Json] = (), **options: Any) -> DrainPlan:
    found = plan_drain(lists, nodes, policies=compile_rules(policies), **options)
    for seed in range(3):
        replay = Replay(lists, found)
        replay.run(random.Random(seed))
        assert replay.wrong == []
        for machine in found.stuck:
            if machine.outcome is Outcome.STAYS:
                assert replay.unpinned_message(machine) == machine.message
    return found


@pytest.mark.parametrize(
    ("node", "large"),
    [("kni-worker", "kni-worker2"), ("kni-worker3", "kni-worker4"), ("kni-worker5", "kni-worker6")],
)
def test_cache_and_black_box_go_together_to_the_larger_node_of_their_zone(node: str, large: str) -> None:
    found = plan(node)
    (move,), (pod,) = found.moves, found.pods
    assert found.feasible
    assert found.message == f"{node} can be drained in 2 waves: 1 VM migrates, 1 pod is evicted."
    assert (move.name[:8], move.target_node, move.wave) == ("blackbox", large, 2)
    assert move.why == "no other node fits, once others have left"
    assert (pod.name[:13], pod.target_node, pod.wave, pod.outcome) == ("varnish-cache", large, 1, PodOutcome.MOVES)


@pytest.mark.parametrize("node", ["kni-worker2", "kni-worker4", "kni-worker6"])
def test_a_database_has_no_other_node(node: str) -> None:
    found = plan(node)
    (database,) = found.stuck
    assert not found.feasible
    assert database.outcome is Outcome.STAYS
    assert database.message == NO_NODE
    assert found.message == f"{node} cannot be drained: VM {_title(database)} cannot leave ({NO_NODE.rstrip('.')})."
    assert set(database.reasons) == {entry["metadata"]["name"] for entry in RECORDED["nodes"]}


def test_a_database_cannot_be_restarted_elsewhere_either() -> None:
    found = plan("kni-worker2", policies=[{"policy": "restart"}])
    assert not found.feasible
    assert (
        found.stuck[0].why == "It cannot be migrated: no node fits. Nor can it restart: no node would fit then either."
    )


def test_a_database_stops_until_its_node_returns() -> None:
    found = plan("kni-worker2", policies=STOP)
    (database,) = found.stuck
    assert found.feasible
    assert found.message == "kni-worker2 can be drained in 1 wave: 1 VM stops."
    assert (database.outcome, database.wave, database.target_node) == (Outcome.STOPS, 1, None)
    # What is made in its stead waits, for the same reasons.
    assert database.message == NO_NODE


def test_without_its_rules_a_database_joins_another_one() -> None:
    lists = copy.deepcopy(RECORDED)
    for item in (*lists["vmis"], *lists["pods"]):
        if item["metadata"]["labels"]["app"] == "mssql2016":
            item["spec"]["affinity"].pop("podAntiAffinity")
    found = plan("kni-worker2", lists=lists)
    (move,) = found.moves
    assert found.feasible
    assert move.target_node in ("kni-worker4", "kni-worker6")
    assert any(
        vmi["status"]["nodeName"] == move.target_node and vmi["metadata"]["labels"]["app"] == "mssql2016"
        for vmi in lists["vmis"]
    )


def test_a_whole_zone_leaves_its_black_box_without_a_cache() -> None:
    found = plan("kni-worker", "kni-worker2", policies=STOP)
    (cache,) = (pod for pod in found.pods if pod.name.startswith("varnish"))
    assert not found.feasible
    assert cache.outcome is PodOutcome.WAITS
    assert "didn't match pod anti-affinity rules" in cache.message
    assert [machine.outcome for machine in found.stuck] == [Outcome.STAYS, Outcome.STOPS]


def _title(item: Any) -> str:
    return f"{item.namespace}/{item.name}"

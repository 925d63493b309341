# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a reason to move moves, takes along who depends on it, and nobody else does."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import is_ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import rebalance
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import (
    RebalancingPlan,
    plan_rebalance,
)

from checker.check import violations
from unit.plugins.module_utils._kubevirt.machines import kubevirt
from unit.plugins.module_utils._planner.scene import HOST, ZONE, Json, Lists, Scene, apart, near, node

RECORDED: Lists = json.loads(Path(__file__).with_name("customapp.json").read_text())
SCHEMA = json.loads((Path(__file__).parents[5] / "docs/schemas/maintenance-plan.json").read_text())
AT_HOME = "Every pod and virtual machine that can be moved is where its rules want it."
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def displaced(*moves: tuple[str, str]) -> Lists:
    """The application after a drain of each first node, when cache and black box have gone to the second."""
    lists = copy.deepcopy(RECORDED)
    for source, target in moves:
        for pod in lists["pods"]:
            if pod["spec"].get("nodeName") == source and pod["metadata"].get("labels", {}).get("app"):
                pod["spec"]["nodeName"] = target
        for vmi in lists["vmis"]:
            if vmi["status"]["nodeName"] == source:
                vmi["status"]["nodeName"] = target
    return lists


def summary(plan: RebalancingPlan) -> list[tuple[str, str, str, int]]:
    return [(move.name.partition("-")[0][:8], move.source_node, move.target_node, move.wave) for move in plan.moves]


def rather(key: str, weight: int = 10) -> Json:
    """Preferred nodes: those with a label."""
    preference = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    return {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": preference}]}}


def plan(scene: Scene, max_moves: int = 20) -> RebalancingPlan:
    before = copy.deepcopy(scene.lists)
    found = plan_rebalance(from_plain(scene.lists), max_moves=max_moves)
    assert scene.lists == before
    assert found == plan_rebalance(from_plain(scene.lists), max_moves=max_moves)
    return found


def test_nobody_moves_who_is_at_home() -> None:
    found = plan_rebalance(from_plain(RECORDED), max_moves=20)
    assert (found.moves, found.message) == ((), AT_HOME)


def test_caches_go_home_and_black_boxes_follow() -> None:
    found = plan_rebalance(
        from_plain(displaced(("kni-worker", "kni-worker2"), ("kni-worker5", "kni-worker6"))), max_moves=20
    )
    assert sorted(summary(found)) == [
        ("blackbox", "kni-worker2", "kni-worker", 2),
        ("blackbox", "kni-worker6", "kni-worker5", 2),
        ("varnish", "kni-worker2", "kni-worker", 1),
        ("varnish", "kni-worker6", "kni-worker5", 1),
    ]
    assert [move.gain for move in found.moves] == [200, 200, 0, 0]
    assert found.moves[2].why.startswith("It has to follow customapp/varnish-cache-")
    assert found.message == "2 VMs migrate, 2 pods are evicted."


@pytest.mark.parametrize(("most", "moves"), [(1, 0), (2, 2), (3, 2), (4, 4)])
def test_no_one_moves_without_its_followers(most: int, moves: int) -> None:
    lists = displaced(("kni-worker", "kni-worker2"), ("kni-worker5", "kni-worker6"))
    found = plan_rebalance(from_plain(lists), max_moves=most)
    assert len(found.moves) == moves
    if moves:
        assert found.message.endswith("; as no more moves are allowed, there may be more to do.")
    else:
        assert found.message == "Nothing moves: who gains by it has to move with others, and these are more than 1."


def test_a_cache_stays_whose_black_box_cannot_follow() -> None:
    lists = displaced(("kni-worker", "kni-worker2"), ("kni-worker5", "kni-worker6"))
    reason = {"type": "LiveMigratable", "status": "False", "reason": "InterfaceNotLiveMigratable"}
    for vmi in lists["vmis"]:
        if vmi["status"]["nodeName"] == "kni-worker2":
            vmi["status"]["conditions"] = [reason]
    assert {move.source_node for move in plan_rebalance(from_plain(lists), max_moves=20).moves} == {"kni-worker6"}


def test_who_stands_where_its_required_rules_do_not_hold_goes_where_they_do() -> None:
    scene = Scene(node("n1"), node("n2"), node("n3"))
    scene.pod("cache-1", "n2")
    scene.vm("box-1", "n1", rules={"affinity": near(HOST, "cache")})
    (move,) = plan(scene).moves
    assert (move.name, move.target_node, move.why) == ("box-1", "n2", "Its required rules do not hold where it is.")


def test_a_machine_goes_to_the_node_it_prefers_most() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"), node("n3", fast="yes", near="yes"))
    affinity: Any = rather("fast")
    affinity["nodeAffinity"][PREFERRED] += rather("near")["nodeAffinity"][PREFERRED]
    scene.vm("db", "n1", rules={"affinity": affinity})
    (move,) = plan(scene).moves
    assert (move.kind, move.target_node, move.gain) == ("VirtualMachineInstance", "n3", 200)


def test_required_rules_forbid_what_is_preferred() -> None:
    scene = Scene(node("n1", "a"), node("n2", "b", fast="yes"))
    scene.vm("db-2", "n2")
    scene.vm("db-1", "n1", rules={"affinity": {**rather("fast"), **apart(ZONE, "db")}})
    assert plan(scene).moves == ()


def test_a_cordoned_node_is_no_home() -> None:
    scene = Scene(node("n1"), node("n2", cordoned=True, fast="yes"))
    scene.vm("db", "n1", rules={"affinity": rather("fast")})
    assert plan(scene).moves == ()


def test_a_pod_stays_that_the_scheduler_would_put_back() -> None:
    """The node it prefers is the only other one, and full."""
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.vm("large", "n2", "7Gi")
    scene.pod("web-1", "n1", "2Gi", affinity=rather("fast"))
    scene.pod("web-2", "n1")
    assert plan(scene).moves == ()


@pytest.mark.parametrize("rules", [rather("fast"), {**rather("fast"), **near(HOST, "web")}])
@pytest.mark.parametrize(
    "changes",
    [
        {"owner": ""},
        {"owner": "DaemonSet"},
        {"volumes": [{"name": "data", "emptyDir": {}}]},
        {"owner": "Job", "restartPolicy": "Never"},
        {"owner": "Job", "restartPolicy": "OnFailure"},
        {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}},
    ],
)
def test_pods_stay_that_would_lose_something(changes: Json, rules: Json, looks: Counter[str]) -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.pod("web-1", "n1", affinity=rules, **changes)
    scene.pod("web-2", "n2")
    assert (plan(scene).moves, looks.total()) == ((), 0)


def test_nobody_leaves_a_pod_that_has_to_stay_beside_it() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.vm("db-1", "n1", rules={"affinity": rather("fast")})
    assert len(plan(scene).moves) == 1
    scene.pod("agent-1", "n1", owner="DaemonSet", affinity=near(HOST, "db"))
    assert plan(scene).moves == ()


@pytest.mark.parametrize("affinity", [{}, rather("fast")])
def test_a_pod_of_a_vmi_that_is_not_in_the_lists_stays(affinity: Json) -> None:
    shunned = node("n1")
    shunned["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    scene = Scene(shunned, node("n2", fast="yes"))
    scene.vm("db", "n1", rules={"affinity": affinity})
    scene.lists["vmis"].clear()
    assert plan(scene).moves == ()


OTHER_OWNER = {"kind": "ReplicaSet", "name": "web", "uid": "another", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "status", "moves"),
    [
        ({}, {"conditions": [{"type": "Ready", "status": "True"}]}, 1),
        ({}, {"phase": "Pending"}, 0),
        ({"deletionTimestamp": "2026-11-21T12:00:00Z"}, {"conditions": [{"type": "Ready", "status": "True"}]}, 0),
        ({"ownerReferences": [OTHER_OWNER]}, {"conditions": [{"type": "Ready", "status": "True"}]}, 0),
    ],
)
def test_a_pod_moves_only_if_its_controller_has_another_one_that_serves(
    metadata: Json, status: Json, moves: int
) -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.pod("web-1", "n1", affinity=rather("fast"))
    assert plan(scene).moves == ()
    scene.pod("web-2", "n1", metadata=metadata)["status"] = status
    assert len(plan(scene).moves) == moves


def test_one_pod_of_a_controller_is_left_to_serve_while_others_move() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    for number in range(3):
        scene.pod(f"web-{number}", "n1", affinity=rather("fast"))
    scene.vm("db", "n1", rules={"affinity": rather("fast")})
    found = plan(scene)
    assert Counter((move.name[:3], move.wave) for move in found.moves) == {("web", 1): 2, ("db", 1): 1, ("web", 2): 1}
    assert violations(scene.lists, found.plan) == []


def test_pods_are_counted_as_often_for_many_waves_as_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[int]()

    def looked(pod: Object) -> bool:
        looks[caps] += 1
        return is_ready(pod)

    monkeypatch.setattr(rebalance, "is_ready", looked)
    waves = list[int]()
    for caps in (1, 3):
        migrations = {"parallelMigrationsPerCluster": caps, "parallelOutboundMigrationsPerNode": caps}
        scene = Scene(node("n1"), node("n2", fast="yes"), kubevirts=[kubevirt(migrations=migrations)])
        for number in range(3):
            scene.vm(f"db-{number}", "n1", rules={"affinity": rather("fast")})
        waves.append(max(move.wave for move in plan(scene).moves))
    assert waves == [3, 1]
    assert looks[1] == looks[3] > 0


def test_a_budget_keeps_a_pod() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.pod("web-1", "n1", affinity=rather("fast"))
    scene.pod("web-2", "n1")
    assert len(plan(scene).moves) == 1
    scene.lists["pdbs"] = [
        {
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "expectedPods": 1, "desiredHealthy": 1, "currentHealthy": 1},
        }
    ]
    assert plan(scene).moves == ()


def test_a_node_to_avoid_is_left() -> None:
    shunned = node("n1")
    shunned["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    scene = Scene(shunned, node("n2"))
    scene.vm("db", "n1")
    (move,) = plan(scene).moves
    assert (move.target_node, move.gain) == ("n2", 300)


def test_the_message_says_when_there_may_be_more() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    for number in range(3):
        scene.vm(f"db-{number}", "n1", rules={"affinity": rather("fast")})
    assert plan(scene, 2).message == "2 VMs migrate; as no more moves are allowed, there may be more to do."
    assert len(plan(scene).moves) == 3


def test_a_machine_and_a_pod_of_one_name_both_go_home() -> None:
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.vm("db", "n1", rules={"affinity": rather("fast")})
    scene.pod("db", "n1", affinity=rather("fast"))
    scene.pod("db-2", "n1")
    assert sorted(move.kind for move in plan(scene).moves) == ["Pod", "VirtualMachineInstance"]


def test_what_is_carried_out_says_the_same() -> None:
    lists = displaced(("kni-worker", "kni-worker2"))
    found = plan_rebalance(from_plain(lists), "patch", max_moves=20)
    plan, moves = found.plan, found.moves
    jsonschema.validate(json.loads(encode(plan)), SCHEMA)
    assert decode(encode(plan)) == plan
    assert [(action.object.title, action.source, action.target, action.why) for action in plan.actions] == [
        (f"{move.namespace}/{move.name}", move.source_node, move.target_node, move.why) for move in moves
    ]
    assert [bool(action.after) for action in plan.actions] == [move.wave > 1 for move in moves]
    assert all(action.object.uid for action in plan.actions)
    assert (plan.run, plan.batches, plan.totals.migrations, plan.totals.evictions) == ("patch", (), 1, 1)
    assert plan_rebalance(from_plain(RECORDED), max_moves=20).plan.actions == ()


def test_another_way_to_the_rules_finds_nothing_wrong_with_it() -> None:
    lists = displaced(("kni-worker", "kni-worker2"), ("kni-worker5", "kni-worker6"))
    plan = plan_rebalance(from_plain(lists), max_moves=20).plan
    assert violations(lists, plan) == []
    hasty = replace(plan, actions=tuple(replace(action, after=()) for action in plan.actions))
    assert violations(lists, hasty)

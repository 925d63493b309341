# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a run and its batches, as the planner chooses them."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import plan_text

from unit.plugins.module_utils._planner.replay_actions import ActionReplay
from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Lists, Scene, apart, node
from unit.plugins.module_utils._planner.tight import tight_cluster


def planned(lists: Lists, size: int | None = 1, begun: tuple[str, ...] = (), **rules: Any) -> Plan:
    names = [entry["metadata"]["name"] for entry in lists["nodes"]]
    options = PlanOptions(batching=BatchRules(size, **rules))
    plan = plan_whole_run(from_plain(lists), "patch", names, options, begun)
    assert decode(encode(plan)) == plan
    assert PlanOptions.of(plan.options).batching == options.batching
    assert sorted(name for batch in plan.batches for name in batch) == sorted(names)
    return plan


def batches(plan: Plan) -> list[str]:
    return [" ".join(batch) for batch in plan.batches]


def test_the_emptiest_node_makes_room_for_the_others() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    for number in range(4):
        scene.vm(f"db-{number}", "ab"[number % 2])
    scene.vm("web-1", "c")
    assert batches(planned(scene.lists))[0] == "c"
    assert batches(planned(scene.lists, free=False)) == ["a", "b", "c"]
    assert planned(scene.lists).totals.migrations < planned(scene.lists, free=False).totals.migrations


@pytest.mark.parametrize("owner", ["VirtualMachine", "VirtualMachineInstanceReplicaSet"])
def test_an_order_is_taken_in_which_nobody_is_interrupted_twice(owner: str) -> None:
    """By the order that is given it starts anew on a node that comes later."""
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("db-1", "a", owner=owner, status=FIXED)
    restart = ({"policy": "restart"},)

    def restarts(*, free: bool) -> list[str]:
        options = PlanOptions(policies=restart, batching=BatchRules(1, free=free))
        plan = plan_whole_run(from_plain(scene.lists), "patch", list("abc"), options)
        assert any("interrupted more than once: shop/db-1 (a in" in line for line in plan_text(plan)) is not free
        return [action.node for action in plan.actions if action.kind is ActionKind.RESTART]

    assert restarts(free=False)[0] == "a"
    assert len(restarts(free=False)) > 1
    assert restarts(free=True) == ["a"]


@pytest.mark.parametrize(
    ("pools", "stays", "twice"),
    [
        ("aaaaa", "", 1),  # as many as on the emptiest node of all
        ("aaabb", "", 3),  # of each of the two groups
        ("aaabb", "n0", 2),  # the first group has a node that is left alone
        ("ab", "", 0),  # each for itself, so that nobody migrates at all
    ],
)
def test_the_first_node_of_those_that_vms_cannot_leave_costs_double(pools: str, stays: str, twice: int) -> None:
    scene = Scene(*(node(f"n{number}", pool=pool) for number, pool in enumerate(pools)))
    for number, pool in enumerate(pools):
        for vm in range(1 + (number + 1) % 3):
            scene.vm(f"web-{number}{vm}", f"n{number}", rules={"nodeSelector": {"pool": pool}})
    plan = planned_but_one(scene.lists, stays, 1)
    moved = {action.object.title for action in plan.actions if action.kind is ActionKind.MIGRATE}
    assert plan.totals.lower_bound == len(moved) + twice
    assert plan.totals.proof == ("optimal" if plan.totals.migrations == len(moved) + twice else "none")


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_no_order_needs_fewer_migrations_than_the_bound(seed: int) -> None:
    lists = tight_cluster(seed, nodes=4, machines=7, pods=0)
    names = [entry["metadata"]["name"] for entry in lists["nodes"]]
    options = PlanOptions(batching=BatchRules(1, free=False))
    for order in permutations(names):
        totals = plan_whole_run(from_plain(lists), "patch", order, options).totals
        assert totals.lower_bound is not None
        assert totals.lower_bound <= totals.migrations


def reserved(*pools: str) -> Scene:
    """Nodes by the letters of the pools that they are reserved for, each with a VM that two of a pool have room for."""
    nodes = [node(f"{pool}{number}", pool=pool) for pool in pools for number in range(3)]
    scene = Scene(*nodes)
    for entry in nodes:
        pool, name = entry["metadata"]["labels"]["pool"], entry["metadata"]["name"]
        rules = {"nodeSelector": {"pool": pool}, "affinity": apart(HOST, f"{name}-big")}
        scene.vm(f"{name}-big", name, "3Gi", rules=rules)
    return scene


def test_a_batch_does_not_take_all_nodes_that_vms_are_bound_to() -> None:
    plan = planned(reserved("x", "y").lists, 2)
    assert plan.verdict is Verdict.FEASIBLE
    assert all({name[0] for name in batch} == {"x", "y"} for batch in plan.batches)


def test_a_batch_is_smaller_where_more_nodes_cannot_be_emptied_together() -> None:
    plan = planned(reserved("x").lists, 3)
    assert (plan.verdict, [len(batch) for batch in plan.batches]) == (Verdict.FEASIBLE, [1, 1, 1])


def test_a_node_waits_until_another_one_is_free() -> None:
    """Only a node that comes later in the list has room for the VM of the first."""
    scene = Scene(node("a", memory="6Gi"), node("b", memory="8Gi"), node("c", memory="6Gi"))
    scene.vm("large-1", "a", "5Gi")
    scene.vm("middle-1", "b", "3Gi")
    assert plan_run(from_plain(scene.lists), "patch", [["a"], ["b"], ["c"]], PlanOptions()).verdict is Verdict.FEASIBLE
    scene.vm("small-1", "c", "1Gi", rules={"affinity": apart(HOST, "large")})
    given = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"], ["c"]], PlanOptions())
    assert given.verdict is Verdict.PARTIAL
    assert planned(scene.lists).verdict is Verdict.FEASIBLE


def test_who_is_stopped_in_any_case_keeps_no_node_back() -> None:
    """Nodes with databases alone cost no migration and have room when they are back, whatever the databases take."""
    scene = Scene(*(node(name, memory="9Gi") for name in "abcd"))
    for name in "cd":
        scene.vm(f"db-{name}", name, "6Gi", rules={"nodeSelector": {HOST: name}})
    for name in "ab":
        scene.vm(f"web-{name}", name, "2Gi")
    policies = ({"selector": {"app": "db"}, "policy": "stop"},)
    options = PlanOptions(policies=policies, batching=BatchRules(1))
    plan = plan_whole_run(from_plain(scene.lists), "patch", list("abcd"), options)
    assert sorted(batches(plan)[:2]) == ["c", "d"]
    assert (plan.totals.migrations, plan.totals.stops, plan.totals.proof) == (2, 2, "optimal")


def test_nodes_that_nobody_can_empty_come_last() -> None:
    scene = Scene(*(node(name) for name in "abcd"))
    scene.vm("tied-1", "a", rules={"nodeSelector": {HOST: "a"}})
    scene.vm("web-1", "b")
    scene.vm("web-2", "c")
    plan = planned_but_one(scene.lists, "d", 2)
    assert (plan.verdict, plan.batches[-1]) == (Verdict.PARTIAL, ("a",))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ["a b", "c d"]),
        ({"apart": (ZONE,)}, ["a c", "b d"]),
        ({"together": ZONE}, ["a b", "c d"]),
        ({"together": ZONE, "first": ("d",)}, ["d", "c", "a b"]),
        ({"first": ("c",)}, ["c", "a b", "d"]),
        ({"last": ("a", "b")}, ["c d", "a b"]),
        ({"free": False, "apart": (ZONE,)}, ["a c", "b d"]),
    ],
)
def test_batches_keep_to_what_is_wanted_of_them(rules: dict[str, Any], expected: list[str]) -> None:
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"), node("d", "y"), node("e", "z"))
    plan = planned_but_one(scene.lists, "e", 2, **rules)
    assert batches(plan) == expected


def planned_but_one(lists: Lists, stays: str, size: int | None, **rules: Any) -> Plan:
    names = [name for entry in lists["nodes"] if (name := entry["metadata"]["name"]) != stays]
    return plan_whole_run(from_plain(lists), "patch", names, PlanOptions(batching=BatchRules(size, **rules)))


def test_as_many_as_cost_nothing_more() -> None:
    """The first node opens the room; after it three at a time, which fill KubeVirt's limit of five migrations."""
    scene = Scene(*(node(f"n{number}", memory="30Gi") for number in range(9)))
    for number in range(18):
        scene.vm(f"web-{number}", f"n{number // 2}", "6Gi")
    sizes = [len(batch) for batch in planned(scene.lists, None).batches]
    assert sizes[0] < max(sizes) == 3
    assert planned(scene.lists, None).totals.migrations == planned(scene.lists, 1).totals.migrations


def test_kubevirt_keeps_one_of_its_own_pods() -> None:
    own = {"metadata": {"namespace": "kubevirt", "name": "kubevirt"}, "spec": {}, "status": {"phase": "Deployed"}}
    scene = Scene(*(node(name) for name in "abcd"), kubevirts=[own])
    for name in "ab":
        labels = {"kubevirt.io": "virt-api"}
        scene.pod(f"virt-api-{name}", name, metadata={"namespace": "kubevirt", "labels": labels})
    assert batches(planned_but_one(scene.lists, "d", 2)) == ["a c", "b"]


@pytest.mark.parametrize(
    ("pods", "budget", "expected"),
    [
        ("abcdef", None, ["a b c", "d e f"]),
        ("abcdef", 2, ["a b", "c d", "e f"]),
        ("abcdef", 1, ["a", "b", "c", "d", "e", "f"]),
        ("abc", 1, ["d e f", "a", "c", "b"]),
    ],
)
def test_no_two_nodes_of_a_batch_have_pods_that_wait_for_both(
    pods: str, budget: int | None, expected: list[str]
) -> None:
    """A pod on each of these nodes, which has no other. That it stays away makes no batch smaller; its budget does."""
    scene = Scene(*(node(name, pool="web" if name in pods else "other") for name in "abcdef"))
    for name in pods:
        scene.pod(f"web-{name}", name, nodeSelector={"pool": "web"}, affinity=apart(HOST, "web"))
    if budget:
        status = {"expectedPods": 6, "desiredHealthy": 6 - budget, "currentHealthy": 6, "disruptionsAllowed": budget}
        selector = {"matchLabels": {"app": "web"}}
        scene.lists["pdbs"] = [
            {"metadata": {"namespace": "shop", "name": "b"}, "spec": {"selector": selector}, "status": status}
        ]
    plan = planned(scene.lists, 3)
    assert plan.verdict is Verdict.FEASIBLE
    assert batches(plan) == expected


def test_nodes_that_are_out_of_service_come_first() -> None:
    scene = Scene(*(node(name) for name in "abcd"))
    scene.vm("db-1", "c")
    scene.vm("db-2", "d")
    assert batches(planned(scene.lists, 2, begun=("d", "c"))) == ["c d", "a b"]
    assert batches(planned(scene.lists, 1, begun=("d", "c")))[:2] == ["c", "d"]


@pytest.mark.parametrize(
    ("begun", "rules", "expected"),
    [
        ("a", {}, ["a b", "c d"]),
        ("b", {}, ["a b", "c d"]),
        ("abc", {}, ["a b", "c d"]),
        ("ac", {"apart": ("half",)}, ["a", "b c", "d"]),
        ("a", {"apart": ("half",)}, ["a b", "c d"]),
        ("d", {"first": ("b",)}, ["b d", "a c"]),
    ],
)
def test_batches_that_are_begun_are_filled_up_in_a_given_order(
    begun: str, rules: dict[str, Any], expected: list[str]
) -> None:
    scene = Scene(*(node(name, half="13"[name in "bd"]) for name in "abcd"))
    assert batches(planned(scene.lists, 2, begun=tuple(begun), free=False, **rules)) == expected


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(24))
def test_the_order_is_no_worse_than_the_given_one_and_goes_as_planned(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=10, pods=0)
    names = [entry["metadata"]["name"] for entry in lists["nodes"]]
    given = plan_run(from_plain(lists), "patch", [names[i : i + 2] for i in range(0, 6, 2)], PlanOptions())
    plan = planned(lists, 2)
    costs = [(len(entry.blocked), entry.totals.migrations) for entry in (plan, given)]
    assert costs[0] <= costs[1]
    assert (plan.totals.lower_bound or 0) <= plan.totals.migrations
    for order in range(2):
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(order))
        if not plan.blocked:
            assert replay.wrong == []


def test_what_is_migrated_ends_where_no_batch_is_left() -> None:
    scene = Scene(*(node(f"n{number}") for number in range(5)))
    for number in range(8):
        scene.vm(f"web-{number}", f"n{number // 2}")
    plan = planned(scene.lists)
    moved = [action.object.title for action in plan.actions if action.kind is ActionKind.MIGRATE]
    assert len(moved) == len(set(moved))


def test_a_run_that_is_done_has_no_batch() -> None:
    plan = plan_whole_run(from_plain(Scene(node("a")).lists), "patch", [], PlanOptions(batching=BatchRules()))
    assert (plan.batches, plan.verdict) == ((), Verdict.FEASIBLE)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where VMs go, what keeps them, and what their policies make of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan, Outcome
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Scene, apart, even, near, node, rules

REPLICA_SET = "VirtualMachineInstanceReplicaSet"
KUBEVIRT = {
    "metadata": {"name": "kubevirt"},
    "spec": {},
    "status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.8.4"},
}


def targets(plan: DrainPlan) -> dict[str, str]:
    return {move.name: move.target_node for move in plan.moves}


def test_nothing_to_do() -> None:
    plan = plan_drain(Scene(node("a"), node("b")).lists, ["a"])
    assert plan.feasible
    assert plan.message == "a can be drained: nothing has to leave."


def test_drained_nodes_are_no_targets_even_for_what_tolerates_everything() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("vm", "a", rules={"tolerations": [{"operator": "Exists"}]})
    assert targets(plan_drain(scene.lists, ["a", "b"])) == {"vm": "c"}


EVERYTHING = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize("policy", ["fail", "restart"])
def test_what_tolerates_the_cordon_is_not_left_where_it_is(policy: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", rules=EVERYTHING)
    plan = plan_drain(scene.lists, ["a", "b"], policies=rules(policy))
    (machine,) = plan.stuck
    assert (plan.feasible, machine.outcome) == (False, Outcome.STAYS)
    assert "VM shop/vm cannot leave (the nodes that fit are drained too, or have no label" in plan.message


def test_a_replica_that_would_start_on_a_drained_node_makes_the_drain_infeasible() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", owner=REPLICA_SET, rules=EVERYTHING)
    plan = plan_drain(scene.lists, ["a", "b"], policies=rules("stop"))
    assert not plan.feasible
    assert plan.message == "a, b cannot be drained: VM shop/vm tolerates the cordon, and starts again on b."


def test_a_pod_that_is_going_already_needs_no_wave() -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("web-1", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert plan_drain(scene.lists, ["a"]).message == "a can be drained: nothing has to leave."


def test_a_cordon_elsewhere_counts() -> None:
    scene = Scene(node("a"), node("b", cordoned=True), node("c"))
    scene.vm("vm", "a")
    assert targets(plan_drain(scene.lists, ["a"])) == {"vm": "c"}


@pytest.mark.parametrize(("avoid", "target"), [([], "b"), (["b"], "c"), (["b", "c"], "b")])
def test_nodes_to_avoid_come_last(avoid: list[str], target: str) -> None:
    scene = Scene(node("a"), node("b", memory="16Gi"), node("c"))
    scene.vm("vm", "a")
    (move,) = plan_drain(scene.lists, ["a"], avoid=avoid).moves
    assert move.target_node == target
    assert move.why.endswith("all of them nodes to avoid") is (len(avoid) > 1)


@pytest.mark.parametrize(
    ("profile", "target"), [(Profile.LOW_NODE_UTILIZATION, "b"), (Profile.HIGH_NODE_UTILIZATION, "c")]
)
def test_profiles(profile: Profile, target: str) -> None:
    scene = Scene(node("a"), node("b", memory="16Gi"), node("c"))
    scene.vm("vm", "a")
    assert targets(plan_drain(scene.lists, ["a"], profile=profile)) == {"vm": target}


def test_a_given_target() -> None:
    scene = Scene(node("a"), node("b", memory="16Gi"), node("c"))
    scene.vm("vm", "a")
    (move,) = plan_drain(scene.lists, ["a"], targets={"shop/vm": "c"}).moves
    assert (move.target_node, move.why) == ("c", "the task asks for this node")
    assert move.node_selector == {HOST: "c"}


def test_a_given_target_that_does_not_fit() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm("vm", "a")
    plan = plan_drain(scene.lists, ["a"], targets={"shop/vm": "c"})
    assert not plan.feasible
    assert plan.stuck[0].reasons["c"] == ("Insufficient memory",)
    assert plan.stuck[0].message == (
        "0/3 nodes are available: 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable."
    )


def test_migrations_are_pinned_by_the_label_which_need_not_be_the_name() -> None:
    other, twins = node("b", memory="1Gi"), [node("c"), node("d")]
    other["metadata"]["labels"][HOST] = "b.example.org"
    other["status"]["allocatable"]["memory"] = "8Gi"
    for twin in twins:
        # A label that two nodes share pins to neither of them.
        twin["metadata"]["labels"][HOST] = "twin"
    scene = Scene(node("a"), other, *twins)
    scene.vm("vm", "a")
    (move,) = plan_drain(scene.lists, ["a"]).moves
    assert (move.target_node, move.node_selector) == ("b", {HOST: "b.example.org"})


def test_the_largest_finds_its_gap() -> None:
    """By points alone the small ones would spread, and leave no gap for the large one."""
    scene = Scene(node("a", memory="16Gi"), node("b", memory="6Gi"), node("c", memory="6Gi"))
    for name, memory in (("vm-1", "1Gi"), ("vm-2", "1Gi"), ("vm-3", "5Gi")):
        scene.vm(name, "a", memory)
    found = targets(plan_drain(scene.lists, ["a"]))
    assert found["vm-1"] == found["vm-2"] != found["vm-3"]


def test_one_leaves_the_larger_gap_to_another() -> None:
    """The leader scores higher on c, but there is no room beside it for the follower, who can only come second."""
    scene = Scene(node("a", "x", "16Gi"), node("c", "y", "7Gi"), node("d", "y", "4Gi"))
    scene.vm("leader-1", "a", "3Gi")
    scene.vm("follower-1", "a", "5Gi", rules={"affinity": near(ZONE, "leader")})
    assert targets(plan_drain(scene.lists, ["a"])) == {"leader-1": "d", "follower-1": "c"}


def test_one_gives_way_to_another() -> None:
    """The filler would rather go to b, the one node of the thief, who can go there only once the guard has left."""
    scene = Scene(node("a", "x", "16Gi"), node("b", "x", "6Gi"), node("c", "y"))
    scene.vm("guard-1", "a")
    scene.vm("filler-1", "a", "3Gi")
    scene.vm("thief-1", "a", "5Gi", rules={"affinity": apart(ZONE, "guard"), "nodeSelector": {ZONE: "x"}})
    found = targets(plan_drain(scene.lists, ["a"], avoid=["c"]))
    assert found == {"guard-1": "c", "filler-1": "c", "thief-1": "b"}


def test_a_pinned_migration_gets_past_the_own_spread_constraint() -> None:
    """Two zones, even; with the VM's own pod still there, one more in its zone is one too many, but not in the end."""
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y", memory="2Gi"))
    scene.vm("db-1", "a", rules={"topologySpreadConstraints": even(ZONE, "db")})
    scene.vm("db-2", "c", rules={"topologySpreadConstraints": even(ZONE, "db")})
    (move,) = plan_drain(scene.lists, ["a"]).moves
    assert (move.target_node, move.why) == ("b", "no other node fits")


def test_a_spread_constraint_is_broken_only_if_need_be() -> None:
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y", memory="32Gi"))
    for name, on in (("db-1", "a"), ("db-2", "c")):
        scene.vm(name, on, rules={"topologySpreadConstraints": even(ZONE, "db")})
    assert targets(plan_drain(scene.lists, ["a"])) == {"db-1": "b"}
    (move,) = plan_drain(scene.lists, ["a"], targets={"shop/db-1": "c"}).moves
    assert "only a pinned migration gets past the VM's own topology spread constraint" in move.why


def test_a_least_number_of_domains_holds_for_pinned_migrations_too() -> None:
    scene = Scene(node("a", "x"), node("b", "x"), node("c", "y"))
    rules = {"topologySpreadConstraints": even(HOST, "db", minDomains=2)}
    scene.vm("db-1", "a", rules=rules)
    scene.vm("db-2", "b", rules=rules)
    assert targets(plan_drain(scene.lists, ["a"])) == {"db-1": "c"}


BLOCKED: list[tuple[dict[str, Any], str]] = [
    (
        {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}]},
        "disks-not-live-migratable",
    ),
    ({"phase": "Scheduled"}, "not-running"),
    ({"selinuxContext": ""}, "selinux-context-unknown"),
    ({"nodeName": "b"}, "arriving"),
]


@pytest.mark.parametrize(("status", "blocker"), BLOCKED)
def test_blockers_are_found_before_the_scheduler_is_asked(status: dict[str, Any], blocker: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=status)
    plan = plan_drain(scene.lists, ["a"])
    (machine,) = plan.stuck
    assert (plan.feasible, plan.moves, machine.message) == (False, (), "")
    assert [found.id for found in machine.blockers] == [blocker]
    assert machine.blockers[0].problem in plan.message


def test_a_pod_of_a_vmi_that_is_not_in_the_lists_is_not_evicted() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    scene.lists["vmis"].clear()
    plan = plan_drain(scene.lists, ["a"])
    (machine,) = plan.stuck
    assert (plan.feasible, plan.pods, machine.name) == (False, (), "vm")
    assert [blocker.id for blocker in machine.blockers] == ["unknown"]


def test_a_vm_and_a_pod_of_the_same_name() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("twin", "a")
    scene.pod("twin", "a")
    plan = plan_drain(scene.lists, ["a"])
    assert (targets(plan), [pod.target_node for pod in plan.pods]) == ({"twin": "b"}, ["b"])


def test_a_migration_between_two_drained_nodes_is_seen_at_both_ends() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("vm", "a")
    second = copy.deepcopy(scene.lists["pods"][0])
    second["metadata"] |= {"name": "virt-launcher-vm-2", "uid": "second"}
    second["spec"]["nodeName"] = "b"
    scene.lists["pods"].append(second)
    plan = plan_drain(scene.lists, ["a", "b"])
    assert {machine.node: machine.blockers[0].id for machine in plan.stuck} == {
        "a": "several-launcher-pods",
        "b": "arriving",
    }


def test_a_pod_that_outlives_its_vmi_is_going() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    scene.lists["vmis"].clear()
    scene.lists["pods"][0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert [pod.why for pod in plan_drain(scene.lists, ["a"]).pods] == ["It is being deleted already."]


def test_what_is_not_evaluated_is_said() -> None:
    scene = Scene(node("a"), node("b"), kubevirts=[KUBEVIRT])
    scene.vm("vm", "a", rules={"resourceClaims": [{"name": "gpu"}]})
    (move,) = plan_drain(scene.lists, ["a"]).moves
    assert move.unevaluated == ("ResourceClaim gpu of the pod (plugin DynamicResources)",)


def test_what_cannot_be_foreseen_of_a_target_pod_is_said() -> None:
    scene = Scene(node("a"), node("b"), kubevirts=[KUBEVIRT])
    claim = {"claimName": "state", "accessModes": ["ReadWriteOnce"]}
    state = [{"name": "persistent-state-for-vm", "persistentVolumeClaimInfo": claim}]
    vmi = scene.vm("vm", "a", status={"volumeStatus": state})
    vmi["spec"]["domain"]["devices"]["tpm"] = {"persistent": True}
    (move,) = plan_drain(scene.lists, ["a"]).moves
    assert move.unevaluated == (
        "PersistentVolumeClaim for the state of the VM, which KubeVirt makes anew for the target",
    )


def test_who_can_migrate_follows_no_policy() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    plan = plan_drain(scene.lists, ["a"], policies=rules("stop"))
    assert (targets(plan), plan.stuck) == ({"vm": "b"}, ())


def test_a_vm_that_stops_makes_room_for_another() -> None:
    scene = Scene(node("a", "x"), node("b", "x"))
    scene.vm("fixed-1", "a", status=FIXED)
    scene.vm("shy-1", "a", rules={"affinity": apart(ZONE, "fixed")})
    policies = compile_rules([{"selector": {"app": "fixed"}, "policy": "stop"}])
    plan = plan_drain(scene.lists, ["a"], policies=policies)
    (move,), (machine,) = plan.moves, plan.stuck
    assert plan.feasible
    assert (machine.wave, move.wave, move.why) == (1, 2, "no other node fits, once others have left")


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"nodes": ["aa"]}, "there is no node aa (do you mean a?)"),
    ({"nodes": []}, "no node is named"),
    ({"nodes": ["a"], "avoid": ["z"]}, "there is no node z"),
    (
        {"nodes": ["a"], "targets": {"shop/vn": "b"}},
        "there is no VirtualMachineInstance shop/vn (do you mean shop/vm?)",
    ),
    ({"nodes": ["a"], "targets": {"shop/vm": "a"}}, "shop/vm is to go to a, which is drained itself"),
]


@pytest.mark.parametrize(("arguments", "problem"), MISTAKES)
def test_mistakes(arguments: dict[str, Any], problem: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    with pytest.raises(InvalidRequest) as raised:
        plan_drain(scene.lists, **arguments)
    assert (
        str(raised.value)
        == f"Cannot plan the drain: {problem}. Name nodes and VMs that are in the snapshot, or take a new one."
    )


def test_a_plan_is_plain_data() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    scene.vm("mover", "a")
    scene.pod("web-1", "a")
    plain = plan_drain(scene.lists, ["a"]).to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["stuck"][0]["blockers"][0]["effect"] == "refused"
    assert (plain["stuck"][0]["policy"], plain["pods"][0]["outcome"]) == ("fail", "moves")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that restart or stop by their policies, and those that could not start again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Outcome

from unit.plugins.module_utils._planner.scene import FIXED, HOST, Json, Scene, node, rules
from unit.plugins.module_utils._planner.test_repair import of, planned, repaired, why

REPLICA_SET = "VirtualMachineInstanceReplicaSet"
NEXT_DOOR = {"nodeSelector": {HOST: "a"}}


@pytest.mark.parametrize(
    ("owner", "vm_rules", "policy", "outcome", "target", "feasible"),
    [
        ("VirtualMachine", {}, "fail", Outcome.STAYS, None, False),
        ("VirtualMachine", {}, "restart", Outcome.RESTARTS, "b", True),
        ("VirtualMachine", {}, "stop", Outcome.STOPS, None, True),
        ("VirtualMachine", NEXT_DOOR, "restart", Outcome.STAYS, None, False),
        ("VirtualMachine", NEXT_DOOR, "stop", Outcome.STOPS, None, True),
        (REPLICA_SET, {}, "restart", Outcome.RESTARTS, "b", True),
        (REPLICA_SET, {}, "stop", Outcome.RESTARTS, "b", True),
        (REPLICA_SET, NEXT_DOOR, "stop", Outcome.STOPS, None, True),
        ("", {}, "restart", Outcome.STAYS, None, False),
        ("", {}, "stop", Outcome.STAYS, None, False),
    ],
)
def test_policies(
    owner: str, vm_rules: Json, policy: str, outcome: Outcome, target: str | None, feasible: bool
) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", owner=owner, status=FIXED, rules=vm_rules)
    plan = plan_drain(scene.lists, ["a"], policies=rules(policy))
    (machine,) = plan.stuck
    assert (machine.outcome, machine.target_node, plan.feasible) == (outcome, target, feasible)
    assert machine.choices == ((target,) if target else ())
    assert (machine.wave is None) is (outcome is Outcome.STAYS)
    waits = owner == REPLICA_SET and outcome is Outcome.STOPS
    assert machine.message.startswith("0/2 nodes are available") is waits
    assert ("waits until a node fits" in machine.why) is waits


def test_who_is_stopped_for_another_reason_by_now_says_so() -> None:
    """KubeVirt said that it cannot be migrated; now only a node is missing. Whoever stops it holds that against it."""
    scene = Scene(node("a"), node("b", memory="2Gi"))
    scene.vm("vm", "a", "4Gi", status=FIXED)
    plan = planned(scene.lists, ["a"], policies=[{"policy": "stop"}])
    assert of(plan, "1.stop.shop/vm").is_refused
    assert repaired(plan, scene.lists) == plan
    scene.lists["vmis"][0]["status"]["conditions"] = []
    mended = repaired(plan, scene.lists)
    assert not of(mended, "1.stop.shop/vm").is_refused
    assert "no node can take it" in of(mended, "1.stop.shop/vm").why
    assert repaired(mended, scene.lists) == mended


def test_of_who_is_not_migrated_again_it_is_told_what_kubevirt_says_by_now() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    plan = planned(scene.lists, ["a"], policies=[{"policy": "stop"}])
    known = {"failures": {"shop/vm": ["b", "b"]}, "hopeless": {"shop/vm"}}
    assert "its migration to b failed" in of(repaired(plan, scene.lists, **known), "1.stop.shop/vm").cause
    scene.lists["vmis"][0]["status"] |= FIXED
    assert of(repaired(plan, scene.lists, **known), "1.stop.shop/vm").is_refused


def test_a_restart_needs_an_owner_that_starts_again() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    scene.lists["vms"][0]["spec"]["runStrategy"] = "Halted"
    (machine,) = plan_drain(scene.lists, ["a"], policies=rules("restart")).stuck
    assert "Nor can it restart: VirtualMachine vm does not start it again (runStrategy Halted)." in machine.why
    (machine,) = plan_drain(scene.lists, ["a"], policies=rules("stop")).stuck
    assert machine.outcome is Outcome.STOPS


@pytest.mark.parametrize("run_strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
def test_a_vm_that_is_asked_restarts(run_strategy: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    scene.lists["vms"][0]["spec"]["runStrategy"] = run_strategy
    (machine,) = plan_drain(scene.lists, ["a"], policies=rules("restart")).stuck
    assert (machine.outcome, machine.target_node) == (Outcome.RESTARTS, "b")


def test_a_paused_replica_set_makes_no_other_replica() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", owner=REPLICA_SET, status=FIXED)
    scene.lists["vmireplicasets"][0]["spec"]["paused"] = True
    (machine,) = plan_drain(scene.lists, ["a"], policies=rules("stop")).stuck
    assert (machine.outcome, machine.message) == (Outcome.STOPS, "")


@pytest.mark.parametrize("policy", ["restart", "stop"])
def test_who_could_not_start_again_is_not_sent_out(policy: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    limit = {
        "metadata": {"namespace": "shop", "name": "tight"},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1m"}}]},
    }
    (machine,) = plan_drain({**scene.lists, "limitranges": [limit]}, ["a"], policies=rules(policy)).stuck
    assert machine.outcome is Outcome.STAYS
    assert f"Nor can it {policy}: LimitRange tight does not allow the pod with which shop/vm would start" in machine.why
    scene.lists["vms"][0]["spec"]["instancetype"] = {"name": "u1"}
    other = {"metadata": {"name": "u2"}, "spec": {}}
    (machine,) = plan_drain({**scene.lists, "clusterinstancetypes": [other]}, ["a"], policies=rules(policy)).stuck
    assert machine.outcome is Outcome.STAYS
    assert (
        f"Nor can it {policy}: KubeVirt does not start shop/vm: "
        'virtualmachineclusterinstancetypes.instancetype.kubevirt.io "u1" not found (FailedFindInstancetype).'
    ) in machine.why


def test_a_restart_is_of_the_size_that_the_instance_type_gives() -> None:
    scene = Scene(node("a"), node("b", memory="2Gi"))
    machine = scene.vm("vm", "a", status=FIXED)
    (item,) = scene.lists["vms"]
    domain = {"devices": machine["spec"]["domain"]["devices"]}
    item["spec"]["template"] = {"spec": {**machine["spec"], "domain": domain}}
    item["spec"]["instancetype"] = {"name": "u1"}
    for guest, outcome in (("1Gi", Outcome.RESTARTS), ("2Gi", Outcome.STAYS)):
        size = {"metadata": {"name": "u1"}, "spec": {"cpu": {"guest": 1}, "memory": {"guest": guest}}}
        (found,) = plan_drain({**scene.lists, "clusterinstancetypes": [size]}, ["a"], policies=rules("restart")).stuck
        assert found.outcome is outcome


def test_a_quota_that_is_full_with_the_vm_itself_lets_it_start_again() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    status = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    quota = {"metadata": {"namespace": "shop", "name": "q"}, "spec": {}, "status": status}
    (machine,) = plan_drain({**scene.lists, "resourcequotas": [quota]}, ["a"], policies=rules("restart")).stuck
    assert machine.outcome is Outcome.RESTARTS


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("kind", ["migrate", "restart"])
@pytest.mark.parametrize("drained", [None, "b"])
def test_who_was_restarted_and_came_to_another_node_of_the_batch_is_not_restarted_again(
    begun: bool, kind: str, drained: str | None
) -> None:
    """As it tolerates the cordon. Before the drains have begun it was somebody else who made it anew there.

    kind: what was planned first; who cannot be migrated then is restarted, too.
    """
    tolerant: Any = {"tolerations": [{"operator": "Exists"}]}
    scene = Scene(node("a"), node("b"), node("c", memory="64Gi"))
    scene.vm("db-1", "a", status=FIXED if kind == "restart" else None, rules=tolerant)
    plan = planned(scene.lists, ["a", "b"], policies=[{"policy": "restart"}])
    name = f"1.{kind}.shop/db-1"
    assert (of(plan, name).node, of(plan, name).target) == ("a", "c")
    later = Scene(node("a", cordoned=begun), node("b", cordoned=begun), node("c", memory="64Gi"))
    later.vm("db-1", "b", status=FIXED, rules=tolerant)
    before = replace(of(plan, name), object=replace(of(plan, name).object, uid="of-the-one-before"))
    given = replace(plan, actions=tuple(before if action.id == name else action for action in plan.actions))
    found = repaired(given, later.lists, node=drained)
    restarts = [action.node for action in found.actions if action.kind is ActionKind.RESTART and action is not before]
    if begun:
        assert (why(found, "db-1").node, why(found, "db-1").obstacle.id) == ("b", "tolerates-cordon")
        assert (restarts, found.verdict) == ([], Verdict.INFEASIBLE)
    elif drained is None:
        assert (restarts, found.blocked) == (["b"], ())

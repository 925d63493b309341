# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan after a fresh look: what is right stays, and the rest changes as little as can be."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    Plan,
    Verdict,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.foretold import identified
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._planner.replay_actions import ActionReplay
from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Json, Lists, Scene, apart, near, node
from unit.plugins.module_utils._planner.tight import tight_cluster

POLICIES = [{"selector": {"app": "g0"}, "policy": "restart"}, {"selector": {"app": "g1"}, "policy": "stop"}]


def planned(lists: Lists, *batches: list[str], **options: Any) -> Plan:
    return plan_run(from_plain(lists), "patch", batches, PlanOptions(**options))


def repaired(plan: Plan, lists: Lists, **known: Any) -> Plan:
    found = repair(plan, from_plain(lists), **known)
    assert decode(encode(found)) == found  # its parts agree
    assert orphans(found) <= orphans(plan)
    return found


def orphans(plan: Plan) -> set[str]:
    """Titles of the VMs that are to start again, and of which the plan does not say that they stop."""
    starts, stops = (
        {action.object.title for action in plan.actions if action.kind is kind}
        for kind in (ActionKind.START, ActionKind.STOP)
    )
    return starts - stops


def of(plan: Plan, name: str) -> Action:
    return next(action for action in plan.actions if action.id == name)


def why(plan: Plan, name: str) -> Blocked:
    return next(entry for entry in plan.blocked if entry.object.name == name)


def moving(vm: str, target: str, *, run: str = "patch", pinned: bool = True) -> Json:
    return {
        "metadata": {"namespace": "shop", "name": f"m-{vm}", "uid": f"m-{vm}", "labels": {"virtops.kubevirt/run": run}},
        "spec": {"vmiName": vm, "addedNodeSelector": {HOST: target} if pinned else {}},
        "status": {"phase": "Running"},
    }


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(30))
def test_what_is_undisturbed_stays_as_it_is(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    policies = POLICIES if seed % 2 else []
    plan = planned(lists, ["n0", "n1", "n2"][: 1 + seed % 3], ["n5"], policies=policies)
    assert repaired(plan, lists) == plan


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("seed", "machines", "policies"),
    [
        *((seed, 14, [{"policy": "stop"}]) for seed in (3, 17, 21, 22, 30, 36, 44, 47)),
        # Who follows a pod whose replacement is not there yet, and who is stopped although another's place is free.
        *((seed, 16, POLICIES) for seed in (71, 97)),
    ],
)
def test_what_goes_as_planned_stays_as_planned(seed: int, machines: int, policies: Any) -> None:
    """With whatever has ended, and whatever is on its way."""
    lists = tight_cluster(seed, nodes=6, machines=machines, pods=8)
    plan = planned(lists, ["n0", "n1", "n2"][: 1 + seed % 3], policies=policies)
    assert plan.verdict is Verdict.FEASIBLE
    for most in range(1, len(plan.actions), 3):
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(most), most=most)
        found = repaired(plan, replay.lists, ended=replay.ended)
        assert differences(plan, found) == []
        assert found == plan


def three_nodes() -> Scene:
    scene = Scene(*(node(name) for name in "abc"))
    for number in range(3):
        scene.vm(f"vm-{number}", "a")
    return scene


def test_a_newcomer_gets_an_action_and_who_has_gone_loses_its_own() -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"])
    scene.vm("late-1", "a")
    scene.lists["vmis"] = [vmi for vmi in scene.lists["vmis"] if vmi["metadata"]["name"] != "vm-1"]
    scene.lists["pods"] = [pod for pod in scene.lists["pods"] if pod["metadata"]["name"] != "virt-launcher-vm-1"]
    found = repaired(plan, scene.lists)
    assert len(differences(plan, found)) == 2
    assert of(found, "1.migrate.shop/late-1").target in ("b", "c")
    assert of(found, "1.migrate.shop/vm-0") == of(plan, "1.migrate.shop/vm-0")
    assert "1.migrate.shop/late-1" in of(found, "1.maintain.a").after


@pytest.mark.parametrize("policy", ["stop", "restart"])
def test_who_has_come_under_the_name_of_one_to_be_interrupted_is_planned_as_itself(policy: str) -> None:
    """By its owner, such as after a crash of the guest, or as somebody has made it anew."""
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("pet-1", "a", status=FIXED)
    plan = planned(scene.lists, ["a"], policies=[{"policy": policy}])
    anew = json.loads(json.dumps(scene.lists).replace("vmi-pet-1", "vmi-anew"))
    found = repaired(plan, anew)
    assert (of(plan, f"1.{policy}.shop/pet-1").object.uid, found.blocked) == ("vmi-pet-1", ())
    assert {action.object.uid for action in found.actions if action.object.name == "pet-1"} == {"vmi-anew"}
    assert differences(plan, found) == ["VM shop/pet-1 is another one of the same name"]
    del anew["vmis"][0]["status"]["conditions"]
    moved = repaired(plan, anew)
    assert of(moved, "1.migrate.shop/pet-1").object.uid == "vmi-anew"
    assert f"1.{policy}.shop/pet-1" not in {action.id for action in moved.actions}


@pytest.mark.parametrize("vanishes", [True, False])
def test_who_need_not_stop_any_more_does_not_start_again(vanishes: bool) -> None:
    """As it can be migrated by now. Who has stopped does, also where the plan has forgotten that."""
    scene = Scene(*(node(name) for name in "abc"))
    for name in ("pet-1", "pet-2"):
        scene.vm(name, "a", status=FIXED)
    plan = planned(scene.lists, ["a"], policies=[{"policy": "stop"}])
    gone = ("pet-1", "pet-2") if vanishes else ("pet-2",)
    for kind in ("vmis", "pods"):
        scene.lists[kind] = [item for item in scene.lists[kind] if not item["metadata"]["name"].endswith(gone)]
    for vmi in scene.lists["vmis"]:
        del vmi["status"]["conditions"]
    found = {action.id for action in repaired(left(plan, ["1.stop.shop/pet-2"]), scene.lists).actions}
    assert "1.start.shop/pet-2" in found
    assert ("1.start.shop/pet-1" in found) is vanishes
    assert ("1.migrate.shop/pet-1" in found) is not vanishes


@pytest.mark.parametrize("known", [{}, {"ended": ["1.restart.shop/pet-1"]}])
def test_who_comes_back_to_the_node_that_is_drained_is_not_restarted_again(known: Any) -> None:
    """It tolerates the cordon, and would come again and again."""
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("pet-1", "a", status=FIXED)
    plan = planned(scene.lists, ["a"], policies=[{"policy": "restart"}])
    anew = json.loads(json.dumps(scene.lists).replace("vmi-pet-1", "vmi-anew"))
    assert of(repaired(plan, anew, node="a", **known), "1.restart.shop/pet-1").object.uid == "vmi-pet-1"


def test_only_what_has_no_place_any_more_goes_elsewhere() -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"])
    to_b = [action for action in plan.actions if action.target == "b"]
    scene.lists["nodes"][1]["spec"]["unschedulable"] = True
    found = repaired(plan, scene.lists)
    assert to_b
    assert {action.id for action in found.actions if action.target == "c"} >= {action.id for action in to_b}
    others = [action for action in plan.actions if action not in to_b]
    assert all(of(found, action.id) == action for action in others)


def test_others_give_up_their_places_only_if_nothing_else_helps() -> None:
    """The newcomer fits on c alone, where the other one was to go; that one fits on b as well."""
    scene = Scene(node("a"), node("b", memory="4Gi"), node("c", memory="4Gi"))
    scene.vm("any-1", "a", "2Gi")
    plan = planned(scene.lists, ["a"], targets={})
    target = of(plan, "1.migrate.shop/any-1").target
    assert target is not None
    scene.vm("bound-1", "a", "3Gi", rules={"nodeSelector": {HOST: target}})
    found = repaired(plan, scene.lists)
    assert (of(found, "1.migrate.shop/bound-1").target, of(found, "1.migrate.shop/any-1").target) == (
        target,
        {"b": "c", "c": "b"}[target],
    )
    assert found.blocked == ()


def test_what_we_migrate_already_is_waited_for() -> None:
    scene = Scene(node("a"), node("b", "y"), node("c", "x"), node("d", "x", role="db"))
    scene.vm("second-1", "a", rules={"affinity": apart(ZONE, "first"), "nodeSelector": {"role": "db"}})
    scene.vm("first-1", "c")
    scene.lists["migrations"] = [moving("first-1", "b")]
    plan = planned(scene.lists, ["a", "c"], policies=[{"policy": "stop"}])
    assert (of(plan, "1.migrate.shop/first-1").target, of(plan, "1.migrate.shop/second-1").target) == ("b", "d")
    assert "1.migrate.shop/first-1" in of(plan, "1.migrate.shop/second-1").after
    assert repaired(plan, scene.lists) == plan


def test_somebody_elses_migration_is_waited_for_and_nobody_is_interrupted() -> None:
    scene = Scene(node("a"), node("b", memory="3Gi"))
    scene.vm("vm-1", "a", "2Gi")
    scene.vm("other-1", "b", "2Gi")
    scene.lists["migrations"] = [moving("other-1", "a", run="", pinned=False)]
    plan = planned(scene.lists, ["a"], policies=[{"policy": "stop"}])
    entry = why(plan, "vm-1")
    assert (plan.verdict, entry.passing, plan.totals.stops) == (Verdict.FEASIBLE, True, 0)
    assert "b can take it once" in entry.reasons[0]


def test_our_own_migration_does_not_block_its_vm() -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"])
    target = of(plan, "1.migrate.shop/vm-0").target
    scene.lists["migrations"] = [moving("vm-0", str(target))]
    assert repaired(plan, scene.lists) == plan
    scene.lists["migrations"] = [moving("vm-0", "b" if target == "c" else "c")]
    found = repaired(plan, scene.lists)
    assert found.blocked == ()
    assert of(found, "1.migrate.shop/vm-0").target != target


def test_a_migration_without_a_known_end_is_waited_for() -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"])
    scene.lists["migrations"] = [moving("vm-0", "", run="", pinned=False)]
    found = repaired(plan, scene.lists)
    assert (why(found, "vm-0").passing, found.verdict) == (True, Verdict.FEASIBLE)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (None, "b, which could take it, is cordoned by somebody"),
        (
            {"owner": "night", "since": "", "reason": "new disk"},
            "b, which could take it, is cordoned by night (new disk)",
        ),
    ],
)
def test_somebody_elses_cordon_passes(mark: Any, words: str) -> None:
    scene = Scene(node("a"), node("b", cordoned=True))
    scene.vm("vm-1", "a")
    if mark:
        scene.lists["nodes"][1]["metadata"]["annotations"] = {"virtops.kubevirt/maintenance": json.dumps(mark)}
    plan = planned(scene.lists, ["a"], policies=[{"policy": "restart"}])
    entry = why(plan, "vm-1")
    assert (entry.reasons, entry.passing, plan.verdict) == ((words,), True, Verdict.FEASIBLE)
    scene.lists["nodes"][1]["spec"]["unschedulable"] = False
    assert of(repaired(plan, scene.lists), "1.migrate.shop/vm-1").target == "b"


def emptied_by_others(scene: Scene) -> None:
    """Node x, by another maintenance that has it for a while."""
    for kind in ("vmis", "pods"):
        scene.lists[kind] = [item for item in scene.lists[kind] if not item["metadata"]["name"].endswith("other-1")]
    scene.lists["nodes"][1]["spec"]["unschedulable"] = True


def left_by_a_vm(scene: Scene) -> None:
    """Node x, by one that is still on its way."""
    scene.lists["migrations"] = [moving("other-1", "y", run="", pinned=False)]


@pytest.mark.parametrize("policy", ["stop", "restart"])
@pytest.mark.parametrize(
    ("disturb", "words"),
    [
        (emptied_by_others, "x, which could take it, is cordoned by somebody"),
        (left_by_a_vm, "x can take it once what is on its way there or from there has arrived"),
    ],
)
def test_who_was_to_be_interrupted_waits_for_what_passes(disturb: Any, words: str, policy: str) -> None:
    """As by a plan that is made now. When nothing passes any more it is interrupted after all."""
    scene = Scene(node("a"), node("x"), node("y"))
    scene.vm("other-1", "x", "7Gi")
    scene.vm("db-1", "a", "2Gi")
    options: Any = {"policies": [{"policy": policy}], "targets": {"shop/db-1": "x"}}
    plan, full = planned(scene.lists, ["a"], **options), copy.deepcopy(scene.lists)
    assert of(plan, f"1.{policy}.shop/db-1")
    assert repaired(plan, full) == plan
    disturb(scene)
    found = repaired(plan, scene.lists)
    entry = why(found, "db-1")
    assert (entry.reasons, entry.passing, found.verdict) == ((words,), True, Verdict.FEASIBLE)
    assert f"1.{policy}.shop/db-1" not in {action.id for action in found.actions}
    assert differences(plan, found) != []
    assert entry == why(planned(scene.lists, ["a"], **options), "db-1")
    assert repaired(found, scene.lists) == found
    assert of(repaired(found, full), f"1.{policy}.shop/db-1") == of(plan, f"1.{policy}.shop/db-1")


def test_where_a_migration_has_failed_it_does_not_go_again_if_there_is_another_node() -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"])
    target = str(of(plan, "1.migrate.shop/vm-0").target)
    other = {"b": "c", "c": "b"}[target]
    assert of(repaired(plan, scene.lists, failures={"shop/vm-0": [target]}), "1.migrate.shop/vm-0").target == other
    again = repaired(plan, scene.lists, failures={"shop/vm-0": [target, other]})
    assert of(again, "1.migrate.shop/vm-0").target in (target, other)


@pytest.mark.parametrize(("policy", "kind"), [("stop", "stop"), ("restart", "restart"), ("fail", "")])
def test_who_is_not_to_be_migrated_any_more_follows_its_policy(policy: str, kind: str) -> None:
    scene = three_nodes()
    plan = planned(scene.lists, ["a"], policies=[{"policy": policy}])
    known = {"failures": {"shop/vm-0": ["b", "b"]}, "hopeless": {"shop/vm-0"}}
    found = repaired(plan, scene.lists, **known)
    if kind:
        assert "its migration to b failed" in of(found, f"1.{kind}.shop/vm-0").why
        assert repaired(found, scene.lists, **known) == found
    else:
        assert why(found, "vm-0").reasons[0].startswith("its migration to b failed")
        assert found.verdict is Verdict.INFEASIBLE


def test_only_the_actions_of_one_node_change() -> None:
    scene = Scene(*(node(name) for name in "abcd"))
    for name in "ab":
        scene.vm(f"{name}-1", name)
    plan = planned(scene.lists, ["a", "b"])
    for name in "ab":
        scene.vm(f"{name}-2", name)
    found = repaired(plan, scene.lists, node="a")
    assert {action.id for action in found.actions} - {action.id for action in plan.actions} == {"1.migrate.shop/a-2"}


def test_a_node_that_is_back_is_a_node_like_others() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("vm-1", "b", "2Gi")
    plan = planned(scene.lists, ["a", "b"])
    scene.lists["nodes"][2]["spec"]["unschedulable"] = True
    found = repaired(plan, scene.lists, ended={"1.cordon.a", "1.maintain.a", "1.uncordon.a"})
    assert of(found, "1.migrate.shop/vm-1").target == "a"


def test_a_pod_that_the_plan_foretold_is_found_by_the_name_that_it_has_got() -> None:
    scene = Scene(node("a"), node("b", memory="4Gi"), node("c", memory="2Gi"))
    scene.pod("web-abc-1", "a")
    scene.vm("near-1", "b", rules={"affinity": near(HOST, "web-abc")})
    plan = planned(scene.lists, ["a"], ["b"])
    ended = {action.id for action in plan.actions if action.batch == 1}
    scene.lists["pods"] = [pod for pod in scene.lists["pods"] if pod["metadata"]["name"] != "web-abc-1"]
    scene.pod("web-abc-2", str(of(plan, "1.evict.shop/web-abc-1").target))
    found = repaired(plan, scene.lists, ended=ended)
    assert differences(plan, found) == []
    assert of(found, "2.evict.shop/web-abc-2").object.uid == "pod-web-abc-2"
    assert "2.evict.shop/web-abc-2" in of(found, "2.maintain.b").after
    assert "2.evict.shop/web-abc-2" in of(found, "2.migrate.shop/near-1").after


def test_a_replica_that_the_plan_foretold_is_found_by_the_name_that_it_has_got() -> None:
    """It would be waited for for ever under the name that its predecessor had."""
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    replica: dict[str, Any] = {"owner": "VirtualMachineInstanceReplicaSet", "status": FIXED}
    scene.vm("set-bcdfg", "a", **replica)
    plan = planned(scene.lists, ["a"], ["b"], policies=[{"expression": "`true`", "policy": "restart"}])
    assert of(plan, "1.restart.shop/set-bcdfg").target == "b"
    assert of(plan, "2.restart.shop/set-bcdfg").object.uid == ""
    later = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    later.vm("set-vwxz2", "b", **replica)
    found = repaired(plan, later.lists, ended={action.id for action in plan.actions if action.batch == 1})
    assert [action.id for action in found.actions if action.batch == 2] == [
        "2.cordon.b",
        "2.restart.shop/set-vwxz2",
        "2.maintain.b",
        "2.uncordon.b",
    ]
    assert of(found, "2.restart.shop/set-vwxz2").object.uid == "vmi-set-vwxz2"
    assert differences(plan, found) == []


@pytest.mark.parametrize(("name", "other"), [("database", "dataform"), ("vm-22222", "vm-44444")])
def test_a_vm_that_keeps_its_name_is_not_found_in_another(name: str, other: str) -> None:
    """Though what a replica set makes could have such names."""
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm(name, "a", status=FIXED)
    plan = planned(scene.lists, ["a"], ["b"], policies=[{"expression": "`true`", "policy": "restart"}])
    assert of(plan, f"2.restart.shop/{name}").object.uid == ""
    assert identified(plan, 2, (), [Scene().vm(other, "b")]) == plan


def test_who_is_foretold_and_does_not_come_is_not_waited_for() -> None:
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm("vm-1", "a", status=FIXED)
    plan = planned(scene.lists, ["a"], ["b"], policies=[{"expression": "`true`", "policy": "restart"}])
    assert of(plan, "2.restart.shop/vm-1").object.uid == ""
    without = Scene(node("a"), node("b"), node("c", memory="1Gi")).lists
    found = repaired(plan, without, ended={action.id for action in plan.actions if action.batch == 1})
    second = [action.id for action in found.actions if action.batch == 2]
    assert second == ["2.cordon.b", "2.maintain.b", "2.uncordon.b"]

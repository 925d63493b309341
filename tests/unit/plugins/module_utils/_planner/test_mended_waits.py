# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the actions of a mended plan wait for: all for whom they have to, and nobody who is not there any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import with_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._planner.scene import (
    FIXED,
    HOST,
    ZONE,
    Json,
    Lists,
    Scene,
    apart,
    apart_but_own,
    migrating,
    near,
    node,
)


def planned(lists: Lists, *batches: list[str]) -> Plan:
    return plan_run(from_plain(lists), "patch", batches, PlanOptions(policies=[{"policy": "stop"}]))


def after(plan: Plan, name: str) -> set[str]:
    """Of an action, without cordons."""
    (action,) = (action for action in plan.actions if action.id == name)
    return {other for other in action.after if ".cordon." not in other}


def places(plan: Plan) -> dict[str, str | None]:
    """Where VMs go."""
    return {action.object.title: action.target for action in plan.actions if ".migrate." in action.id}


def without(lists: Lists, name: str) -> Lists:
    """The VM is gone."""
    gone = {
        kind: [item for item in lists[kind] if not item["metadata"]["name"].endswith(name)] for kind in ("vmis", "pods")
    }
    return {**lists, **gone}


def moving(vm: str, target: str) -> Json:
    return {
        "metadata": {
            "namespace": "shop",
            "name": f"m-{vm}",
            "uid": f"m-{vm}",
            "labels": {"virtops.kubevirt/run": "patch"},
        },
        "spec": {"vmiName": vm, "addedNodeSelector": {HOST: target}},
        "status": {"phase": "Running"},
    }


def one_behind_the_other() -> Scene:
    """The VM of b may enter the zone that the one of a has left, and who is stopped is the last of all."""
    scene = Scene(node("a", "x", role="front"), node("b", "y"), node("c", "x"), node("d", "z", role="front"))
    scene.vm("x-1", "a", rules={"nodeSelector": {"role": "front"}})
    scene.vm("y-1", "b", rules={"affinity": apart(ZONE, "x"), "nodeSelector": {ZONE: "x"}})
    scene.vm("tied-1", "a", rules={"nodeSelector": {HOST: "a"}})
    return scene


@pytest.mark.parametrize("begun", [[], [moving("x-1", "d")]])
@pytest.mark.parametrize("of", [None, "a"])
def test_who_was_waited_for_through_another_one_is_still_waited_for_when_that_is_gone(
    of: Any, begun: list[Json]
) -> None:
    lists = one_behind_the_other().lists
    plan = planned(lists, ["a", "b"])
    assert after(plan, "1.stop.shop/tied-1") == {"1.migrate.shop/y-1"}
    assert after(plan, "1.migrate.shop/y-1") == {"1.migrate.shop/x-1"}
    snapshot = from_plain({**without(lists, "y-1"), "migrations": begun})
    found = repair(plan, snapshot, node=of, ended={"1.cordon.a", "1.cordon.b"})
    assert after(found, "1.stop.shop/tied-1") == {"1.migrate.shop/x-1"}


@pytest.mark.parametrize("ended", [[], ["1.migrate.shop/x-1"]])
def test_who_goes_elsewhere_waits_for_the_pod_that_one_leaves_behind_that_has_been_migrated(ended: list[str]) -> None:
    """Somebody has deleted its migration, which would tell that the pod is about to end."""
    scene = one_behind_the_other()
    scene.lists["nodes"].append(node("e", "x"))
    plan = planned(scene.lists, ["a", "b"])
    target = places(plan)["shop/y-1"]
    migrating(scene.lists, "x-1", "d")
    scene.lists["vmis"][0]["status"]["nodeName"] = "d"
    scene.lists["migrations"].clear()
    assert target is not None
    found = repair(plan, from_plain(scene.lists), node="b", failures={"shop/y-1": [target]}, ended=ended)
    assert places(found)["shop/y-1"] == ("c" if target == "e" else "e")
    assert after(found, "1.migrate.shop/y-1") == {"1.migrate.shop/x-1"}


@pytest.mark.parametrize("first", ["1.migrate.shop/free-1", "1.migrate.shop/y-1"])
def test_so_it_does_if_that_one_has_left_out_of_turn(first: str) -> None:
    """Be it before one that has nothing to do with it, or before the very one that has to wait now."""
    scene = one_behind_the_other()
    scene.lists["nodes"].append(node("e", "x"))
    scene.vm("free-1", "a")
    plan = planned(scene.lists, ["a", "b"])
    cordons = ("1.cordon.a", "1.cordon.b")
    waits = {"1.migrate.shop/x-1": (*cordons, first), first: cordons}
    waiting = (replace(action, after=waits.get(action.id, action.after)) for action in plan.actions)
    plan = replace(plan, actions=tuple(sorted(waiting, key=lambda action: action.id not in (*cordons, first))))
    migrating(scene.lists, "x-1", "d")
    scene.lists["vmis"][0]["status"]["nodeName"] = "d"
    scene.lists["migrations"].clear()
    found = repair(plan, from_plain(scene.lists), node="b", failures={"shop/y-1": [places(plan)["shop/y-1"] or ""]})
    assert "1.migrate.shop/x-1" in after(found, "1.migrate.shop/y-1")
    assert {"1.migrate.shop/x-1", "1.migrate.shop/y-1", first} <= {action.id for action in found.actions}


def pets(status: Any) -> Lists:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("pet-1", "a", status=status)
    return scene.lists


@pytest.mark.parametrize("of", [None, "a"])
def test_the_next_batch_does_not_wait_for_who_need_not_start_again(of: Any) -> None:
    plan = planned(pets(FIXED), ["a"], ["b"])
    assert after(plan, "2.cordon.b") == {"1.uncordon.a", "1.start.shop/pet-1"}
    found = repair(plan, from_plain(pets({})), node=of)
    assert after(found, "2.cordon.b") == {"1.uncordon.a"}
    assert decode(encode(found)) == found
    kept = with_node(plan, found, "a")
    assert after(kept, "2.cordon.b") == {"1.uncordon.a"}
    assert decode(encode(kept)) == kept


@pytest.mark.parametrize("of", [None, "a"])
def test_the_next_batch_waits_for_who_is_stopped_after_all(of: Any) -> None:
    plan = planned(pets({}), ["a"], ["b"])
    assert after(plan, "2.cordon.b") == {"1.uncordon.a"}
    found = repair(plan, from_plain(pets(FIXED)), node=of)
    assert after(found, "2.cordon.b") == {"1.uncordon.a", "1.start.shop/pet-1"}
    assert after(with_node(plan, found, "a"), "2.cordon.b") == {"1.uncordon.a", "1.start.shop/pet-1"}


def test_a_pod_that_finds_no_node_any_more_leaves_after_the_others() -> None:
    """As in a plan that is made now: gone before them, it would be made again where another one is expected."""
    scene = Scene(*(node(name) for name in "abc"))
    for name in ("web-1", "web-2"):
        scene.pod(name, "a", affinity=apart(HOST, "web"))
    plan = planned(scene.lists, ["a"])
    assert {action.target for action in plan.actions if ".evict." in action.id} == {"b", "c"}
    scene.lists["nodes"][2]["spec"]["unschedulable"] = True
    found = repair(plan, from_plain(scene.lists))
    first, last = sorted(
        (action for action in found.actions if ".evict." in action.id), key=lambda entry: not entry.target
    )
    assert (first.target, last.target) == ("b", None)
    assert after(found, last.id) == {first.id}


def test_who_was_stopped_starts_when_a_newcomer_has_left_another_node() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.vm("pet-1", "a", status=FIXED)
    plan = planned(scene.lists, ["a", "b"])
    scene.vm("late-1", "b")
    found = repair(plan, from_plain(scene.lists))
    assert "1.migrate.shop/late-1" in after(found, "1.start.shop/pet-1")
    over = repair(
        plan, from_plain(without(scene.lists, "pet-1")), ended={"1.cordon.a", "1.cordon.b", "1.stop.shop/pet-1"}
    )
    assert "1.migrate.shop/late-1" in after(over, "1.start.shop/pet-1")


def test_who_waits_for_another_node_s_vm_goes_by_where_that_goes_now() -> None:
    scene = Scene(*(node(name) for name in "abcd"))
    scene.vm("lead", "b")
    scene.vm("near", "a", rules={"affinity": near(HOST, "lead")})
    plan = planned(scene.lists, ["a", "b"])
    target = places(plan)["shop/lead"]
    assert places(plan) == {"shop/lead": target, "shop/near": target}
    next(entry for entry in scene.lists["nodes"] if entry["metadata"]["name"] == target)["spec"]["unschedulable"] = True
    found = repair(plan, from_plain(scene.lists), node="a")
    assert decode(encode(found)) == found
    assert places(found)["shop/near"] == places(found)["shop/lead"] != target
    assert after(found, "1.migrate.shop/near") == {"1.migrate.shop/lead"}


def test_what_gives_nodes_back_waits_for_the_others_when_one_is_out_of_the_plan() -> None:
    """So it names them all, although it would wait for them by way of that one as well."""
    plan = planned(one_behind_the_other().lists, ["a", "b"], ["c"])
    rest = left(plan, {"1.stop.shop/tied-1", "1.start.shop/tied-1"})
    assert after(rest, "1.maintain.a") == {"1.migrate.shop/x-1"}
    assert after(rest, "2.cordon.c") == {"1.uncordon.a", "1.uncordon.b"}
    assert after(left(plan, {"1.stop.shop/tied-1"}), "1.start.shop/tied-1") == {"1.uncordon.a", "1.migrate.shop/y-1"}


def test_a_node_is_planned_anew_while_a_vm_of_another_one_is_being_shut_down() -> None:
    scene = Scene(*(node(name) for name in ("a", "b", "c")))
    scene.vm("vm", "a")
    scene.vm("fixed", "b", status=FIXED)
    plan = planned(scene.lists, ["a", "b"])
    scene.lists["vmis"][1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert repair(plan, from_plain(scene.lists), node="a") == plan


def test_who_is_waited_for_gets_no_place_of_who_waits_for_it_on_another_node() -> None:
    some = (node("c", "zc", kind="x"), node("e", "zb", kind="x"))
    scene = Scene(node("a", "za"), node("b", "zb"), node("d", "za"), *some)
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {HOST: "d"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    assert places(plan) == {"shop/db-1": "c", "shop/db-2": "d"}
    assert after(plan, "1.migrate.shop/db-2") == {"1.migrate.shop/db-1"}
    assert repair(plan, from_plain(scene.lists), node="a", failures={"shop/db-1": ["c"]}) == plan


def test_who_is_on_its_way_by_the_plan_of_another_node_is_waited_for() -> None:
    """That plan has found it a place since this one was made."""
    scene = Scene(node("a", "za"), node("b", "zb"), node("c", "zc", cordoned=True), node("e", "zb", kind="x"))
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {HOST: "c"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    assert places(plan) == {}
    scene.lists["nodes"][2]["spec"]["unschedulable"] = False
    scene.lists["migrations"] = [moving("db-2", "c")]
    mended = repair(plan, from_plain(scene.lists), node="a")
    assert places(mended) == {"shop/db-1": "e", "shop/db-2": "c"}
    assert after(mended, "1.migrate.shop/db-1") == {"1.migrate.shop/db-2"}


def test_who_is_on_its_way_elsewhere_is_waited_for_where_it_goes() -> None:
    nodes = [node("a", "za"), node("b", "zb"), node("c", "zc", kind="y"), node("d", "zd", kind="y")]
    scene = Scene(*nodes, node("e", "zb", kind="x"), node("f", "zf", kind="x"))
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "y"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    assert (places(plan)["shop/db-1"], after(plan, "1.migrate.shop/db-1")) == ("f", set())
    other = {"c": "d", "d": "c"}[places(plan)["shop/db-2"] or ""]
    scene.lists["migrations"] = [moving("db-2", other)]
    mended = repair(plan, from_plain(scene.lists), node="a", failures={"shop/db-1": ["f"]})
    assert places(mended) == {"shop/db-1": "e", "shop/db-2": other}
    assert after(mended, "1.migrate.shop/db-1") == {"1.migrate.shop/db-2"}


def by_each_other() -> tuple[Scene, Plan]:
    """The VM of b waits for the one of a, as it did for a place that it does not go to any more."""
    some = (node("c", "zc", kind="x"), node("e", "zb", kind="x"), node("g", "zg", kind="y", cordoned=True))
    scene = Scene(node("a", "za"), node("b", "zb"), node("d", "za", kind="y"), *some)
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "y"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    cordon(scene, "g", False)
    cordon(scene, "d", True)
    found = repair(plan, from_plain(scene.lists))
    assert places(found) == {"shop/db-1": "c", "shop/db-2": "g"}
    assert after(found, "1.migrate.shop/db-2") == {"1.migrate.shop/db-1"}
    return scene, found


def cordon(scene: Scene, name: str, value: bool) -> None:
    next(entry for entry in scene.lists["nodes"] if entry["metadata"]["name"] == name)["spec"]["unschedulable"] = value


@pytest.mark.parametrize("by_cordon", [True, False])
def test_nobody_gets_the_place_of_who_waits_for_it_for_a_reason_that_is_no_more(*, by_cordon: bool) -> None:
    scene, plan = by_each_other()
    cordon(scene, "c", by_cordon)
    found = repair(plan, from_plain(scene.lists), node="a", failures={} if by_cordon else {"shop/db-1": ["c"]})
    assert [entry.passing for entry in found.blocked] == [True] * by_cordon
    assert places(found) == ({} if by_cordon else {"shop/db-1": "c", "shop/db-2": "g"})


def test_who_is_on_its_way_is_waited_for_also_where_it_was_made_anew() -> None:
    """As it was restarted on its node since the plan was made, which the process of that node has seen."""
    scene = Scene(
        node("a", "za"),
        node("b", "zb"),
        node("c", "zc", kind="y"),
        node("e", "zb", kind="x"),
        node("f", "zf", kind="x"),
    )
    scene.vm("db-1", "a", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "x"}})
    scene.vm("db-2", "b", rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {"kind": "y"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions())
    assert places(plan) == {"shop/db-1": "f", "shop/db-2": "c"}
    (vmi,) = (item for item in scene.lists["vmis"] if item["metadata"]["name"] == "db-2")
    old, vmi["metadata"]["uid"] = vmi["metadata"]["uid"], "another"
    for pod in scene.lists["pods"]:
        for owner in pod["metadata"].get("ownerReferences", ()):
            owner["uid"] = "another" if owner["uid"] == old else owner["uid"]
    scene.lists["migrations"] = [moving("db-2", "c")]
    found = repair(plan, from_plain(scene.lists), node="a", failures={"shop/db-1": ["f"]})
    assert {action.object.uid for action in found.actions if action.object.name == "db-2"} == {"another"}
    assert after(found, "1.migrate.shop/db-1") == {"1.migrate.shop/db-2"}


def test_who_waits_for_a_restart_goes_nowhere_where_somebody_is_whom_it_must_not_meet() -> None:
    """The restart has begun out of turn; who was to leave that zone before it stays there, as its migration failed."""
    zones = {"a": "za", "b": "zb", "c": "zc", "d": "za", "e": "zb", "f": "zc"}
    scene = Scene(*(node(name, zone) for name, zone in zones.items()))
    apart_in_zones = {"affinity": apart_but_own(ZONE, "db")}
    scene.vm("db-1", "b", rules=apart_in_zones)
    scene.vm("db-2", "a", rules=apart_in_zones)
    fixed = scene.vm("fixed-1", "b", status=FIXED)
    options = PlanOptions(policies=[{"policy": "restart"}])
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], options)
    assert places(plan) == {"shop/db-1": "c", "shop/db-2": "d"}
    by_title = {action.object.title: action for action in plan.actions}
    first, restart, second = (by_title[f"shop/{name}"] for name in ("db-1", "fixed-1", "db-2"))
    second = replace(second, target="e", selector={HOST: "e"}, after=(restart.id,))
    leaving = (first, replace(restart, after=(first.id,)), second)
    others = [action for action in plan.actions if action.id not in {entry.id for entry in leaving}]
    given = replace(plan, actions=(*others[:2], *leaving, *others[2:]))
    fixed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    failures = {"shop/db-1": ["c"], "shop/db-2": ["d"]}
    mended = repair(given, from_plain(scene.lists), node="a", failures=failures)
    assert (places(mended)["shop/db-2"], after(mended, second.id)) == ("c", {first.id})


@pytest.mark.parametrize(("third", "place"), [("", "zc"), ("f", "za")], ids=["a free zone", "only that one"])
def test_who_comes_does_not_wait_for_one_of_another_node_whose_way_it_is_in(third: str, place: str) -> None:
    """That one is left as it is, as its own drain may change it alone; it takes its place only if there is no other."""
    zones = {"a": "za", "b": "zb", "c": "zc", "d": "za", "e": "zb", "f": "zc"}
    scene = Scene(*(node(name, zone) for name, zone in zones.items()))
    apart_in_zones = {"affinity": apart_but_own(ZONE, "db")}
    scene.vm("db-1", "b", rules=apart_in_zones)
    if third:
        scene.vm("db-3", third, rules=apart_in_zones)
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions(targets={"shop/db-1": "d"}))
    assert places(plan) == {"shop/db-1": "d"}
    scene.vm("db-2", "a", rules=apart_in_zones)
    mended = repair(plan, from_plain(scene.lists), node="a")
    assert places(mended)["shop/db-1"] == "d"
    assert (zones[places(mended)["shop/db-2"] or ""], after(mended, "1.migrate.shop/db-2")) == (place, set())


def test_nor_does_it_wait_for_who_goes_after_that_one() -> None:
    """Else each of the three waits for the next one."""
    zones = {"a": "za", "b": "zx", "k": "zk", "c": "zx", "d": "za", "f": "zf"}
    scene = Scene(*(node(name, zone) for name, zone in zones.items()))
    apart_in_zones = {"affinity": apart_but_own(ZONE, "x")}
    scene.vm("x-1", "b", rules=apart_in_zones)
    scene.vm("y-1", "k", rules={"affinity": apart(ZONE, "x"), "nodeSelector": {ZONE: "zx"}})
    options = PlanOptions(targets={"shop/x-1": "d", "shop/y-1": "c"})
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b", "k"]], options)
    assert after(plan, "1.migrate.shop/y-1") == {"1.migrate.shop/x-1"}
    scene.vm("x-2", "a", rules=apart_in_zones)
    mended = repair(plan, from_plain(scene.lists), node="a")
    assert (places(mended)["shop/x-2"], after(mended, "1.migrate.shop/x-2")) == ("f", set())
    again = repair(mended, from_plain(scene.lists), node="b")
    assert (places(again)["shop/x-1"], after(again, "1.migrate.shop/x-1")) == ("d", {"1.migrate.shop/x-2"})

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import (
    for_node,
    has_left,
    left,
    ready,
    stages,
    undone,
)

from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

X = action(ActionKind.MIGRATE, vm("x"), "n1", "n3")
Y = action(ActionKind.MIGRATE, vm("y"), "n2", "n4", X)
API = action(ActionKind.EVICT, pod("api"), "n1")


def test_what_waits_begins_when_what_it_waits_for_has_ended() -> None:
    assert ready([X, Y, API], ()) == (X, API)
    assert ready([X, Y, API], {X.id}) == (Y, API)
    assert [entry.after for entry in left(plan(X, Y, API), {X.id}).actions] == [(), ()]


def test_stages_are_as_early_as_what_they_wait_for_lets_them_be() -> None:
    last = action(ActionKind.MIGRATE, vm("last"), "n1", "n2", API, Y)
    assert stages(plan(X, Y, API, last)) == [(X, API), (Y,), (last,)]
    assert stages(plan()) == []


def test_a_node_waits_for_actions_of_others() -> None:
    assert for_node(plan(X, Y, API), "n2").actions == (X, Y)
    assert for_node(plan(X, Y, API), "n1").actions == (X, API)


def test_what_is_elsewhere_or_gone_has_left() -> None:
    assert not has_left(X, {"uid-x": "n1"})
    assert has_left(X, {"uid-x": "n9"})
    assert has_left(X, {})


def test_differences_are_told() -> None:
    before = plan(X, Y, API)
    other = replace(X, target="n5", selector={})
    stuck = Blocked(vm("y"), "n2", ("no node fits",), passing=True)
    new = action(ActionKind.STOP, vm("z"), "n1")
    assert differences(before, before) == []
    assert differences(before, plan(other, new, blocked=(stuck,))) == [
        "VM shop/x goes to n5; it was: goes to n3",
        "VM shop/z stops until its node is back, which is new",
        "pod shop/api has nothing to do any more; it was: is evicted",
        "VM shop/y has to wait: no node fits",
        "the batches are n1; they were n1+n2",
    ]


def test_another_order_and_another_object_are_differences() -> None:
    assert differences(plan(X, replace(Y, after=())), plan(X, Y)) == ["VM shop/y waits for 1.migrate.shop/x"]
    twin = replace(X, object=vm("x", "another"))
    assert differences(plan(X), plan(twin)) == ["VM shop/x is another one of the same name"]


def test_who_comes_back_elsewhere_is_told_as_of_what_may_pass() -> None:
    stop, start = action(ActionKind.STOP, vm("x"), "n1"), action(ActionKind.START, vm("x"), "n1", "n1")
    early, late = plan(stop, start), plan(stop, replace(start, target="n2"))
    assert differences(early, late) == ["VM shop/x comes back on n2; it was: comes back on n1"]
    assert differences(late, plan(stop, replace(start, target=None))) == [
        "VM shop/x has no node to come back to; it was: comes back on n2"
    ]
    assert differences(early, late, passing=False) == []
    other = action(ActionKind.START, vm("z"), "n1", "n1")
    alone, behind = plan(start, other), plan(start, replace(other, after=(start.id,)))
    assert differences(alone, behind) == ["VM shop/z starts after 1.start.shop/x"]
    assert (differences(behind, alone), differences(alone, behind, passing=False)) == ([], [])
    assert differences(early, plan(X)) == [
        "VM shop/x goes to n3, as it can be migrated; it was: stops until its node is back",
    ]


def test_on_the_whole_it_is_told_who_waits_for_less_and_what_plans_are_made_for() -> None:
    free = plan(X, replace(Y, after=()))
    assert differences(plan(X, Y), free) == []
    assert differences(plan(X, Y), free, whole=True) == ["VM shop/y does not wait for 1.migrate.shop/x any more"]
    # Who has left is not waited for, which is no news.
    assert differences(plan(Y), plan(replace(Y, after=())), whole=True) == []
    asked = replace(plan(X), options={"room": 3, "allowed": ["force"], "reserve": "none", "avoid": []})
    other = replace(asked, options={"room": 2, "allowed": [], "reserve": "none"})
    other = replace(other, cluster=replace(asked.cluster, kubevirt="v1.9.0"))
    assert differences(asked, other) == []
    assert differences(asked, other, whole=True) == [
        "it was asked for with other allowances for evictions, room",
        f"it is for KubeVirt v1.9.0; the one before is for {asked.cluster.kubevirt}",
    ]


def test_what_passes_no_more_and_a_node_that_is_free_again_are_differences() -> None:
    stuck = Blocked(vm("y"), "n2", ("no node fits",), passing=True)
    lasting = [differences(plan(X, blocked=(stuck,)), plan(X, blocked=(replace(stuck, passing=False),)))]
    assert lasting == [["VM shop/y cannot leave: no node fits"]]
    kept = [Blocked(ObjectReference("Node", "", name, ""), name, ("too little is left",)) for name in ("n1", "n9")]
    free = differences(plan(X, blocked=tuple(kept)), plan(X))
    assert free == ["node n1 can be out of service after all"], "n9 is not maintained any more"
    assert differences(plan(X, blocked=tuple(kept)), plan(X, blocked=tuple(kept))) == []


def test_a_batch_of_another_number_is_no_difference() -> None:
    """Who leaves out a node hears of that, and not of everybody after it."""
    late = [action(ActionKind.MIGRATE, vm("y"), "n2", "n4", batch=2)]
    late.append(action(ActionKind.EVICT, pod("api"), "n2", None, late[0], batch=2))
    early = [action(ActionKind.MIGRATE, vm("y"), "n2", "n4")]
    early.append(action(ActionKind.EVICT, pod("api"), "n2", None, early[0]))
    assert differences(plan(X, *late), plan(*early)) == [
        "VM shop/x has nothing to do any more; it was: goes to n3",
        "the batches are n2; they were n1, n2",
    ]
    assert differences(plan(X, *late), undone(plan(X, *late), ["n1"])) == [
        "VM shop/x has nothing to do any more; it was: goes to n3",
        "the batches are n2; they were n1, n2",
    ]
    assert differences(undone(plan(X, *late), ["n1"]), plan(*early)) == []


def test_a_vm_that_leaves_another_node_of_its_batch_is_no_difference() -> None:
    assert differences(plan(X, Y), plan(replace(X, node="n2", source="n2"), Y)) == [
        "the batches are n2; they were n1+n2"
    ]


def test_a_cordon_that_is_waited_for_is_one_of_the_batches() -> None:
    cordon = action(ActionKind.CORDON, ObjectReference("Node", "", "n2", ""), "n2")
    assert differences(plan(X), plan(cordon, replace(X, after=(cordon.id,)))) == ["the batches are n2+n1; they were n1"]


def test_what_was_foretold_has_got_its_name_by_now() -> None:
    """Of a VM that keeps it another one is not what was foretold, though it begins alike and is as long."""

    def foretold(name: str) -> Action:
        return action(ActionKind.RESTART, ObjectReference("VirtualMachineInstance", "shop", name, ""), "n1", "n3")

    def there(name: str) -> Action:
        return action(ActionKind.RESTART, vm(name), "n1", "n3")

    assert differences(plan(foretold("db-x2v9c")), plan(there("db-bbbbb"))) == []
    assert differences(plan(foretold("database")), plan(there("database"))) == []
    assert differences(plan(foretold("database")), plan(there("dataform"))) == [
        "VM shop/dataform starts anew on n3, which is new"
    ]
    assert differences(plan(foretold("data")), plan(there("datab2c4d"))) != [], "a set of the name of a VM"


def test_plans_of_two_clusters_are_not_compared() -> None:
    other = replace(plan(X), cluster=replace(plan(X).cluster, uid="another"))
    assert differences(other, plan(Y)) == ["it is for cluster uid-of-cluster; the one before is for cluster another"]
    nowhere = replace(plan(X), cluster=replace(plan(X).cluster, uid=""))
    assert differences(nowhere, plan(X)) == []


def test_why_not_is_told_of_the_node_that_was_planned_alone() -> None:
    """A plan that was mended twice does not say of its first node what is wrong with its second one."""
    again = replace(X, target="n9").instead_of("n4", "n4 is full")
    (line,) = differences(plan(X), plan(again))
    assert line == "VM shop/x goes to n9; it was: goes to n3"
    (line,) = differences(plan(replace(X, target="n4")), plan(again))
    assert line == "VM shop/x goes to n9, as n4 is full; it was: goes to n4"

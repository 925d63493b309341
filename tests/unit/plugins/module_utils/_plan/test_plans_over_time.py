# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Blocked
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import (
    for_node,
    has_left,
    left,
    ready,
    stages,
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

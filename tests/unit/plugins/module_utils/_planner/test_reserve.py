# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left in reserve is told of each batch, and batches that leave too little are made smaller or refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import (
    BatchRules,
    Failing,
    PlanOptions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from checker.check import violations
from unit.plugins.module_utils._planner.scene import Lists, Scene, migrating, node

GIB = 2**30


def scene(*vms: str, zones: str = "aabb", memory: str = "8Gi") -> Scene:
    """Nodes n1, n2, … in zones, with VMs of 2 GiB on those that are named."""
    made = Scene(*(node(f"n{number}", zone, memory) for number, zone in enumerate(zones, start=1)))
    for number, place in enumerate(vms):
        made.vm(f"vm-{number}", place, "2Gi")
    return made


def plan(lists: Lists, *batches: list[str], **options: Any) -> Plan:
    found = plan_run(from_plain(lists), "patch", batches, PlanOptions(**options))
    assert decode(encode(found)) == found
    assert violations(lists, found) == []
    return found


def reserves(found: Plan) -> list[int | None]:
    """Of each batch, in whole GiB, rounded down; a VM takes a little more than its guest."""
    return [None if amount is None else amount // GIB for amount in found.totals.batch_reserves]


def test_the_memory_that_is_free_when_one_more_node_fails() -> None:
    """Of three nodes one has the VM, which then needs a little over 2 GiB of the 16 that the others have."""
    assert reserves(plan(scene("n2").lists, ["n1"])) == [13]


def test_what_leaves_the_batch_counts_where_it_goes() -> None:
    lists = scene("n1", "n1", "n1", zones="aaa").lists
    # n2 and n3 have all of it then: whichever fails, the other one has 8 GiB less all three.
    assert reserves(plan(lists, ["n1"])) == [1]


def test_of_one_node_alone_nothing_is_left() -> None:
    assert reserves(plan(scene("n1", zones="aa").lists, ["n1"])) == [-3]
    assert reserves(plan(scene(zones="a").lists, ["n1"])) == [None]


def test_a_zone_fails_as_a_whole() -> None:
    lists = scene("n1", "n2", "n3", "n4").lists
    # Zone a has one node left, and zone b two with at least one VM each.
    node_fails, zone_fails = (plan(lists, ["n1"], reserve=failing) for failing in (Failing.LARGEST_NODE, Failing.ZONE))
    assert node_fails.totals.batch_reserves[0] > zone_fails.totals.batch_reserves[0]  # type: ignore[operator]


def test_nodes_count_that_take_vms() -> None:
    lists = scene("n2").lists
    for number in (2, 3):
        lists["nodes"][number]["metadata"]["labels"]["kubevirt.io/schedulable"] = "false"
    assert reserves(plan(lists, ["n1"])) == [-3]


def test_without_a_wish_nothing_is_refused() -> None:
    assert plan(scene("n1", zones="aa").lists, ["n1"]).verdict is Verdict.FEASIBLE


def test_a_batch_that_leaves_too_little_says_so() -> None:
    found = plan(scene("n1", "n3", zones="aaa").lists, ["n1", "n2"], ["n3"], reserve=Failing.LARGEST_NODE)
    assert found.verdict is Verdict.PARTIAL
    assert [(entry.object.kind, entry.node, entry.passing) for entry in found.blocked] == [
        ("Node", "n1", False),
        ("Node", "n2", False),
    ]
    (reason,) = found.blocked[0].reasons
    assert reason.startswith("if node n3 fails then, 4.")
    assert reason.endswith(" GiB of memory are missing for its VMs")
    assert found.blocked[0].obstacle.id == "no-reserve"


@pytest.mark.parametrize(("reserve", "sizes"), [(Failing.NONE, [2, 2]), (Failing.LARGEST_NODE, [1, 1, 1, 1])])
def test_batches_are_smaller_where_that_keeps_the_reserve(reserve: Failing, sizes: list[int]) -> None:
    lists = scene("n1", "n1", "n2", "n2", "n3", zones="aaaa").lists
    options = PlanOptions(batching=BatchRules(size=2), reserve=reserve)
    found = plan_whole_run(from_plain(lists), "patch", ["n1", "n2", "n3", "n4"], options)
    assert ([len(nodes) for nodes in found.batches], found.verdict) == (sizes, Verdict.FEASIBLE)
    assert violations(lists, found) == []


def test_who_is_stopped_needs_no_memory_elsewhere() -> None:
    made = scene("n2", zones="aaa")
    refused = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}
    made.vm("large", "n1", "6Gi", status={"conditions": [refused]})
    found = plan(made.lists, ["n1"], policies=[{"policy": "stop"}])
    assert reserves(found) == [5]


def test_who_is_on_its_way_counts_where_it_goes_and_once() -> None:
    made = scene("n1", zones="aaa")
    before = plan(made.lists, ["n1"]).totals.batch_reserves
    migrating(made.lists, "vm-0", "n2")
    assert plan(made.lists, ["n1"]).totals.batch_reserves == before


def test_who_is_just_starting_counts_where_its_pod_is() -> None:
    """No node is named as its VMI's yet, and it would need room elsewhere all the same."""
    made = scene("n2", "n2", "n2", zones="aaa")
    # Room for two of the three.
    made.lists["nodes"][2]["status"]["allocatable"]["memory"] = "6Gi"
    del made.lists["vmis"][-1]["status"]["nodeName"]
    made.lists["vmis"][-1]["status"]["phase"] = "Scheduling"
    found = plan(made.lists, ["n1"], reserve=Failing.LARGEST_NODE)
    assert [entry.obstacle.id for entry in found.blocked] == ["no-reserve"]


def test_a_reserve_that_is_gone_when_the_batch_begins_keeps_it_from_that() -> None:
    made = scene("n1", zones="aaa")
    found = plan(made.lists, ["n1"], reserve=Failing.LARGEST_NODE)
    assert found.verdict is Verdict.FEASIBLE
    assert repair(found, from_plain(made.lists)) == found
    made.lists["nodes"][2]["spec"]["unschedulable"] = True
    mended = repair(found, from_plain(made.lists))
    assert [(entry.object.kind, entry.node) for entry in mended.blocked] == [("Node", "n1")]
    # Who is under way is not left half way.
    (cordon,) = (action.id for action in found.actions if action.kind.value == "cordon")
    assert repair(found, from_plain(made.lists), ended=[cordon]).blocked == ()


def test_the_reserve_of_a_later_batch_is_looked_at_when_that_begins() -> None:
    """Of the batches before it much has ended then, which is no beginning of its own."""
    made = scene("n1", "n2", zones="aaaa")
    found = plan(made.lists, ["n1"], ["n2"], reserve=Failing.LARGEST_NODE)
    assert found.verdict is Verdict.FEASIBLE
    first = [action.id for action in found.actions if action.batch == 1]
    for number in (0, 3):
        made.lists["nodes"][number]["spec"]["unschedulable"] = True
    mended = repair(found, from_plain(made.lists), ended=first)
    assert [(entry.object.kind, entry.node) for entry in mended.blocked] == [("Node", "n2")]

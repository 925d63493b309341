# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmark of maintenance_plan makes the module do."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.filled import Lists, Wanted, filled_cluster
from benchmarks.planned_by_module import by_module, exchanged


@pytest.fixture(scope="module")
def lists() -> Lists:
    return filled_cluster(Wanted(nodes=9, vms=30, fill=0.5))


def test_some_vms_change_places_with_others_of_their_application(lists: Lists) -> None:
    found = exchanged(lists)
    places = [
        (vmi["status"]["nodeName"], pod["spec"]["nodeName"])
        for vmi, pod in zip(found["vmis"], found["pods"], strict=True)
    ]
    assert all(node == pod for node, pod in places)
    moved = [new for new, old in zip(found["vmis"], lists["vmis"], strict=True) if new != old]
    assert len(moved) == 2
    assert len({vmi["metadata"]["labels"]["app"] for vmi in moved}) == 1
    crowds = [Counter(vmi["status"]["nodeName"] for vmi in each["vmis"]) for each in (found, lists)]
    assert crowds[0] == crowds[1]


def test_the_module_plans_and_then_mends_what_was_approved(lists: Lists) -> None:
    nodes = [str(node["metadata"]["name"]) for node in lists["nodes"]]
    made = by_module(lists, nodes, "given", 1, 0, approved=False)
    taken = by_module(lists, nodes, "given", 1, 0, approved=True)
    assert (made.verdict, made.batches, made.differences) == ("feasible", 9, 0)
    assert (taken.verdict, taken.batches) == ("feasible", 9)
    assert taken.differences > 0
    assert min(made.migrations, taken.migrations) >= 30
    assert min(made.size, made.wall, made.cpu, taken.wall, taken.cpu) > 0

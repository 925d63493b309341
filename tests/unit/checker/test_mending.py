# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters that are mended on the way are as right as fresh ones."""

from __future__ import annotations

import pytest

from unit.checker.mending import faults, flaws


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 24, 2))
def test_plans_are_right_when_they_are_mended_on_the_way(first: int) -> None:
    assert list(faults(range(first, first + 2))) == []


@pytest.mark.parametrize("moment", [4215, 4648])
def test_nobody_waits_for_vms_that_do_not_start_again(moment: int) -> None:
    assert list(flaws(moment, whole=True)) == []


@pytest.mark.parametrize("moment", [2444, 4116, 4572])
def test_pods_that_find_no_node_any_more_take_no_place_of_others(moment: int) -> None:
    assert list(flaws(moment)) == []


@pytest.mark.parametrize("moment", [69, 368])
def test_who_mends_a_plan_for_one_node_goes_by_where_others_go_then(moment: int) -> None:
    assert list(flaws(moment)) == []


def test_who_mends_a_plan_for_one_node_counts_on_nobody_to_be_shut_down_on_another() -> None:
    assert list(flaws(4855)) == []


def test_who_comes_to_another_node_of_the_batch_leaves_that_as_well() -> None:
    assert list(flaws(4229)) == []


def test_nobody_comes_where_others_are_still_to_start() -> None:
    assert list(flaws(4321)) == []


def test_who_waits_for_an_eviction_goes_only_where_there_is_room() -> None:
    assert list(flaws(4727)) == []

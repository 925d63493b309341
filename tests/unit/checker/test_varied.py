# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of clusters with taints, disks of zones, devices, quotas and budgets can be carried out as well as others."""

from __future__ import annotations

import pytest

from unit.checker.varied_clusters import faults

CLUSTERS, CHUNK = 500, 50
# Pods that have waited for a node since an earlier batch hold their budgets.
HELD = (97, 333)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 48, 12))
def test_plans_of_a_few_varied_clusters(first: int) -> None:
    assert list(faults(range(first, first + 12))) == []


@pytest.mark.parametrize("seed", HELD)
def test_plans_reckon_with_budgets_that_hold_others_by_then(seed: int) -> None:
    assert list(faults([seed])) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, CHUNK))
def test_plans_of_many_varied_clusters(first: int) -> None:
    assert list(faults(range(first, first + CHUNK))) == []

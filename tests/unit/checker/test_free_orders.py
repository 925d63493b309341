# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters in a free order can be carried out as well as those in a given one."""

from __future__ import annotations

import pytest

from unit.checker.free_orders import faults


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 24, 2))
def test_plans_in_a_free_order_are_right(first: int) -> None:
    assert list(faults(range(first, first + 2))) == []

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from testbed.simulator.quantity import number


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("0", 0),
        (8, 8),
        ("64Mi", 64 * 2**20),
        ("1Gi", 2**30),
        ("16G", 16e9),
        ("1500m", 1.5),
        ("2e9", 2e9),
        ("1.5k", 1500),
    ],
)
def test_values(quantity: str | int, value: float) -> None:
    assert number(quantity) == value


def test_anything_else_is_refused() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        number("many")

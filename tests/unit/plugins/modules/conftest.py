# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from unit.plugins.support.unhurried import unhurried


@pytest.fixture(autouse=True)
def unhurried_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    unhurried(monkeypatch)

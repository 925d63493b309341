# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Options
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the scheduler is asked where somebody could go, by who it is."""
    found: Counter[str] = Counter()
    ask = Board.options

    def options(board: Board, mover: Mover, profile: Profile) -> Options:
        found[mover.key] += 1
        return ask(board, mover, profile)

    monkeypatch.setattr(Board, "options", options)
    return found

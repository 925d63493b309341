# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from hypothesis.stateful import RuleBasedStateMachine


class Driven(RuleBasedStateMachine):
    """steps: that all of this class have taken so far."""

    steps = 0

    @classmethod
    def _count(cls, number: int = 1) -> None:
        cls.steps += number

    @staticmethod
    def _pick(items: list[Any], which: int) -> Any:
        return items[which % len(items)]

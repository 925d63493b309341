# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all machines have in common: they count what they do."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, rule

from unit.plugins.module_utils._execution.simulation.world import World


class Driven(RuleBasedStateMachine):
    """histories, steps: that all of this class have gone through so far. happened: how often, by what has happened.

    holds: what must hold has held so far.
    """

    histories = 0
    steps = 0
    happened: Counter[str]
    world: World
    holds = True

    def __init_subclass__(cls) -> None:
        cls.happened = Counter()

    @classmethod
    def _count(cls, number: int = 1) -> None:
        cls.steps += number

    def teardown(self) -> None:
        """After one history."""
        cls = type(self)
        cls.histories += 1
        cls.happened.update(self.world.happened)

    @staticmethod
    def _pick(items: list[Any], which: int) -> Any:
        return items[which % len(items)]


def happens(**given: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule, of which it is counted how often it applies. given: a strategy for each argument."""
    made: Any = rule(**given)

    def counted(function: Callable[..., None]) -> Any:
        @functools.wraps(function)
        def count(self: Driven, **values: Any) -> None:
            self.world.happened[function.__name__.replace("_", " ")] += 1
            self.holds = False
            function(self, **values)
            self.holds = True

        return made(count)

    return counted

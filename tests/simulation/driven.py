# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines have in common: they count what they do, and all drives of a plan suffer some of the same."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from simulation import controllers, requests
from simulation.judge import Judge
from simulation.moves_judge import MovesJudge
from simulation.world import World

BYTES = st.binary(min_size=12, max_size=12)
SMALL = st.integers(0, 15)


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


class Disturbed(Driven):
    """A plan that is carried out. time_goes_by: the rule of its everyday course, with choices of what happens."""

    judge: Judge | MovesJudge
    time_goes_by: Any

    @happens(choices=BYTES)
    def nobody_looks(self, choices: bytes) -> None:
        for choice in choices:
            controllers.take(self.world, choice)
            self.judge.moment()
        self._count(len(choices))

    @precondition(lambda self: self.world.migrations)
    @happens(then=BYTES, which=SMALL)
    def somebody_deletes_a_migration(self, then: bytes, which: int) -> None:
        requests.delete(self.world, self._pick(list(self.world.migrations.values()), which))
        self._disturbed(then)

    @happens(then=BYTES)
    def a_budget_changes(self, then: bytes) -> None:
        self.world.tight = not self.world.tight
        self._disturbed(then)

    def _disturbed(self, then: bytes) -> None:
        self._count()
        self.time_goes_by(choices=then)

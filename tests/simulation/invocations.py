# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives one run that another invocation goes on with, while the one that had it stands still, or does not know yet."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from simulation.chances import Chances
from simulation.driven import BYTES, SMALL, happens
from simulation.fates import DRAWN
from simulation.machine import Simulation, TwoBatches, TwoNodes
from simulation.planning import ByProduct
from simulation.world import LEASE

# Invocations, more of which make nothing else happen.
_MOST = 3


class TwoInvocations(Simulation):
    """The last one holds the run. What one was let through to do before it stood still, nothing keeps it from."""

    batch: tuple[str, ...] = ("n1",)

    @happens(which=SMALL, lagging=st.integers(0, 7), fates=DRAWN, at=st.integers(0, 3))
    def stands_still(self, which: int, lagging: int, fates: int, at: int) -> None:
        self._process(which).tick(Chances(lagging, fates=fates, pausing=at))
        self._count()

    @happens(then=BYTES, which=SMALL, fates=DRAWN)
    def wakes(self, then: bytes, which: int, fates: int) -> None:
        self._process(which).wake(fates)
        self._disturbed(then)

    @precondition(lambda self: self.world.holder < _MOST - 1)
    @happens(then=BYTES, forced=st.booleans(), remembering=st.booleans())
    def another_one_takes_over(self, then: bytes, forced: bool, remembering: bool) -> None:
        """By force, or as the Lease has not been renewed for as long as it lasts."""
        world = self.world
        holders = [process for process in self.processes if process.invocation == world.holder]
        if not forced:
            for process in holders:
                process.is_paused = True
            world.now += LEASE
        world.take_over()
        self.processes += [
            process.heir(world, self.judge, world.holder, remembering=remembering) for process in holders
        ]
        self._disturbed(then)

    def teardown(self) -> None:
        try:
            for process in self.processes if self.holds else ():
                process.wake()
            super().teardown()
        finally:
            for process in self.processes:
                process.leave()


class TwoInvocationsOfTwoNodes(TwoInvocations, TwoNodes):
    """Each drains both nodes."""

    batch = TwoNodes.batch


class TwoInvocationsOfTwoBatches(TwoInvocations, TwoBatches):
    """The last one gives the first node back, and goes on with the second one."""


class TwoInvocationsAsPlanned(TwoInvocations):
    """By the product's planner, whose plan in force the next one finds."""

    planning = ByProduct([TwoInvocations.batch])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives a drain and what gives its node back in one history: at its end, or by an abort in the midst of it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from simulation import controllers
from simulation.aborting import abort
from simulation.chances import Chances
from simulation.driven import BYTES, Driven, happens
from simulation.fates import BITS, DRAWN
from simulation.machine import OneNode
from simulation.returning import Return
from simulation.world import OURS, ZONES

_ROUNDS = 30


class Restored(OneNode):
    """What was stopped for the node runs again, or is named. The drain may hear only later that it has lost the run."""

    def __init__(self) -> None:
        super().__init__()
        self.task: Return | None = None

    @precondition(lambda self: self.task is None and not self.processes[0].is_running)
    @happens(then=BYTES)
    def the_node_is_given_back(self, then: bytes) -> None:
        """Also where it was not emptied."""
        self._give_back()
        self._disturbed(then)

    @precondition(lambda self: self.task is None)
    @happens(then=BYTES, meanwhile=st.binary(min_size=24, max_size=24), dies=st.none() | st.integers(0, 5), fates=DRAWN)
    def the_run_is_aborted(self, then: bytes, meanwhile: bytes, dies: int | None, fates: int) -> None:
        """Whoever aborts holds the run; nothing of others is touched. The drain has just seen that it may go on.

        fates: of what it has asked for then, which it may ask for again.
        """
        world = self.world
        self.processes[0].tick(Chances(fates=fates))
        world.take_over()
        abort(world, self.processes[0].tick, dies, meanwhile)
        self.task = Return(world, "n1")
        self._disturbed(then)

    @precondition(lambda self: self.task is not None)
    @happens(choices=BYTES, fates=DRAWN)
    def vms_start(self, choices: bytes, fates: int) -> None:
        for choice in choices:
            self.world.now += (choice >> 6) * 0.7
            if choice & 1:
                controllers.take(self.world, choice >> 1)
            else:
                self._start(choice >> 2, fates)
                fates >>= BITS
            self.judge.moment()
        self._count(len(choices))

    @happens(then=BYTES, node=st.sampled_from(sorted({*ZONES} - {"n1"})))
    def somebody_cordons_or_uncordons(self, then: bytes, node: str) -> None:
        """Not the node itself, whose next maintenance is another history."""
        super().somebody_cordons_or_uncordons(then=then, node=node)

    def teardown(self) -> None:
        if self.task is None:
            super().teardown()
            return
        Driven.teardown(self)
        if not self.holds:
            return
        world = self.world
        world.calm, world.tight = True, False
        for _round in range(_ROUNDS):
            for _step in range(40):
                if not controllers.take(world, 0):
                    break
            world.now += 3.0
            self.processes[0].tick()
            self._start()
            self.judge.moment()
        self.task.end()

    def _give_back(self) -> None:
        if self.world.cordons.pop("n1", "") == OURS:
            self.world.uncordoned_at["n1"] = self.world.now
        self.task = Return(self.world, "n1")

    def _start(self, between: int = 0, fates: int = 0) -> None:
        """What the drain has stopped since, before it heard of its end, is looked for again."""
        assert self.task is not None
        if not self.task.is_complete:
            self.task.begin()
        self.task.tick(between, fates)

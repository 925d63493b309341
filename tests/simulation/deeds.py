# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of a process, carried out on the model and answered as the `Verbs` of `_cluster` answer them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May, always
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command

from simulation.chances import Chances, Died, denied, unanswered
from simulation.fates import UNANSWERED, Fate, answer_of
from simulation.world import World


@dataclass
class Deeds:
    """begin: is told of all commands of a step. act: carries one out, after a while if that says so."""

    world: World
    chances: Chances
    begin: Callable[[Collection[Command]], None]
    act: Callable[[Command, Fate, bool], Answer]

    server = "the model"

    def carry_out(
        self, commands: Collection[Command], may: May = always, *, once: bool = False
    ) -> tuple[list[Answer], Failure | None]:
        """Side by side, so that one without an answer keeps others from being asked only by chance."""
        self.begin(commands)
        answers: list[Answer] = []
        trouble: Failure | None = None
        for number, command in enumerate(commands):
            try:
                may()
            except Failure as error:
                rest = list(commands)[number:]
                return [*answers, *(Answer(each, unasked=True) for each in rest)], error
            late, fate = self.chances.stands_still(), self.chances.fate()
            self.world.happened[fate.told] += 1
            if fate is Fate.DIES:
                raise Died
            answer = answer_of(command, fate, partial(self._act, fate, late))
            if fate is Fate.DIES_AFTER:
                raise Died
            if answer is not None:
                answers.append(answer)
            if fate in UNANSWERED:
                trouble = trouble or unanswered()
            if fate is Fate.DENIED:
                trouble = denied()
        return answers, trouble

    def _act(self, fate: Fate, late: bool, command: Command) -> Answer:
        return self.act(command, fate, late)

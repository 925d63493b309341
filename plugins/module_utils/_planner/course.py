# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a drain: who can move moves; the others follow their policy, which may let somebody else move."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step, go, search, step_to_best
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waves import Caps, pack
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile


class Course:
    """`waves`: what happens, as far as it is known. `stuck`: who still has nowhere to go.

    `last`: ids of those who leave only when nobody can leave unharmed any more, as nothing tells where they run again.
    """

    def __init__(self, board: Board, caps: Caps, profile: Profile) -> None:
        self.board = board
        self.waves: list[list[Step]] = []
        self.stuck: list[Mover] = []
        self.last: set[str] = set()
        self._caps = caps
        self._profile = profile

    def begin(self, steps: Sequence[Step]) -> None:
        """Take what is on its way already."""
        for step in steps:
            self.board.put(step.mover, Stage.AFTER, step.node)
        if steps:
            self.waves.append(list(steps))

    def move(self, movers: Sequence[Mover]) -> None:
        """Find places for all of them, as far as there are."""
        attempt = search(self.board, movers, self._profile)
        steps = [replace(step, follows=not self.board.legal(step.mover, step.node)) for step in attempt.steps]
        self.waves += pack(self.board, steps, self._caps, self._profile)
        self.stuck = list(attempt.stuck)

    def depart(self, interruptions: Mapping[str, Mover], must_land: Collection[str]) -> None:
        """Let those leave that do it without a migration, and the others try again, until nothing changes any more.

        interruptions: by id, also of movers that are stuck. must_land: ids of those that leave only if their newcomer
        lands elsewhere; pods without a node for theirs leave in any case, in the end.
        """
        waiting = dict(interruptions)
        while True:
            evicted = {mover.id: mover for mover in self.stuck if not mover.chosen}
            wave = self._leave({**waiting, **evicted}, must_land)
            if not wave:
                break
            self.waves.append(wave)
            gone = {step.mover.id for step in wave}
            self.last |= gone
            waiting = {name: mover for name, mover in waiting.items() if name not in gone}
            self._try_again([mover for mover in self.stuck if mover.id not in gone])
            waiting = {name: mover for name, mover in waiting.items() if name not in self.on_their_way()}
        self._land_latecomers()

    def on_their_way(self) -> set[str]:
        """Ids of all that leave."""
        return {step.mover.id for wave in self.waves for step in wave}

    def _leave(self, movers: Mapping[str, Mover], must_land: Collection[str]) -> list[Step]:
        wave: list[Step] = []
        unharmed = {mover.id: mover for mover in self.stuck if mover.chosen}
        freed = self._freed(movers, unharmed)
        for name, mover in sorted(movers.items(), key=lambda entry: (entry[0] in freed, entry[0])):
            if wave and name in unharmed and self.board.options(unharmed[name], Profile.NO_SCORING):
                continue  # the room that others have left is enough for it
            options = self.board.options(mover, self._profile)
            lands = bool(options) and options[0].node not in self.board.draining
            if lands or name not in must_land:
                step = step_to_best(mover, options) if options else Step(mover, None)
                self.board.put(mover, Stage.AFTER, step.node)
                wave.append(step)
        return wave

    def _freed(self, movers: Mapping[str, Mover], unharmed: Mapping[str, Mover]) -> set[str]:
        """Those who could migrate if all the others had left; they come last, as they may not have to leave."""
        for mover in movers.values():
            self.board.put(mover, Stage.AFTER)
        found = set()
        for name in movers.keys() & unharmed.keys():
            self.board.put(unharmed[name], Stage.BEFORE)
            if self.board.options(unharmed[name], Profile.NO_SCORING):
                found.add(name)
            self.board.put(movers[name], Stage.AFTER)
        self.board.reset(list(movers.values()))
        return found

    def _try_again(self, stuck: Sequence[Mover]) -> None:
        attempt = go(self.board, stuck, self._profile)
        self.board.reset([step.mover for step in attempt.steps])
        steps = [replace(step, follows=True) for step in attempt.steps]
        self.waves += pack(self.board, steps, self._caps, self._profile)
        self.stuck = list(attempt.stuck)

    def _land_latecomers(self) -> None:
        """A newcomer without a node waits, and takes the first one that becomes fit for it."""
        for wave in self.waves:
            for number, step in enumerate(wave):
                if step.node is None and (options := self.board.options(step.mover, self._profile)):
                    wave[number] = step_to_best(step.mover, options)
                    self.board.put(step.mover, Stage.AFTER, wave[number].node)

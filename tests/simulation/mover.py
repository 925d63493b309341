# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that moves VMs and pods of the model by `MovesRun` of `_cluster`, and may die at any moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import read_prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.move_looks import MoveLooks
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import Moves, MovesRun, request_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Answer,
    Command,
    Evict,
    Migrate,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.requests import plan_requests

from simulation import requests
from simulation.chances import Chances, Died
from simulation.deeds import Deeds
from simulation.fates import Fate
from simulation.model_client import MigrationWatch, ModelClient
from simulation.moves_judge import MovesJudge
from simulation.process import ModelClock, Silent
from simulation.world import World

# Seconds that a task has, and something in it until its end.
SECONDS = 240.0


class _Looks(MoveLooks):
    """Tells the judge of each list of pods."""

    judge: MovesJudge

    def _list(self, namespace: str) -> list[JsonObject]:
        found = super()._list(namespace)
        self.judge.listed()
        return found


@dataclass
class Mover:
    """A task that carries the actions out, and is run again with the same ones. run: None before it begins, and after.

    failed: entries of those that came to nothing in the task that has ended last.
    refused: by the last look at all VMs the plan could not be carried out. is_done: all has come about. done: what it
    has changed something by. asked: how much that is, of all tasks.
    """

    world: World
    judge: MovesJudge
    actions: Sequence[Action]
    retries: int
    patience: float | None
    spares_last: bool = False
    run: MovesRun | None = None
    refused: bool = False
    is_done: bool = False
    is_late: bool = False
    failed: Sequence[Entry] = ()
    done: list[Command] = field(default_factory=list)
    asked: int = 0
    _chances: Chances = field(default_factory=Chances)
    _between: Callable[[], None] = field(init=False)
    _steps: Iterator[None] = field(init=False)

    def tick(self, chances: Chances, between: Callable[[], None]) -> None:
        """A step, of which the first one reads what there is. between: happens when it knows what to do next."""
        self._chances.take(chances)
        self._between = between
        try:
            if self.run is None:
                self._begin()
            else:
                self._step(self.run)
        except Died:
            self.world.happened["a task dies"] += 1
            self.run = None

    def die(self) -> None:
        self.run = None

    def _begin(self) -> None:
        world, chances, clock = self.world, self._chances, ModelClock(self.world)
        client: Any = ModelClient(world, chances)
        watch: Any = MigrationWatch(world, chances, clock)
        looks = _Looks(client, watch, clock)
        looks.judge = self.judge
        self.judge.begins()
        self.refused = self.is_done = self.is_late = False
        wanted = [request_of(action) for action in self.actions if action.kind is ActionKind.MIGRATE]
        try:
            prospects = read_prospects(client, wanted)
            migration_rules.check(prospects)
            name = plan_requests(prospects).run
            moves = Moves(
                self.actions,
                migration_rules.check,
                name,
                self.retries,
                self.patience,
                self.spares_last,
            )
            deeds = Deeds(world, chances, self._judge_commands, self._act)
            means = Means(looks, deeds, lambda _nodes: chances.asks(), Silent(), clock)
            run = MovesRun.by(means, client, looks, moves, prospects)
        except Failure:
            return
        except InvalidRequest as error:
            self.refused = True
            self.judge.refused(error.problems)
            return
        self.done, self.run = [], run
        self._steps = run.steps(SECONDS)

    def _step(self, run: MovesRun) -> None:
        before, awaited, refused = run.record, run.awaited, len(run.refused)
        try:
            next(self._steps, None)
        except Failure as error:
            run.trouble = error
            self._end(run)
        else:
            self.is_late = not run.is_over and self.world.now >= run.ends_at
            if run.is_over or self.is_late:
                self._end(run)
        self.judge.results(before, run, self.done, awaited)
        self.judge.refused(run.refused[refused:], run.record)

    def _end(self, run: MovesRun) -> None:
        self.run = None
        self.judge.end(run, is_late=self.is_late)
        self.failed = run.record.failed
        self.is_done = run.is_over and not (self.failed or run.refused)
        self.world.happened["moves are done" if self.is_done else "moves have failed"] += 1
        self.world.happened["moves run out of time"] += self.is_late

    def _judge_commands(self, commands: Collection[Command]) -> None:
        self.judge.commands(commands)
        self._between()

    def _act(self, command: Command, _fate: Fate, _late: bool) -> Answer:
        known = len(self.world.migrations)
        if isinstance(command, Evict):
            self.judge.evicts(command)
        answer = requests.carry_out(self.world, command)
        if isinstance(command, Migrate) and len(self.world.migrations) > known:
            self.judge.created(command)
        if not (answer.refused or answer.needless):
            self.done.append(command)
            self.asked += 1
        return answer

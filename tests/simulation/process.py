# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that empties a node of the model by the loop of node_drain, and may die at any moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import MigrationCaps
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

from simulation import notes, requests
from simulation.chances import Chances, Died, Halting
from simulation.deeds import Deeds
from simulation.fates import Fate
from simulation.judge import Judge
from simulation.notes import Notes
from simulation.planning import Mending, Planning
from simulation.watches import Watches
from simulation.world import OURS, RUN, World

# Migrations of a VM are planned anew until so many have failed.
BUDGET = 3
# What a process allows itself, less than KubeVirt's own caps; the second one lets those of a batch take turns.
_CAPS = (MigrationCaps(cluster=2, outbound=1), MigrationCaps(cluster=1, outbound=1))


@dataclass(frozen=True, slots=True)
class Ways:
    """How a process goes about it. caps: those that it keeps, if any. retries: of a failed migration as it is.

    max_failed: when more VMs than that have failed for good, nothing more is begun; None for no limit. seconds: after
    which it gives up. plans_anew: who goes on with its drain alone makes a plan of its own, also if all is remembered.
    """

    caps: MigrationCaps | None
    retries: int
    max_failed: int | None
    seconds: float
    plans_anew: bool

    @property
    def gives_up_early(self) -> bool:
        return self.max_failed is not None or self.seconds < float("inf")

    @classmethod
    def of(cls, byte: int) -> Ways:
        max_failed, seconds = 0 if byte >> 2 & 3 == 3 else None, 60.0 if byte >> 4 & 3 == 3 else float("inf")
        caps = None if byte & 1 else _CAPS[byte >> 6 & 1]
        return cls(caps, byte >> 1 & 1, max_failed, seconds, bool(byte >> 7))


class ModelClock(Clock):
    """Time passes in the model alone."""

    def __init__(self, world: World) -> None:
        self._world = world

    def since_epoch(self) -> float:
        return self._world.now

    def steady(self) -> float:
        return self._world.now

    def now(self) -> float:
        return self._world.now

    def sleep(self, seconds: float) -> None:
        self._world.now += seconds


class Silent:
    """Tells nobody."""

    def tell(self, line: str) -> None: ...

    def detail(self, line: str) -> None: ...

    def totals(self, text: str) -> None: ...

    def stands(self, standing: Standing) -> None: ...


@dataclass
class Process:
    """plan: what it began with. invocation: of the run that it is a part of. is_running: its drain has not ended.

    is_paused: it stands still. done: what the drain has changed something by. _seen_from: nodes away from which it has
    just seen all migrations, None if its look is older.
    """

    world: World
    judge: Judge
    node: str
    batch: tuple[str, ...]
    plan: Plan
    planning: Planning
    ways: Ways
    invocation: int = 0
    is_running: bool = True
    is_paused: bool = False
    done: list[Command] = field(default_factory=list)
    drain: NodeDrain = field(init=False)
    notes: Notes = field(init=False)
    _watches: Watches = field(init=False)
    _steps: Iterator[None] = field(init=False)
    _chances: Chances = field(default_factory=Chances)
    _before: Record = field(default_factory=Record)
    _seen_from: frozenset[str] | None = None
    _halting: Halting | None = None

    def __post_init__(self) -> None:
        self._begin(self.plan)

    def tick(self, chances: Chances | None = None) -> None:
        """A step of its loop, if it does not stand still; who has ended is run again now and then."""
        if self.is_paused:
            return
        self._chances.take(chances or Chances())
        if not (self.is_running or self._runs_again()):
            return
        if self._chances.pausing is None:
            self._go(self._step)
            return
        self._halting = Halting(self._step)
        self._chances.halt = self._halting.halt
        self._go(self._halting.go_on)

    def wake(self, fates: int = 0) -> None:
        """It goes on where it stood still, in the middle of a step or between two."""
        self.is_paused, self._chances.fates = False, fates
        if self._halting is not None:
            self._go(self._halting.go_on)

    def calm_down(self) -> None:
        """Nobody disturbs any more: what was lost is tried once more, and then no more."""
        if not self.is_running and self.drain.is_lost:
            self._run_again()

    def die(self, *, remembering: bool) -> None:
        """And begin anew, with what was last saved of this maintenance or without that, and without the plan then."""
        self.leave()
        self._begin(self._inherited(self.world, remembering=remembering))

    def heir(self, world: World, judge: Judge, invocation: int, *, remembering: bool) -> Process:
        """Another process that goes on: of another invocation, or in a copy of the model."""
        plan = self._inherited(world, remembering=remembering)
        return Process(world, judge, self.node, self.batch, plan, self.planning, self.ways, invocation)

    def leave(self) -> None:
        """Where it stands still it stays."""
        halting, self._halting, self.is_paused = self._halting, None, False
        if halting is not None and not halting.is_over:
            halting.end()

    def recall(self, record: Record, now: float) -> Record:
        """Results that are remembered have been judged when they came about."""
        self._before = self.notes.recall(record, now)
        return self._before

    def keep(self, record: Record) -> None:
        """As comes after a look, before anything is done."""
        self._judge()
        self.notes.keep(record)

    def _begin(self, plan: Plan) -> None:
        world, self.plan = self.world, plan
        self.judge.knows(plan)
        self.notes = Notes.begin(world, self.node, self.invocation)
        self._watches = Watches(world, self._chances, {self.node})
        self.drain = NodeDrain(
            Means(
                self._watches,
                Deeds(world, self._chances, self._command, self._act),
                self._guard,
                Silent(),
                ModelClock(world),
            ),
            Execution(self.node, RUN, self.notes.epochs(self.batch), self.ways.caps, self.ways.retries),
            plan,
            planned=plan,
            replan=self._replan,
            memory=self,
            retries=BUDGET - 1,
            max_failed=self.ways.max_failed,
        )
        self._steps = self.drain.steps(self.ways.seconds)
        self._before, self.done = self.drain.record, []
        self.is_running = True

    def _inherited(self, world: World, *, remembering: bool) -> Plan:
        """What whoever goes on begins with: the same plan, mended if this drain had ended, or one of its own."""
        if not remembering:
            notes.forget(world, self.node)
        if len(self.batch) == 1 and (self.ways.plans_anew or not remembering):
            return self.planning.own(world, self.batch)
        return self.planning.resumed(world, self.batch, self.node, self.drain.plan, is_over=not self.is_running)

    @property
    def _is_in_vain(self) -> bool:
        """Whether it ends the same each time: also where nothing starts again what was restarted."""
        return self.drain.is_lost or bool(self.drain.off)

    def _runs_again(self) -> bool:
        """If there is a reason for it."""
        world = self.world
        is_ours = world.holder == self.invocation and all(world.cordons.get(name) == OURS for name in self.batch)
        if self._chances.lagging or not is_ours or (world.calm and self._is_in_vain):
            return False
        if self.drain.is_done and world.is_empty(self.node, self.drain.first):
            return False
        self._run_again()
        return True

    def _run_again(self) -> None:
        self.world.happened["a drain that has ended is run again"] += 1
        self._begin(self._inherited(self.world, remembering=True))

    def _go(self, on: Callable[[], None]) -> None:
        try:
            on()
        except Died:
            self.die(remembering=bool(self._chances.fates & 1))
        except Failure:
            self._end()
        else:
            self.is_paused = self._halting is not None and not self._halting.is_over
            if not self.is_paused and (self.drain.is_over or self.world.now >= self.drain.ends_at):
                self._end()
        if not self.is_paused:
            self._halting = None

    def _step(self) -> None:
        self._watches.fresh = False
        next(self._steps, None)
        self._judge()
        self.judge.has_acted(self.drain.record, self.done)

    def _end(self) -> None:
        drain, self.is_running = self.drain, False
        self.world.happened["a drain runs out of time"] += not drain.is_over and self.world.now >= drain.ends_at
        if drain.is_over and not drain.is_lost and self._may_be_maintained():
            self.world.happened["a maintenance begins"] += 1
            self.judge.maintained(self.node, drain.first, self.invocation)
        if drain.is_lost:
            self.world.happened["a drain is lost"] += 1
            self.judge.lost(drain)
        self.notes.end(drain.record, is_done=drain.is_done)

    def _may_be_maintained(self) -> bool:
        """As of role drain's own last look, which finds who has come while the process stood still after its own."""
        if self._watches.late and not self.world.is_empty(self.node, self.drain.first):
            self.world.happened["a node that was seen to be empty is not any more"] += 1
            return False
        return True

    def _judge(self) -> None:
        """What the last look has come to."""
        drain, fresh = self.drain, self._watches.fresh
        self.judge.results(self._before, drain.record, fresh=fresh)
        if fresh:
            self.judge.residents(self.node, drain.here, drain.first)
        self._before = drain.record

    def _guard(self, nodes: Collection[str]) -> None:
        self._chances.asks()
        if self.world.holder != self.invocation:
            raise Failure("go on", "the model", "another invocation has the run", "Stop.", reason="RunLost")
        for node in nodes:
            if self.world.cordons.get(node) != OURS:
                raise Failure("go on", "the model", f"{node} is not cordoned", "Stop.", reason="NotCordoned")

    def _command(self, commands: Collection[Command]) -> None:
        drain, watches = self.drain, self._watches
        self.judge.commands(commands, drain.plan, drain.record, drain.execution, fresh=watches.fresh)
        self._seen_from = frozenset(watches.sources) if watches.fresh else None
        watches.fresh = False

    def _act(self, command: Command, _fate: Fate, late: bool) -> Answer:
        """late: it was let through to this before it stood still."""
        if late:
            self._seen_from = None
        else:
            self.judge.carries_out(command, self.invocation)
        known = len(self.world.migrations)
        answer = requests.carry_out(self.world, command)
        if len(self.world.migrations) > known:
            self.judge.created(command, self.drain.execution, self.drain.plan, self._seen_from)
        if not (answer.refused or answer.needless):
            self.done.append(command)
        return answer

    def _replan(
        self,
        plan: Plan,
        failures: Mapping[str, Collection[str]],
        hopeless: Collection[str],
        ended: Collection[str],
        replaced: Collection[str],
        first: Collection[str] | None,
    ) -> Plan:
        self._chances.asks()
        self.world.happened["a plan is made anew"] += 1
        mending = Mending(self.drain, failures, hopeless, ended, replaced, first)
        mended = self.planning.mended(self.world, self.batch, plan, mending)
        self.judge.knows(mended)
        return mended

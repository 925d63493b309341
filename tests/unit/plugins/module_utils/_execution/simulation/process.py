# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that empties a node of the model by its plan, as the loop in `_cluster` does, and may die at any moment.

What it sees are three watches, each of which may lag behind by itself, and fresh answers to what it asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining, memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
    questions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import MigrationCaps
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

from unit.plugins.module_utils._execution.simulation import planner, requests
from unit.plugins.module_utils._execution.simulation.fates import FATES, Fate, answer_of
from unit.plugins.module_utils._execution.simulation.judge import Judge
from unit.plugins.module_utils._execution.simulation.sight import (
    see_migrations,
    see_pods,
    see_replica_sets,
    see_vmi,
    see_vmis,
    see_vms,
)
from unit.plugins.module_utils._execution.simulation.world import FRESH, OURS, RUN, World

# No watch lags further behind than this, in seconds; less than what the reducer gives a migration to show.
LAG = 20.0
# A migration that fails is tried again once as it is, and by other plans until so many have failed.
RETRIES, BUDGET = 1, 3
# What a process allows itself, less than KubeVirt's own caps.
CAPS = MigrationCaps(cluster=2, outbound=1)


@dataclass
class Watches:
    """What a process has seen, each part as of its own time."""

    vmis: Mapping[str, SeenVmi] = field(default_factory=dict)
    pods: Mapping[str, SeenPod] = field(default_factory=dict)
    migrations: Mapping[str, tuple[Migration, ...]] = field(default_factory=dict)
    vmis_at: float = float("-inf")
    pods_at: float = float("-inf")
    migrations_at: float = float("-inf")


@dataclass
class Process:
    """saved: the document that a resume gets. first: uids of the pods that were there at the first look.

    invocation: of the run that it is a part of. held_at: when that was last seen to hold the run. done: what it has
    changed something by. is_paused: it stands still. in_hand: commands that it has yet to carry out then, the first of
    which nothing keeps it from any more.
    """

    world: World
    judge: Judge
    node: str
    batch: tuple[str, ...]
    plan: Plan
    capped: bool
    invocation: int = 0
    held_at: float = float("-inf")
    epochs: Mapping[str, str] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    saved: bytes = b""
    first: frozenset[str] | None = None
    watches: Watches = field(default_factory=Watches)
    done: list[Command] = field(default_factory=list)
    is_paused: bool = False
    in_hand: tuple[Command, ...] = ()
    here: draining.Remaining = field(default_factory=lambda: draining.Remaining((), (), ()))

    def __post_init__(self) -> None:
        self.epochs = dict(self.world.epochs)
        self.judge.knows(self.plan)
        self.record = follow(self.plan, self.record, self.execution)

    @property
    def execution(self) -> Execution:
        caps = CAPS if self.capped else None
        return Execution(self.node, RUN, self.epochs, caps, RETRIES)

    def tick(self, lagging: int = 0, fates: int = 0, pausing: int | None = None) -> None:
        """lagging: bits of the watches that show nothing new. fates: of the commands, four bits each.

        pausing: how many commands are carried out before it stands still, if it does.
        """
        if self.is_paused or not self._may():
            return
        look, fresh = self._look(lagging)
        self.here = draining.remaining(self.node, look, self.first)
        if self.first is None:
            self.first = frozenset(pod.uid for pod in self.here.pods)
        if fresh:
            self.judge.residents(self.node, self.here, self.first)
        before = self.record
        self.record, commands = advance(self.plan, before, look, self.world.now, self.execution)
        self.judge.commands(commands, self.plan, self.record, self.execution, fresh=fresh)
        self.judge.results(before, self.record, fresh=fresh)
        if pausing is not None:
            self.is_paused, self.in_hand, commands = True, commands[pausing:], commands[:pausing]
        if self._act(commands, fates) and not self.is_paused:
            self._conclude()

    def wake(self, fates: int = 0) -> None:
        """It goes on where it stood still, in the middle of a row of commands."""
        commands, self.in_hand, self.is_paused = self.in_hand, (), False
        if self._act(commands[:1], fates, late=True) and self._may():
            self._act(commands[1:], fates >> 4)

    def successor(self, invocation: int, *, remembering: bool) -> Process:
        """The process of another invocation that goes on."""
        other = Process(
            self.world, self.judge, self.node, self.batch, self.plan, self.capped, invocation, saved=self.saved
        )
        other.die(remembering=remembering)
        return other

    def die(self, *, remembering: bool) -> None:
        """And begin anew, with what was last saved of this maintenance or without that, and without the plan then."""
        if not remembering and len(self.batch) == 1:
            self.plan = planner.plan(self.world, self.batch)
            self.judge.knows(self.plan)
        self.watches, self.done = Watches(), []
        self.is_paused, self.in_hand, self.held_at = False, (), float("-inf")
        self.epochs = dict(self.world.epochs)
        self.record = follow(self.plan, Record(), self.execution)
        known = memory.decode(self.saved) if remembering and self.saved else None
        if known and known.epoch == self.world.epochs[self.node]:
            self.record = memory.recall(self.record, known, self.world.now)

    def save(self) -> None:
        self.saved = memory.encode(memory.remembered(self.record, self.node, self.world.epochs[self.node]))

    def replan(self) -> None:
        if self.is_paused or not self._may():
            return
        failures = draining.failures(self.record)
        hopeless = {title for title, nodes in failures.items() if len(nodes) >= BUDGET}
        returned = draining.returned(self.record, self.here)
        replaced = draining.replaced(self.record, self.here)
        over = {
            name: entry
            for name, entry in self.record.entries.items()
            if not (entry.unfinished or entry.has_failed or name in replaced)
        }
        self.plan = planner.plan(
            self.world,
            self.batch,
            before=self.plan,
            staying=frozenset(self.world.pods) - {pod.uid for pod in self.here.pods},
            failures=failures,
            hopeless=hopeless,
            ended=[name for name, entry in over.items() if entry.uid not in returned],
        )
        self.judge.knows(self.plan)
        self.record = follow(self.plan, self.record, self.execution, returned)
        self.watches = Watches()  # the plan may know what the watches do not show yet

    def _may(self) -> bool:
        """Whether the run is ours, as was seen a moment ago, and the nodes from which something is taken away."""
        if self.world.now - self.held_at >= FRESH:
            if self.world.holder != self.invocation:
                return False
            self.held_at = self.world.now
        concerned = {self.node, *(action.node for action in self.execution.actions(self.plan))}
        return all(self.world.cordons.get(node) == OURS for node in concerned)

    def _act(self, commands: tuple[Command, ...], fates: int, *, late: bool = False) -> bool:
        """Whether it is still alive afterwards. late: it was let through to this before it stood still."""
        answers = []
        for command in commands:
            fate, fates = FATES[fates & 15], fates >> 4
            self.world.happened[fate.told] += 1
            if fate is Fate.DIES:
                break
            answer = answer_of(command, fate, partial(self._carry_out, late=late))
            if answer is not None:
                answers.append(answer)
            if fate is Fate.DIES_AFTER:
                break
        else:
            before, self.record = self.record, answered(self.record, answers, self.world.now)
            self.judge.results(before, self.record, fresh=False)
            self.judge.has_acted(self.record, self.done)
            return True
        self.die(remembering=bool(fates & 1))
        return False

    def _carry_out(self, command: Command, *, late: bool) -> Answer:
        if not late:
            self.judge.carries_out(command, self.invocation)
        known = len(self.world.migrations)
        answer = requests.carry_out(self.world, command)
        if len(self.world.migrations) > known:
            self.judge.created(command, self.execution)
        if not (answer.refused or answer.needless):
            self.done.append(command)
        return answer

    def _conclude(self) -> None:
        if self.here.none and not self.record.unfinished:
            if self._is_empty():
                self.world.happened["a maintenance begins"] += 1
                self.judge.maintained(self.node, self.first, self.invocation)
            return
        waiting = any(isinstance(entry, Migrating) and entry.refusal for entry in self.record.unfinished)
        new = draining.unplanned(self.plan, self.record, self.here)
        if new or waiting or any(entry.passing for entry in self.plan.blocked):
            self.replan()

    def _is_empty(self) -> bool:
        """By a look of its own, as watches may lag behind."""
        self.watches = Watches()
        self.here = draining.remaining(self.node, self._look(0)[0], self.first)
        return self.here.none

    def _look(self, lagging: int) -> tuple[Observation, bool]:
        """What it sees, and whether all of that is as of now."""
        asked = questions(self.record)
        watches, now = self.watches, self.world.now
        nodes = {*self.batch, *self.execution.places(self.plan)}
        if not lagging & 1 or now - watches.migrations_at > LAG:
            watches.migrations, watches.migrations_at = see_migrations(self.world), now
        if not lagging & 2 or now - watches.vmis_at > LAG:
            watches.vmis, watches.vmis_at = see_vmis(self.world, nodes), now
        if not lagging & 4 or now - watches.pods_at > LAG:
            watches.pods, watches.pods_at = see_pods(self.world, nodes), now
        fresh = not lagging & 7
        return Observation(
            vmis=self._with_answers(asked, watches.vmis),
            pods=watches.pods,
            migrations=watches.migrations,
            reasons=dict.fromkeys(asked.failed, "guest said no"),
            siblings={
                uid: tuple(see_vmi(vmi) for vmi in self.world.vmis.values() if vmi.owner and vmi.owner.uid == uid)
                for _namespace, uid in asked.owners
            },
            vms=see_vms(self.world, asked.vms),
            replica_sets=see_replica_sets(self.world, asked.replica_sets),
        ), fresh

    def _with_answers(self, asked: Questions, seen: Mapping[str, SeenVmi]) -> Mapping[str, SeenVmi]:
        titles = asked.vmis | (asked.known - seen.keys())
        if not titles:
            return seen
        found = {title: vmi for title, vmi in seen.items() if title not in titles}
        return found | {vmi.title: see_vmi(vmi) for vmi in self.world.vmis.values() if vmi.title in titles}

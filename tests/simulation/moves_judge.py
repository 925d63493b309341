# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold of moves at every moment, compared with the truth: as `judge` for drains, whose words it shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import MovesRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Command, Evict, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import (
    ALREADY_THERE,
    MIGRATED,
    Migrating,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind

from simulation import rules
from simulation.judge import Judge
from simulation.world import NAMESPACE, World


class MovesJudge:
    """disturbed: uids of sets of which somebody else has ended pods. shaken: of those of which some ceased to serve.

    _short: by id of an eviction, the uid of its set, and how many pods of that have to serve again before it is over.
    _listed: by uid of a set, how many of its pods serve as far as a task knows. _held: uids of those of which a budget
    keeps a pod that a task wants to evict.
    """

    def __init__(self, world: World, actions: Sequence[Action], retries: int) -> None:
        self._world = world
        self._retries = retries
        self._words = Judge(world, alone=True, budget=retries + 1)
        self.disturbed: set[str] = set()
        self.shaken: set[str] = set()
        self._short: dict[str, tuple[str, int]] = {}
        self._listed: dict[str, int] = {}
        self._held: set[str] = set()
        self._broken = rules.broken(world)
        self.follows(actions)

    def follows(self, actions: Sequence[Action]) -> None:
        """Another plan takes the place of the one before."""
        self._actions = {action.id: action for action in actions}
        self._short.clear()
        planned = {action.object.uid for action in actions}
        self._vague = {pod.owner_uid for pod in self._world.pods.values() if pod.uid not in planned}
        self._vague -= {made.uid for made in self._world.sets.values() if made.kind == "StatefulSet"}

    def begins(self) -> None:
        """A task. What is missing since an earlier one it cannot always tell.

        Not of pods that the plan has by their names alone, nor where none is left, nor of a set of which some have
        stayed, but without a name that tells these from those that came.
        """
        self._held.clear()
        known = {made for made in self._world.sets if made not in self._vague and any(self._world.pods_of(made))}
        is_named = {name: not action.object.uid for name, action in self._actions.items()}
        self._short = {name: short for name, short in self._short.items() if short[0] in known and not is_named[name]}

    def moment(self) -> None:
        """Whenever something has happened: no hard rule is broken that was not."""
        world, before = self._world, self._broken
        self._broken = rules.broken(world)
        assert self._broken <= before, f"{self._broken - before}, which was not so before"
        self._short = {name: short for name, short in self._short.items() if world.serving(short[0]) < short[1]}
        ours = [entry.vmi.uid for entry in world.migrations.values() if entry.ours and entry.unfinished]
        assert len(set(ours)) == len(ours), f"two migrations of a VM: {ours}"

    def listed(self) -> None:
        """Pods have been looked at. Where one is held back, who does not serve for a moment still counts."""
        for uid in self._world.sets:
            serving, known = self._world.serving(uid), self._listed.get(uid, 0) if uid in self._held else 0
            self._listed[uid] = max(serving, min(known, self._world.staying(uid)))

    def commands(self, commands: Iterable[Command]) -> None:
        """What a process is about to do."""
        seen = set()
        for command in commands:
            action = self._actions.get(command.action)
            assert isinstance(command, (Migrate, Evict)), f"{command} moves nothing"
            assert action is not None, f"{command} is not in the plan"
            kind = ActionKind.MIGRATE if isinstance(command, Migrate) else ActionKind.EVICT
            assert action.kind is kind, f"{command} is not what {action} asks for"
            assert action.object.uid in ("", command.uid), f"{command} is not {action}"
            assert command.uid not in seen, f"two commands about {command.uid} at a time"
            seen.add(command.uid)
            for name in action.after:
                self._is_over(self._actions[name], command)
            if isinstance(command, Migrate):
                self._migrate(command, action)

    def evicts(self, command: Evict) -> None:
        """Of the cluster as it is right before."""
        world, pod = self._world, self._world.pods.get(command.uid)
        if pod is None or pod.ending:
            return
        assert not pod.machine, f"{command} is for a pod of a VM"
        listed = self._listed.get(pod.owner_uid, 0)
        number = min(world.serving(pod.owner_uid), listed)
        if self._actions[command.action].object.uid and pod.owner_uid not in self.disturbed | self.shaken:
            assert number > pod.ready, f"{command} leaves none to serve of {world.sets[pod.owner_uid]}"
        if world.tight:
            self._held.add(pod.owner_uid)
        else:
            self._short[command.action] = pod.owner_uid, min(world.staying(pod.owner_uid), listed)
            self._held.discard(pod.owner_uid)

    def created(self, command: Migrate) -> None:
        """A migration has come into being."""
        world, vmi = self._world, self._world.vmis[command.uid]
        assert vmi.node == command.source != command.target, f"{command} meets {vmi}"
        own = [entry for entry in world.migrations.values() if entry.ours and entry.vmi is vmi]
        tries = sum(entry.name.rpartition("-")[0] == command.name.rpartition("-")[0] for entry in own)
        assert tries <= self._retries + 1, f"attempt {tries}: {command}"

    def results(
        self, before: Record, run: MovesRun, done: Collection[Command], awaited: Collection[Replacement]
    ) -> None:
        """Of a step. done: what has changed something. awaited: what had to come before it."""
        entries = run.record.entries.items()
        # Who is where it is wanted stays there, or its migration had all but ended when the task began.
        there = {name: entry for name, entry in entries if isinstance(entry, Migrating) and _was_there(entry)}
        for entry in there.values():
            places = self._world.places[entry.uid]
            assert entry.node in places[entry.outcome == MIGRATED :], f"{entry} has never come there"
        moved = {name: entry for name, entry in entries if name not in there}
        self._words.results(before, replace(run.record, entries=moved), fresh=False)
        self._words.has_acted(run.record, done)
        for name in run.gone:
            assert self._actions[name].object.uid not in self._world.pods, f"{name} is called gone"
        for item in awaited:
            short = [name for name, (owner, _number) in self._short.items() if owner == item.controller]
            assert not (item.done and short) or item.controller in self.disturbed, f"{item}, but {short} are missing"

    def refused(self, problems: Iterable[str], record: Record | None = None) -> None:
        """Of what was looked at just now. record: of the run, if it has begun."""
        leaving = {entry.uid for entry in record.unfinished} if record is not None else set[str]()
        for problem in problems:
            if problem.startswith("pod "):
                self._stays(problem, leaving)
                continue
            action = next(entry for entry in self._actions.values() if problem.startswith(f"{entry.object.title}: "))
            vmi = self._world.vmis.get(action.object.uid)
            if vmi is None or self._world.moving(vmi) or vmi.ending or vmi.phase != "Running":
                continue
            assert vmi.node != action.source or not vmi.migratable, f"{problem}, and yet it is {vmi}"

    def _stays(self, problem: str, leaving: Collection[str]) -> None:
        """Of a pod that has come to be the only one of its controller that serves, but for those that leave as well."""
        self._world.happened["a pod stays as the only one that serves"] += 1
        title = problem.split()[1]
        pod = next((pod for pod in self._world.pods.values() if f"{NAMESPACE}/{pod.name}" == title), None)
        if pod is not None:
            served, going = self._listed.get(pod.owner_uid, 0), self._world.pods_of(pod.owner_uid)
            stay = served - sum(other.uid in leaving for other in going)
            assert stay <= 1, f"{problem}, and yet {stay} served"

    def end(self, run: MovesRun, *, is_late: bool) -> None:
        """Of a run that ends by itself: what was not begun waits for what came to nothing."""
        entries, stuck = run.record.entries, set[str]()
        assert run.is_over or is_late or run.trouble is not None, f"{run.record} is left alone"
        if not run.is_over:
            return
        assert not run.record.unfinished, f"{run.record} is called over"
        assert not run.awaited, f"{run.awaited} are not there, and yet it is called over"
        for action in self._actions.values():
            entry = entries.get(action.id)
            if entry is None and action.id not in run.gone:
                told = any(action.object.title in problem for problem in run.refused)
                assert told or stuck.intersection(action.after), f"{action} was forgotten"
                stuck.add(action.id)
            elif entry is not None and entry.has_failed:
                stuck.add(action.id)

    def _is_over(self, other: Action, command: Command) -> None:
        world, uid = self._world, other.object.uid
        if other.kind is ActionKind.MIGRATE:
            assert other.target in world.places.get(uid, ()), f"{command} does not wait for {other}"
            return
        assert uid not in world.pods, f"{command} does not wait for {other}"
        waits = other.id not in self._short or self._short[other.id][0] in self.disturbed
        assert waits, f"{command} does not wait for what comes instead of {other}"

    def _migrate(self, command: Migrate, action: Action) -> None:
        meant = (action.source, action.target, dict(action.selector))
        assert (command.source, command.target, dict(command.selector)) == meant, f"{command} is not {action}"


def _was_there(entry: Migrating) -> bool:
    return entry.outcome in (ALREADY_THERE, MIGRATED) and entry.node == entry.source_node

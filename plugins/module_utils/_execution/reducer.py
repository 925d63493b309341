# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan, record and observation become a new record and commands. Nothing is done here, and no clock is read.

Whatever is asked of it, it asks in the order of the plan: an action begins when all that it waits for has ended, as the
look shows, and a migration when KubeVirt's caps leave room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING, Entry, Moment
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import (
    Courtesy,
    MigrationCaps,
    Slots,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.waits import Waits
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING, for_node

_BEGIN: Mapping[ActionKind, Callable[[Action], Entry]] = {
    ActionKind.MIGRATE: Migrating.begin,
    ActionKind.EVICT: Evicting.begin,
    ActionKind.RESTART: Interrupting.begin,
    ActionKind.STOP: Interrupting.begin,
    ActionKind.START: Starting.begin,
}


@dataclass(frozen=True, slots=True)
class Execution:
    """What does not change while a plan is carried out.

    node: the one that is to be emptied; what its actions wait for on other nodes is carried out as well, as nobody else
    may be there to do it. Empty for all nodes of the plan. run: label of the run on what is created. epochs: by node,
    what tells this maintenance of it from others of the same run. caps: None to leave it to KubeVirt. retries: how
    often a failed migration is tried again as it is. binding: each VM is to arrive where the plan sends it, and no
    other plan will come; else it is enough that it leaves its node. begins: whether anything begins that has not yet.
    kinds: of the actions that are carried out; the others are taken for over, as a batch is begun when its nodes are
    cordoned and earlier ones are done.
    """

    node: str
    run: str
    epochs: Mapping[str, str] = field(default_factory=dict)
    caps: MigrationCaps | None = None
    retries: int = 0
    binding: bool = False
    begins: bool = True
    kinds: frozenset[ActionKind] = LEAVING

    def actions(self, plan: Plan) -> list[Action]:
        """Those that are carried out, in the order of the plan."""
        concerned = for_node(plan, self.node) if self.node else plan
        return [action for action in concerned.actions if action.kind in self.kinds]

    @staticmethod
    def sources(plan: Plan) -> tuple[str, ...]:
        """Nodes that VMs migrate away from by the plan, whoever carries that out: they share KubeVirt's caps."""
        return tuple(sorted({_source(action) for action in plan.actions if action.kind is ActionKind.MIGRATE}))

    def nodes(self, plan: Plan) -> tuple[str, ...]:
        """Those that something leaves by these actions, and the one that is to be emptied."""
        return tuple(sorted({self.node, *(action.node for action in self.actions(plan))} - {""}))

    def places(self, plan: Plan) -> tuple[str, ...]:
        """Those of `nodes`, and where VMs make room for others."""
        return tuple(sorted({*self.nodes(plan), *map(_source, self.actions(plan))}))


@dataclass(frozen=True, slots=True)
class Record:
    """`entries`: of the actions that are carried out here, by id, in the order of the plan.

    courtesy: what was left to the processes of other nodes. has_changed: something in the cluster was changed, or may
    have been, by an entry that is not among these any more.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    courtesy: Courtesy = field(default_factory=Courtesy)
    has_changed: bool = False

    @property
    def unfinished(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.unfinished]

    @property
    def failed(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.has_failed]

    @property
    def has_acted(self) -> bool:
        """Whether something in the cluster was changed, or may have been."""
        return self.has_changed or any(entry.has_acted for entry in self.entries.values())

    def of(self, kind: type[Entry]) -> list[Entry]:
        return [entry for entry in self.entries.values() if isinstance(entry, kind)]


def follow(plan: Plan, record: Record, execution: Execution, returned: frozenset[str] = frozenset()) -> Record:
    """The record for a plan that is new, or has changed. What has begun is remembered, also if the plan forgets it.

    returned: uids of what has left and was there again, for which the plan was made anew.
    """
    entries: dict[str, Entry] = {}
    for action in execution.actions(plan):
        known = record.entries.get(action.id)
        same = known is not None and known.uid == action.object.uid
        over = known is not None and same and not (known.unfinished or known.has_failed) and known.uid in returned
        entries[action.id] = (
            known.redirected(action) if known and same and not over else _begun(action, known if over else None)
        )
    for name, entry in record.entries.items():
        if name not in entries and (kept := entry.forgotten()) is not None:
            entries[name] = kept
    acting = {name for name, entry in entries.items() if entry.has_acted}
    lost = any(entry.has_acted and name not in acting for name, entry in record.entries.items())
    return replace(record, entries=entries, has_changed=record.has_changed or lost)


def _begun(action: Action, before: Entry | None) -> Entry:
    """before: of what has left and is there again, None if nothing has."""
    begun = _BEGIN[action.kind](action)
    if isinstance(begun, Migrating) and isinstance(before, Migrating):
        return begun.brought_back(before)
    return begun


def questions(record: Record) -> Questions:
    """What the next look has to answer."""
    asked = Questions()
    for entry in record.entries.values():
        asked |= entry.questions()
    return asked


def advance(
    plan: Plan, record: Record, look: Observation, now: float, execution: Execution
) -> tuple[Record, tuple[Command, ...]]:
    """What follows from a look. `now`: seconds since the epoch that never run backwards while a task runs."""
    slots = Slots(plan, record.entries, look, execution.caps, record.courtesy)
    ended = frozenset(action.id for action in plan.actions if action.kind not in execution.kinds)
    actions = {action.id: action for action in execution.actions(plan)}
    entries, commands, has_changed = dict(record.entries), [], record.has_changed
    node = "" if execution.binding else execution.node
    waits = Waits(actions, ended, entries, look, now, node, begins=execution.begins)
    for name, entry in record.entries.items():
        kept = waits.kept(name)
        if kept is None:
            del entries[name]
            has_changed |= entry.has_acted
            continue
        entries[name] = kept
        ready = waits.is_ready(name)
        is_wanted = name in waits.wanted
        moment = Moment(
            look=look,
            now=now,
            run=execution.run,
            epoch=_epoch(actions.get(name), kept, execution),
            ready=ready,
            begins=waits.may_begin(name),
            slot=not isinstance(kept, Migrating) or _has_slot(slots, kept, ready=ready and is_wanted),
            retries=execution.retries if name in actions else 0,
            binding=execution.binding,
            wanted=is_wanted,
            taken=_taken(kept, entries),
            kept_since=waits.kept_since(name),
        )
        entries[name], command = kept.step(moment)
        # Asked now, or else whoever asks first asks for all that comes before, each by the next one.
        waits.is_over(name)
        if command is not None:
            commands.append(command)
            if isinstance(command, Migrate) and isinstance(kept, Migrating):
                slots.add(kept)
    advanced = replace(record, entries=entries, courtesy=slots.courtesy(now), has_changed=has_changed)
    return advanced, tuple(commands)


def unasked(record: Record, before: Record, commands: Iterable[Command]) -> Record:
    """The record where commands were not even given, that had been decided on by what was known `before`."""
    entries = {command.action: before.entries[command.action] for command in commands}
    return replace(record, entries={**record.entries, **entries})


def answered(record: Record, answers: Iterable[Answer], now: float) -> Record:
    """The record after commands were carried out, or refused."""
    entries = dict(record.entries)
    for answer in answers:
        name = answer.command.action
        entries[name] = entries[name].answered(answer, now)
    return replace(record, entries=entries)


def rehearsal(
    plan: Plan, record: Record, look: Observation, now: float, execution: Execution
) -> tuple[Record, tuple[Command, ...]]:
    """All commands that a plan comes to, as if nothing waited for anything, and the record with what would fail."""
    commands = []
    entries = dict(record.entries)
    actions = {action.id: action for action in plan.actions}
    for name, entry in record.entries.items():
        epoch = _epoch(actions.get(name), entry, execution)
        moment = Moment(
            look,
            now,
            execution.run,
            epoch,
            ready=True,
            slot=True,
            retries=execution.retries,
            binding=execution.binding,
        )
        stepped, command = entry.step(moment)
        if command is not None:
            commands.append(command)
        elif stepped.has_failed or (stepped.unfinished and stepped.worth_telling):
            entries[name] = stepped
    return replace(record, entries=entries), tuple(commands)


def rehearsed(record: Record, answers: Iterable[Answer], now: float) -> Record:
    """The record after commands were only put to the server; what it refuses for now time mends, and is told."""
    entries = dict(record.entries)
    for answer in answers:
        if answer.lost:
            continue
        entry = entries[answer.command.action]
        lasting = answer.refused and not answer.passing
        told = entry.answered(answer, now) if answer.refused or answer.needless else entry
        entries[entry.action] = told if lasting else told.rehearsed()
    return replace(record, entries=entries)


def _source(action: Action) -> str:
    return action.source or action.node


def _taken(entry: Entry, entries: Mapping[str, Entry]) -> frozenset[str]:
    """Uids of the successors that the others know for theirs, if it has to find one among several."""
    if not (isinstance(entry, Interrupting) and entry.seeks_a_successor):
        return frozenset()
    others = (other for other in entries.values() if isinstance(other, Interrupting) and other is not entry)
    return frozenset(other.successor_uid for other in others) - {""}


def _has_slot(slots: Slots, entry: Migrating, *, ready: bool) -> bool:
    """Who could not begin anyway asks for no place, as it would seem to be left to others."""
    return ready and entry.outcome == WAITING and slots.admits(entry)


def _epoch(action: Action | None, entry: Entry, execution: Execution) -> str:
    """Also of a migration that the plan has forgotten, so that it is known again by its name."""
    node = action.node if action is not None else entry.source_node
    return execution.epochs.get(node, "")

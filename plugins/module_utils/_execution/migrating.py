# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI on its way by live migration, by one VirtualMachineInstanceMigration an attempt.

The name of a migration tells run, VMI and attempt, so that one whose answer was lost, or that was created before a
crash, is known again. Failed ones are counted where they are, in the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions, SeenVmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    ENDED,
    RETRY_AFTER,
    WAITING,
    FailedAttempt,
    Moment,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import QUEUED, SCHEDULING, Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    FAILED,
    HOSTNAME,
    SUCCEEDED,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action

# Outcomes, of which WAITING and the first one are not final.
MIGRATING = "migrating"
ALREADY_THERE, MIGRATED, NOT_MIGRATED, WOULD_MIGRATE = "already_there", "migrated", "failed", "would_migrate"
_VM_ENDED = "the VM ended during its migration"
# A created migration that no look shows after so many seconds was not created.
_UNSEEN = 30.0
# What follows the VMI's name in that of a migration takes up to 20 characters, of 253.
_LONGEST = 230


@dataclass(frozen=True, slots=True)
class Migrating:
    """target_node, selector: as the plan wants it by now. node: where the VM runs. migration: the newest attempt.

    heading: the node that the newest attempt is pinned to, empty if it may be any. phases: of the newest attempt.
    failed: attempts that came to nothing. past: uids of migrations after which the VM was brought back. refusal: why a
    migration cannot be created for now. suspect: the VMI has to be read anew, as it may have been before the migration
    ended. has_acted: one was created, as far as is known. is_unsure: no answer tells whether one was; had_acted:
    whether one was before. is_recalled: another process's has failed, and a plan has to tell where the VMI goes next.
    """

    action: str
    namespace: str
    name: str
    uid: str
    source_node: str
    target_node: str | None
    selector: Mapping[str, str]
    outcome: str = WAITING
    node: str = ""
    heading: str = ""
    migration: str = ""
    migration_uid: str = ""
    attempts: int = 0
    phases: tuple[tuple[str, str], ...] = ()
    failed: tuple[FailedAttempt, ...] = ()
    past: tuple[str, ...] = ()
    refusal: str = ""
    scheduler_message: str = ""
    asked_at: float = 0.0
    suspect: bool = False
    has_acted: bool = False
    is_unsure: bool = False
    had_acted: bool = False
    is_recalled: bool = False

    @classmethod
    def begin(cls, action: Action) -> Migrating:
        source = action.source or ""
        return cls(
            action=action.id,
            namespace=action.object.namespace,
            name=action.object.name,
            uid=action.object.uid,
            source_node=source,
            target_node=action.target,
            selector=dict(action.selector),
            node=source,
        )

    def redirected(self, action: Action) -> Migrating:
        """After the plan has changed: where it is to go now, or next if what is on its way fails."""
        entry = replace(self, target_node=action.target, selector=dict(action.selector), is_recalled=False)
        if not self.has_failed:
            return entry if self.unfinished else self
        return replace(entry, outcome=WAITING, migration="", migration_uid="", scheduler_message="", refusal="")

    def forgotten(self) -> Migrating | None:
        if self.outcome != WAITING or self.is_unsure:
            return self
        return replace(self, outcome=NOT_MIGRATED) if self.failed else None

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def destination(self) -> str:
        """The node, or labels, of the attempt that is under way or over, else of the next one."""
        if self.migration and self.heading:
            return self.heading
        return self.target_node or ",".join(f"{key}={value}" for key, value in sorted(self.selector.items()))

    @property
    def unfinished(self) -> bool:
        return self.outcome in (WAITING, MIGRATING)

    @property
    def has_failed(self) -> bool:
        return self.outcome == NOT_MIGRATED

    @property
    def worth_telling(self) -> bool:
        return not self.unfinished or bool(self.refusal or self.scheduler_message)

    @property
    def in_flight(self) -> bool:
        return self.outcome == MIGRATING

    @property
    def queued(self) -> bool:
        """Whether KubeVirt holds the migration back, so that there is no target pod yet."""
        return self.in_flight and self.phase in QUEUED

    @property
    def phase(self) -> str:
        return self.phases[-1][0] if self.phases else ""

    @property
    def failure_reason(self) -> str:
        """Of the last attempt that failed."""
        return self.failed[-1].reason if self.failed else ""

    @property
    def seconds(self) -> int | None:
        """From the first phase of the newest attempt to the last so far."""
        if not self.phases:
            return None
        first, last = (datetime.fromisoformat(self.phases[index][1].replace("Z", "+00:00")) for index in (0, -1))
        return round((last - first).total_seconds())

    def questions(self) -> Questions:
        if not self.unfinished:
            return Questions()
        titles = frozenset({self.title})
        if self.suspect:
            return Questions(vmis=titles, failed={self.migration_uid: self.title} if self.phase == FAILED else {})
        if not self.migration:
            return Questions(known=titles)
        # While a migration is on its way, it tells all that matters.
        placing = {self.namespace: frozenset({self.migration_uid})} if self.phase == SCHEDULING else {}
        return Questions(placing=placing)

    def step(self, moment: Moment) -> tuple[Migrating, Migrate | None]:
        if not self.unfinished:
            return self, None
        vmi, current = moment.look.vmi(self.title, self.uid), self._current(moment)
        if current is None:
            return self._unanswered(vmi, moment) if self.is_unsure else self._without_migration(vmi, moment)
        own = self._is_own(current, moment)
        known = self._knowing(acted=own and self.asked_at > 0)
        entry = known.following(current, _number(current.name) if own else 1)
        if current.unfinished:
            words = moment.look.words.get(current.uid, "") if current.phase == SCHEDULING else ""
            blocked = current.blocked if current.phase in QUEUED else ""
            return replace(entry, scheduler_message=words or blocked, suspect=False), None
        return entry._ended(current, vmi, moment)

    def following(self, current: Migration, attempts: int = 1) -> Migrating:
        """On its way by this migration, with which there were so many attempts."""
        return replace(
            self,
            outcome=MIGRATING,
            heading=self._heading(current),
            migration=current.name,
            migration_uid=current.uid,
            attempts=max(self.attempts, attempts),
            phases=current.phases,
            refusal="",
            suspect=self.suspect and self.migration_uid == current.uid,
        )

    def answered(self, answer: Answer, now: float) -> Migrating:
        command = answer.command
        if not isinstance(command, Migrate):
            return self
        if answer.lost:
            before = self.had_acted if self.is_unsure else self.has_acted
            unsure = replace(self, has_acted=True, is_unsure=True, had_acted=before, asked_at=now)
            return unsure.answered(replace(answer, lost=False), now) if answer.refused else unsure
        if not answer.refused:
            asked = replace(self, heading=command.target, migration=command.name, attempts=_number(command.name))
            known = replace(asked, asked_at=now, has_acted=True, is_unsure=False, refusal="", scheduler_message="")
            return replace(known, outcome=MIGRATING, migration_uid="", phases=())
        if answer.passing:
            known = self._knowing(acted=False) if answer.needless else self
            return replace(known, refusal=answer.refused, asked_at=now)
        failed = (*self.failed, FailedAttempt("", answer.refused, command.target))
        return replace(self, outcome=NOT_MIGRATED, failed=failed, refusal="")

    def rehearsed(self) -> Migrating:
        return replace(self, outcome=WOULD_MIGRATE)

    def status(self) -> str:
        if self.outcome == MIGRATED:
            back = f", and brought back to {self.node}" if self.node == self.source_node != self.target_node else ""
            took = "" if self.seconds is None else f" in {self.seconds} s"
            return f"migrated to {self.target_node if back else self.node}{took}{back}"
        if self.outcome == NOT_MIGRATED:
            return f"failed, {self.failure_reason}"
        if self.outcome == WAITING and (self.refusal or self.past):
            return f"waiting, {self.refusal or 'migrated before'}"  # and brought back, or here as planned
        if self.outcome != MIGRATING:
            return self.outcome.replace("_", " ")
        words = [self.phase or "Pending"]
        if self.past:
            words.append("migrated before")
        if self.attempts > 1:
            words.append(f"attempt {self.attempts}")
        if self.scheduler_message:
            words.append(f"no node fits: {self.scheduler_message}")
        return ", ".join(words)

    def result(self) -> JsonObject:
        nodes, words = ("source_node", "target_node", "node"), ("failure_reason", "scheduler_message")
        names = ("namespace", "name", "outcome", *nodes, "migration", "attempts", "seconds", *words)
        return {
            **{name: getattr(self, name) for name in names},
            "node_selector": dict(self.selector),
            "phases": [{"phase": phase, "reached_at": time} for phase, time in self.phases],
        }

    def _knowing(self, *, acted: bool) -> Migrating:
        """After a look that shows what no answer has told."""
        before = self.had_acted if self.is_unsure else self.has_acted
        return replace(self, has_acted=before or acted, is_unsure=False)

    def _current(self, moment: Moment) -> Migration | None:
        """The migration that counts: the one in flight, else the newest attempt that is not settled."""
        found = moment.look.migrations.get(self.title, ())
        settled = {*self.past, *(attempt.uid for attempt in self.failed)}
        own = [*self._known(moment), *(entry for entry in found if entry.name == self.migration)]
        new = [entry for entry in own if entry.uid not in settled]
        flying = [entry for entry in found if entry.unfinished]
        return max(flying or new, key=lambda entry: _number(entry.name), default=None)

    def _unanswered(self, vmi: SeenVmi | None, moment: Moment) -> tuple[Migrating, Migrate | None]:
        """Asked for once more, it is found by its name, also where its VM has left; it has its place until then."""
        waited, may_ask = moment.now - self.asked_at, moment.ready and moment.slot
        if waited < RETRY_AFTER:
            return self, None
        lacks_place = moment.ready and moment.begins and not moment.slot
        is_home = vmi is not None and vmi.node == self.source_node
        if vmi is None or (is_home and not lacks_place) or (waited >= _UNSEEN and not may_ask):
            return self._knowing(acted=False)._without_migration(vmi, moment)
        return self, self._command(moment) if may_ask else None

    def _without_migration(self, vmi: SeenVmi | None, moment: Moment) -> tuple[Migrating, Migrate | None]:
        if self.migration and not self.suspect:
            is_new = not self.migration_uid and moment.now - self.asked_at < RETRY_AFTER
            return self if is_new else replace(self, suspect=True), None
        if vmi is None:
            is_lost = bool(self.migration) or moment.binding
            return self._failed(_VM_ENDED) if is_lost else replace(self, outcome=ENDED, refusal=""), None
        if self.migration and not self.migration_uid and moment.now - self.asked_at < _UNSEEN:
            return replace(self, suspect=False), None  # created, and not yet seen
        if vmi.node != self.source_node:
            return self._found_elsewhere(vmi, moment), None
        if self.migration_uid:
            return self._deleted(), None
        if self.is_recalled:
            return replace(self, outcome=NOT_MIGRATED, is_recalled=False), None
        waits = replace(self, outcome=WAITING, migration="", suspect=False)
        if why := vmi.stays_for_now:
            return replace(waits, refusal=why), None
        if not (moment.ready and moment.slot) or moment.now - self.asked_at < RETRY_AFTER:
            return waits, None
        return waits, self._command(moment)

    def _command(self, moment: Moment) -> Migrate:
        number = max((_number(entry.name) for entry in self._known(moment)), default=0)
        name = f"{self.name[:_LONGEST]}-{moment.token(self.uid)}-{max(number, self.attempts) + 1}"
        return Migrate(
            action=self.action,
            namespace=self.namespace,
            vmi=self.name,
            uid=self.uid,
            name=name,
            source=self.source_node,
            target=self.target_node or "",
            selector=self.selector,
            binding=moment.binding,
        )

    def _found_elsewhere(self, vmi: SeenVmi, moment: Moment) -> Migrating:
        """It has left its node, and no migration of ours tells how."""
        if self.migration and self.heading in ("", vmi.node):
            return self._arrived(vmi)
        if moment.binding and vmi.node != self.target_node:
            return replace(self._failed(f"somebody has moved it to {vmi.node} meanwhile"), node=vmi.node)
        return replace(self, outcome=ALREADY_THERE, node=vmi.node, suspect=False)

    def _arrived(self, vmi: SeenVmi) -> Migrating:
        """By the newest attempt, which may be of an earlier plan than what it was to do next."""
        target = self.heading or self.target_node
        return replace(self, outcome=MIGRATED, target_node=target, node=vmi.node, scheduler_message="", suspect=False)

    def _is_own(self, migration: Migration, moment: Moment) -> bool:
        """Whether this execution has created it, as its name tells."""
        return f"-{moment.token(self.uid)}-" in migration.name

    def _known(self, moment: Moment) -> Sequence[Migration]:
        """All attempts so far, also settled ones."""
        return [entry for entry in moment.look.migrations.get(self.title, ()) if self._is_own(entry, moment)]

    def _ended(self, current: Migration, vmi: SeenVmi | None, moment: Moment) -> tuple[Migrating, Migrate | None]:
        if current.phase == SUCCEEDED:
            return self._succeeded(vmi, moment)
        if not self.suspect:
            return replace(self, suspect=True), None
        if vmi is None:
            return self._failed(_VM_ENDED), None
        if current.cancelled:
            return self._deleted(), None
        words = moment.look.words.get(current.uid) or self.scheduler_message
        reason = moment.look.reasons.get(current.uid) or (words and f"no node could take it: {words}")
        known = replace(self._with_earlier(current, moment), scheduler_message=words)
        entry = known._failed(reason or "KubeVirt gives no reason")
        if len(entry.failed) > moment.retries:
            return entry, None
        again = replace(entry, outcome=WAITING, migration="", migration_uid="", asked_at=0.0)
        return again._without_migration(vmi, moment)

    def _succeeded(self, vmi: SeenVmi | None, moment: Moment) -> tuple[Migrating, Migrate | None]:
        # The VMI may have been looked at before its migration.
        stale = vmi is None or vmi.node != (self.heading or vmi.node) or vmi.node == self.source_node
        if stale and not self.suspect:
            return replace(self, suspect=True), None
        if vmi is None:
            return self._failed("the VM ended right after its migration"), None
        is_back = vmi.node == self.source_node and {self.heading, self.target_node or vmi.node} != {vmi.node}
        if is_back and moment.wanted:
            if not moment.binding or len(self.past) < moment.retries:
                return self.brought_back(self)._without_migration(vmi, moment)
        elif is_back or self.heading in ("", vmi.node):
            return self._arrived(vmi), None
        return replace(self._failed(f"KubeVirt reports success, but the VM runs on {vmi.node}"), node=vmi.node), None

    def brought_back(self, before: Migrating) -> Migrating:
        """To be migrated once more; what is known of the attempts `before` stays known."""
        past = (*before.past, before.migration_uid) if before.migration_uid else before.past
        again = replace(self, outcome=WAITING, migration="", migration_uid="", phases=(), suspect=False)
        return replace(again, attempts=before.attempts, failed=before.failed, past=past)

    def _with_earlier(self, current: Migration, moment: Moment) -> Migrating:
        """With attempts that failed before the one that counts, and are not remembered: the record was lost."""
        settled = {current.uid, *(attempt.uid for attempt in self.failed)}
        earlier = sorted(
            (entry for entry in self._known(moment) if entry.phase == FAILED and entry.uid not in settled),
            key=lambda entry: _number(entry.name),
        )
        failed = (FailedAttempt(entry.uid, "an earlier attempt failed", self._heading(entry)) for entry in earlier)
        return replace(self, failed=(*self.failed, *failed))

    def _heading(self, current: Migration) -> str:
        """The node that a migration is pinned to. One that was not created from this record may be of another plan."""
        if self.migration_uid == current.uid:
            return self.heading
        is_of_this_plan = dict(current.node_selector) == dict(self.selector)
        return self.target_node or "" if is_of_this_plan else current.node_selector.get(HOSTNAME, "")

    def _deleted(self) -> Migrating:
        # Nobody but a user deletes an unfinished migration, or KubeVirt when its VM is gone.
        return self._failed(f"somebody deleted VirtualMachineInstanceMigration {self.migration}, which cancels it")

    def _failed(self, reason: str) -> Migrating:
        heading = self.heading if self.migration else self.target_node or ""
        failed = (*self.failed, FailedAttempt(self.migration_uid, reason, heading))
        return replace(self, outcome=NOT_MIGRATED, failed=failed, suspect=False)


def _number(name: str) -> int:
    """Of the attempt; migrations that were named otherwise count as the first."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 1

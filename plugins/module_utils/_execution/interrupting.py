# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI that cannot be migrated and is interrupted: restarted elsewhere, or stopped until its node is back.

Who brings a VMI back decides how it is ended; follows syncRunStrategy in pkg/virt-controller/watch/vm/vm.go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Interrupt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    ENDED,
    RETRY_AFTER,
    WAITING,
    Moment,
    Timed,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM, VMI_REPLICA_SET, JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind

RESTART, STOP = "restart", "stop"
# Outcomes, of which WAITING and the first one are not final.
ENDING = "ending"
RESTARTED, STOPPED, NOT_INTERRUPTED = "restarted", "stopped", "failed"
STOPPED_BY_OTHERS = "somebody else has stopped its VM"
MIGRATES = "it is being migrated"
# It runs on another node, where somebody else has brought it.
ALREADY_GONE = "already_gone"
WOULD = {RESTART: "would_restart", STOP: "would_stop"}


@dataclass(frozen=True, slots=True)
class Interrupting(Timed):
    """kind: restart or stop. source_node: which is drained. why: it is not migrated; is_refused: as KubeVirt says so.

    owner_kind, owner, owner_uid: who brings the VMI back. known: uids of its VMIs before, of which none is the
    successor. has_acted: it was asked for, and not refused as far as is known. is_unsure: no answer tells whether that
    was carried out, nor a look as yet. is_missing: it has ended, and no successor showed at the last look. is_undone:
    by the last answer, nothing on its owner says that it was stopped from here. is_doubtful: KubeVirt does not say any
    more that it cannot be migrated, and another plan has to tell what becomes of it. target_node: where it is expected
    to run again, or does. reason: why it failed or waits, or who has ended it. message: why the successor has no node,
    in the scheduler's words. begun_at, asked_at, ended_at: seconds since the epoch, else 0.
    """

    action: str
    kind: str
    namespace: str
    name: str
    uid: str
    source_node: str
    why: str = ""
    is_refused: bool = False
    target_node: str = ""
    owner_kind: str = ""
    owner: str = ""
    owner_uid: str = ""
    known: tuple[str, ...] = ()
    successor: str = ""
    successor_uid: str = ""
    has_acted: bool = False
    is_unsure: bool = False
    is_missing: bool = False
    is_undone: bool = False
    is_doubtful: bool = False
    outcome: str = WAITING
    reason: str = ""
    message: str = ""
    begun_at: float = 0.0
    asked_at: float = 0.0
    ended_at: float = 0.0

    @classmethod
    def begin(cls, action: Action) -> Interrupting:
        reference = action.object
        return cls(
            action=action.id,
            kind=RESTART if action.kind is ActionKind.RESTART else STOP,
            namespace=reference.namespace,
            name=reference.name,
            uid=reference.uid,
            source_node=action.node,
            why=action.cause,
            is_refused=action.is_refused,
            target_node=action.target or "",
        )

    def redirected(self, action: Action) -> Interrupting:
        """After the plan has changed: where it is expected now, unless it is on its way."""
        entry = replace(self, is_refused=action.is_refused, is_doubtful=False)
        if self.outcome != WAITING or self.is_asked:
            return entry
        return replace(entry, target_node=action.target or "", why=action.cause)

    def forgotten(self) -> Interrupting | None:
        return None if self.outcome == WAITING and not self.is_asked else self

    @property
    def unfinished(self) -> bool:
        return self.outcome in (WAITING, ENDING)

    @property
    def has_failed(self) -> bool:
        return self.outcome == NOT_INTERRUPTED

    @property
    def worth_telling(self) -> bool:
        return self.outcome != WAITING or bool(self.reason)

    def questions(self) -> Questions:
        titles = frozenset({self.title})
        if self.is_off:
            return Questions(known=titles)
        if not self.unfinished:
            return Questions()
        if self.is_missing and self.owner_kind != VMI_REPLICA_SET:
            return Questions(vmis=titles, vms=frozenset({self._owner}))
        unplaced = {self.successor_uid: self.namespace} if self.successor_uid else {}
        owners = frozenset({(self.namespace, self.owner_uid)} if self._watches_siblings else ())
        replica_sets = frozenset({self._owner} if self.is_missing else ())
        asked = Questions(known=titles, unplaced=unplaced, owners=owners, replica_sets=replica_sets)
        if not self.is_unsure:
            return asked
        return asked | Questions(vmis=titles, vms=frozenset({self._owner} if self.owner_kind == VM else ()))

    def step(self, moment: Moment) -> tuple[Interrupting, Interrupt | None]:
        if not self.unfinished:
            return self, None
        vmi, entry = moment.look.vmis.get(self.title), self
        if self.reason == MIGRATES and (vmi is None or vmi.ending or not self._is_flying(moment)):
            entry = replace(self, reason="")
        if vmi is None or vmi.uid != self.uid:
            return entry._knowing(moment, intact=False)._gone(moment), None
        entry = replace(entry, owner_kind=vmi.owner_kind, owner=vmi.owner, owner_uid=vmi.owner_uid)
        entry = entry._knowing(moment, intact=not (vmi.ending or vmi.has_ended))
        if vmi.has_ended and not vmi.ending:
            return entry._gone(moment), None
        if vmi.ending:
            return replace(entry, outcome=ENDING, begun_at=entry.begun_at or moment.now), None
        is_early = self.asked_at > 0 and moment.now - self.asked_at < RETRY_AFTER
        if self.is_unsure and not (is_early or entry._may_be_asked(moment.look)):
            entry = replace(entry, has_acted=False, is_unsure=False)
        if vmi.node and vmi.node != self.source_node:
            return entry._found_elsewhere(vmi.node, is_early=is_early)
        entry = replace(entry, is_doubtful=entry._may_migrate(vmi))
        if not moment.ready or is_early or entry.is_doubtful:
            return entry, None
        return entry._asking(moment)

    def answered(self, answer: Answer, now: float) -> Interrupting:
        done = not (answer.lost or answer.refused)
        asked = replace(
            self,
            has_acted=self.has_acted or done or answer.lost,
            is_unsure=self._stays_unsure(done=done, lost=answer.lost),
            is_undone=answer.needless,
            asked_at=now,
        )
        if answer.lost and not answer.refused:
            return asked
        if not answer.refused:
            return replace(asked, outcome=ENDING, reason="")
        # Who has stopped its VM is known, also when the next answer is that it has ended, and why it was taken back.
        told = self.reason in (STOPPED_BY_OTHERS, MIGRATES) and answer.refused != STOPPED_BY_OTHERS
        known = answer.needless and told
        asked = replace(asked, reason=self.reason if known else answer.refused)
        if answer.spared:
            asked = replace(asked, outcome=WAITING)
        return asked if answer.passing else replace(asked, outcome=NOT_INTERRUPTED, ended_at=now)

    def rehearsed(self) -> Interrupting:
        return replace(self, outcome=ENDED if self.reason == STOPPED_BY_OTHERS else WOULD[self.kind])

    def status(self) -> str:
        if self.outcome == RESTARTED:
            name = "" if self.successor in ("", self.name) else f" as {self.successor}"
            return f"restarted{name} on {self.target_node} in {self.seconds} s"
        if self.outcome == STOPPED:
            return f"stopped in {self.seconds} s"
        if self.outcome == NOT_INTERRUPTED:
            return f"failed, {self.reason}"
        if self.outcome == ALREADY_GONE:
            return f"not interrupted, it is on {self.target_node} already"
        if self.outcome in (WAITING, ENDED) and self.reason:
            return f"{self.outcome}, {self.reason}"
        if self.outcome == ENDING:
            doing = "restarting" if self.kind == RESTART else "stopping"
            return f"{doing}, no node fits: {self.message}" if self.message else doing
        return self.outcome.replace("_", " ")

    def result(self) -> JsonObject:
        names = ("namespace", "name", "outcome", "why", "owner_kind", "owner", "successor", "target_node")
        plain = {name: getattr(self, name) for name in names}
        return {
            **plain,
            "why": self.why.rstrip("."),
            "action": self.kind,
            "seconds": self.seconds,
            "failure_reason": self.reason,
        }

    @property
    def is_off(self) -> bool:
        """Whether it was to be restarted and is not: unless it is seen to run, it runs nowhere."""
        return self.has_failed and self._is_of_vm

    @property
    def had_gone(self) -> bool:
        """Whether it had gone when it was looked at for the first time."""
        return self.outcome == ENDED and self.begun_at == self.ended_at

    @property
    def seeks_a_successor(self) -> bool:
        """Whether its successor may have another name, as long as nothing else is known."""
        return self.kind == RESTART and self.owner_kind != VM

    @property
    def _watches_siblings(self) -> bool:
        return self.kind == RESTART and self.owner_kind == VMI_REPLICA_SET

    @property
    def _is_of_vm(self) -> bool:
        """Whether its successor will have its name; so it is as long as nothing else is known."""
        return self.kind == RESTART and self.owner_kind != VMI_REPLICA_SET

    @property
    def _owner(self) -> str:
        return f"{self.namespace}/{self.owner or self.name}"

    @property
    def _leaves_a_mark(self) -> bool:
        """Whether its owner may say that it was stopped: asked once more, that is taken back if it runs on."""
        return self.kind == STOP and self.begun_at > 0 and not self.is_undone

    @property
    def is_asked(self) -> bool:
        """Whether it may have been asked to end, or its owner may say so."""
        return self.was_asked or self.is_unsure or self._leaves_a_mark

    @property
    def was_asked(self) -> bool:
        """As an answer has told, and none has told since that it was not, or that somebody has undone it."""
        return self.has_acted and not (self.is_unsure or self.is_undone)

    def _is_flying(self, moment: Moment) -> bool:
        """By a migration of the run, as others are not seen."""
        return any(migration.goes_on for migration in moment.look.migrations.get(self.title, ()))

    def _found_elsewhere(self, node: str, *, is_early: bool) -> tuple[Interrupting, Interrupt | None]:
        """A mark that it may have is taken off, whether it had its turn or not."""
        if not self._leaves_a_mark:
            return replace(self, outcome=ALREADY_GONE, target_node=node, reason=""), None
        return self, None if is_early else self._command(begins=False)

    def _asking(self, moment: Moment) -> tuple[Interrupting, Interrupt | None]:
        """When it has its turn."""
        if not (self.outcome == ENDING and self.was_asked) and self._is_flying(moment):
            # Whoever of the run has begun it. What may be asked for already is asked about, and taken back.
            reason = self.reason if self.reason == STOPPED_BY_OTHERS else MIGRATES
            return replace(self, reason=reason), self._command(begins=False) if self.is_asked else None
        if self._watches_siblings and not self.known:
            return self, None  # until it is known who was there before, nobody can be told for its successor
        # Without an answer it is not known what comes of this, whatever the last one has told.
        asked = replace(self, begun_at=self.begun_at or moment.now, is_undone=False)
        return asked, self._command(begins=moment.begins)

    def _may_migrate(self, vmi: SeenVmi) -> bool:
        """Whether it might be migrated after all; what was asked for is followed to its end."""
        return self.is_refused and not (vmi.is_refused or self.is_asked)

    def _may_be_asked(self, look: Observation) -> bool:
        """Whether its VM may know already that it is to end. Of who is deleted it shows on itself."""
        if self.owner_kind != VM:
            return False
        vm = look.vms.get(self._owner)
        return vm is None or self.uid in vm.stops or (self.kind == STOP and vm.strategy == HALTED)

    def _command(self, *, begins: bool) -> Interrupt:
        return Interrupt(
            action=self.action,
            namespace=self.namespace,
            vmi=self.name,
            uid=self.uid,
            owner_kind=self.owner_kind,
            owner=self.owner,
            owner_uid=self.owner_uid,
            node=self.source_node,
            stop=self.kind == STOP,
            if_refused=self.is_refused,
            begins=begins,
        )

    def _knowing(self, moment: Moment, *, intact: bool) -> Interrupting:
        """With who was there before it ended. intact: it has not; else its successor may be there, on its way."""
        siblings = moment.look.siblings.get(self.owner_uid)
        if self.known or siblings is None or not self._watches_siblings:
            return self
        others = (other.uid for other in siblings if intact or other.phase == "Running")
        return replace(self, known=tuple(dict.fromkeys((self.uid, *others))))

    def _gone(self, moment: Moment) -> Interrupting:
        """It has ended, by whomever. A stop is over then, a restart when its successor runs."""
        begun = self.begun_at or moment.now
        if self.kind == STOP:
            return replace(self, begun_at=begun)._stopped(moment)
        successor = self._successor(moment)
        if successor is None:
            return replace(self, outcome=ENDING, begun_at=begun, is_missing=True, message="")._awaited(
                moment, asked=self.is_missing
            )
        if not self.begun_at and self._is_of_vm and successor.node == self.source_node:
            # It was made anew before the node was cordoned: nothing was done yet, and it has to leave all the same.
            return replace(self, outcome=ENDED, reason="", begun_at=begun, ended_at=begun)
        entry = replace(
            self,
            outcome=ENDING,
            begun_at=begun,
            successor=successor.name,
            successor_uid=successor.uid,
            is_missing=False,
        )
        if successor.phase == "Running":
            return replace(
                entry, outcome=RESTARTED, target_node=successor.node, message="", reason="", ended_at=moment.now
            )
        return replace(entry, message=moment.look.words.get(successor.uid, ""))

    def _stopped(self, moment: Moment) -> Interrupting:
        """Of one that is gone. Whether an earlier process has stopped it, or somebody else, its owner's mark tells.

        So it does where no answer came, unless its owner is gone as well: then it may have been stopped from here.
        """
        ours, theirs = self.was_asked, self.reason == STOPPED_BY_OTHERS
        acted = self.has_acted
        found = moment.look.vmis.get(self.title)
        is_known = found is not None and (found.uid == self.uid or found.may_be_of(self.owner_kind or VM))
        if not ours and (self.is_unsure or not is_known):
            if not self.is_missing:
                return replace(self, outcome=ENDING, is_missing=True)
            vm, replica_set = moment.look.vms.get(self._owner), moment.look.replica_sets.get(self._owner)
            marks = vm.before if vm is not None else replica_set.wanted if replica_set is not None else ()
            ours, theirs = self.source_node in marks, theirs or (vm is not None and vm.strategy == HALTED)
            is_told = self.owner_uid in {owner.uid for owner in (vm, replica_set) if owner is not None}
            acted = ours if self.is_unsure and is_told else acted
        reason = STOPPED_BY_OTHERS if theirs and not ours else ""
        outcome = STOPPED if ours else ENDED
        return replace(self, outcome=outcome, has_acted=acted, reason=reason, ended_at=moment.now)

    def _awaited(self, moment: Moment, *, asked: bool) -> Interrupting:
        """asked: the look was asked for the VM, or replica set, that is to bring it back."""
        if not asked:
            return self
        if self._watches_siblings:
            return (
                replace(self, outcome=ENDED, reason="", ended_at=moment.now) if self._is_needless(moment.look) else self
            )
        if not self._is_of_vm:
            return self
        vm, vmi = moment.look.vms.get(self._owner), moment.look.vmis.get(self.title)
        if vm is not None and (vm.brings_back(vmi) or vm.adopts(vmi)):
            return self
        is_wanted_off = vm is None or vm.ending or vm.strategy == HALTED
        if (is_wanted_off and self.is_unsure) or (vm is None and not self.owner_uid):  # maybe nobody has restarted it
            return replace(self, outcome=ENDED, reason="", ended_at=moment.now)
        why = "its VM is gone" if vm is None or vm.ending else f"its VM has run strategy {vm.strategy}"
        reason = f"it has ended, and nothing starts it again, as {why}"
        return replace(self, outcome=NOT_INTERRUPTED, reason=reason, ended_at=moment.now)

    def _is_needless(self, look: Observation) -> bool:
        """Whether its replica set was deleted, or scaled down, and makes no other one for it."""
        found = look.replica_sets.get(self._owner)
        if found is None or found.uid != self.owner_uid or found.ending:
            return True
        alive = [vmi for vmi in look.siblings.get(self.owner_uid, ()) if not (vmi.ending or vmi.has_ended)]
        return len(alive) >= found.replicas

    def _successor(self, moment: Moment) -> SeenVmi | None:
        look, others = moment.look, {self.uid, *self.known, *moment.taken}
        if not self._watches_siblings:
            found = look.vmis.get(self.title)
            if found is None or found.uid in others or found.has_ended:
                return None
            return found if found.may_be_of(self.owner_kind) else None
        new = [vmi for vmi in look.siblings.get(self.owner_uid, ()) if vmi.uid not in others and not vmi.has_ended]
        # One that was taken for it stays it; of several new ones the first by name.
        return next((vmi for vmi in new if vmi.uid == self.successor_uid), new[0] if new else None)

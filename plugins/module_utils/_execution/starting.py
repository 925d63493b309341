# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that was stopped for a node and starts again when that is back; a replica set gets its VMIs back by itself.

The mark on it stays until it runs, so that a task that is killed before does not forget it. It loses the run strategy
with the VM's getting it back: a VM that somebody stops from then on stays off. One that fails is started again, by
KubeVirt itself or from here; of one whose VMI is simply gone nobody knows whether somebody has stopped it. One that is
deleted before it runs is its owner's loss, and not ours: it is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Start, TakeMarkOff
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Questions,
    SeenReplicaSet,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    RETRY_AFTER,
    WAITING,
    Moment,
    Timed,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import BY_REQUEST, HALTED
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action

# Outcomes, of which WAITING and the first one are not final.
STARTING = "starting"
STARTED, DELETED, WOULD_START, NOT_STARTED = "started", "deleted", "would_start", "failed"
STILL_ENDING = "its guest has yet to shut down"
STILL_THERE = f"{STILL_ENDING}, or its former VMI to be gone"
NOT_ITS_OWN = "a VMI of its name is not its own"
OTHERS_FIRST = "by the plan others start before it"
LEFT_OFF = "somebody else has stopped it since; start it if it is to run"
# Of one whose mark somebody has taken away, as who replaces all of a VM does. What it ran with went with it.
HALTED_UNMARKED = (
    "it was stopped for the node, and is halted by what somebody has written since in place of its mark; start it by "
    "virtctl start if it is to run"
)
_OFF_UNMARKED = (
    "it was stopped for the node, and nothing starts it, as somebody has replaced it since or taken its mark away; "
    "start it by virtctl start, or set its run strategy to Halted if it is to stay off"
)
# What was waited for, when it is to be asked for a start.
_PASSED = (STILL_ENDING, STILL_THERE, NOT_ITS_OWN)
_FAILED = "its VMI has failed, and another one is asked for"
_GONE = "it ended before it was seen running; start it, or set its run strategy to Halted if it is to stay off"
_DELETED = "by somebody else since it was stopped"
# Seconds that others wait for those that were asked for: what no pod is made for is in nobody's way.
_FOR_A_POD, _MORE = 30.0, 5.0
# So often the pause doubles before what fails each time is asked for again: a node may lack its devices for minutes.
_DOUBLINGS = 4


class StartStage(Enum):
    """How far a VM is that was stopped for a node.

    WANTED: it has yet to get back what it ran with. ENDING: its former VMI has to end first, and even runs meanwhile.
    TAKEN: a VMI of its name is not its own. KubeVirt makes one its own that is nobody's, unless that ends before.
    UNWANTED: somebody else has stopped it since. COMING: all that it needs has been asked for. FAILED: what came has
    failed, and nothing brings another one. GONE: what came is no more, and nothing tells why.
    """

    WANTED = "wanted"
    ENDING = "ending"
    TAKEN = "taken"
    UNWANTED = "unwanted"
    COMING = "coming"
    RUNS = "runs"
    FAILED = "failed"
    GONE = "gone"


def start_stage(vm: SeenVm, vmi: SeenVmi | None, node: str) -> StartStage:
    """vmi: the VM's, looked at later than the VM."""
    before = vm.before.get(node, "")
    if vm.strategy == HALTED:
        return StartStage.WANTED if before and before not in BY_REQUEST else StartStage.UNWANTED
    if vmi is not None and vmi.owner_uid != vm.uid:
        return StartStage.TAKEN
    ending = vmi is not None and is_ending(vm, vmi)
    if not is_on_its_way(vm, vmi):
        if node not in vm.before:
            return _off_unmarked(vm, vmi)
        if not before:
            return _why_off(vm, vmi)
        return StartStage.ENDING if ending or vm.stops else StartStage.WANTED
    if before:
        return StartStage.WANTED
    if vmi is None or vmi.has_ended:
        return StartStage.COMING
    if ending:
        return StartStage.ENDING
    return StartStage.RUNS if vmi.phase == "Running" else StartStage.COMING


def _why_off(vm: SeenVm, vmi: SeenVmi | None) -> StartStage:
    """Of a VM that got back what it ran with, and is not on its way: nobody but others has asked it to stop since."""
    stopped = bool(vm.stops) if vmi is None else vmi.uid in vm.stops
    if vm.ending or stopped or (vmi is not None and vmi.has_succeeded):
        return StartStage.UNWANTED
    if vmi is None:
        return StartStage.GONE
    return StartStage.ENDING if vmi.ending else StartStage.FAILED


def _off_unmarked(vm: SeenVm, vmi: SeenVmi | None) -> StartStage:
    """Of a VM whose mark somebody has taken away: a request to stop it may be ours as well as anybody's."""
    if vm.stops or (vmi is not None and vmi.ending):
        return StartStage.ENDING
    return StartStage.GONE if vmi is None else StartStage.FAILED


def is_on_its_way(vm: SeenVm, vmi: SeenVmi | None) -> bool:
    """Whether it runs, or will without anybody's doing."""
    alive = vmi is not None and not (vmi.has_ended or is_ending(vm, vmi))
    return alive or vm.brings_back(vmi)


def is_ending(vm: SeenVm, vmi: SeenVmi) -> bool:
    """Whether a VMI goes away, though it may well run for as long as its guest takes to shut down."""
    return vmi.ending or vmi.uid in vm.stops


# What is to start, and its VMI.
Shown: TypeAlias = "tuple[SeenVm | SeenReplicaSet, SeenVmi | None]"


@dataclass(frozen=True, slots=True)
class Starting(Timed):
    """kind: of the API. source_node: for which it was stopped. node: where it runs.

    vmi_uid: of its VMI that may lack a node. message: what it waits for, or why it failed. attempts: how often it was
    asked for. has_acted: something was asked for, and not refused as far as is known. is_unsure: no answer tells
    whether that was carried out, nor a look as yet. shown: it and its VMI, when something was asked for. is_missing:
    nothing of it was there at the last look. begun_at, asked_since, asked_at, ended_at: seconds since the epoch, 0
    if not yet.
    """

    action: str
    kind: str
    namespace: str
    name: str
    uid: str
    source_node: str
    outcome: str = WAITING
    node: str = ""
    vmi_uid: str = ""
    message: str = ""
    attempts: int = 0
    has_acted: bool = False
    is_unsure: bool = False
    is_placed: bool = False
    shown: Shown | None = None
    is_missing: bool = False
    begun_at: float = 0.0
    asked_since: float = 0.0
    asked_at: float = 0.0
    ended_at: float = 0.0

    @classmethod
    def begin(cls, action: Action) -> Starting:
        reference = action.object
        return cls(action.id, reference.kind, reference.namespace, reference.name, reference.uid, action.node)

    def redirected(self, action: Action) -> Starting:
        """Where it starts is the scheduler's to say."""
        return self

    @property
    def unfinished(self) -> bool:
        return self.outcome in (WAITING, STARTING)

    @property
    def has_failed(self) -> bool:
        return self.outcome == NOT_STARTED

    def goes_first(self, now: float) -> bool:
        """Whether those wait that start after it: until it has its place, or does not get there for some reason.

        Nobody says why no pod is made for it, as there is a quota, or KubeVirt is away.
        """
        if not self.unfinished or self.is_placed or self.message not in ("", OTHERS_FIRST):
            return False
        return not self.awaits_pod or now - self.asked_since < _FOR_A_POD

    @property
    def awaits_pod(self) -> bool:
        """Whether it was asked for, and nothing tells of what comes of that."""
        return self.unfinished and not (self.is_placed or self.message) and self.asked_since > 0.0

    @property
    def worth_telling(self) -> bool:
        return not self.unfinished or bool(self.message)

    def questions(self) -> Questions:
        if not self.unfinished:
            return Questions()
        titles = frozenset({self.title})
        if self.kind == VMI_REPLICA_SET:
            return Questions(replica_sets=titles)
        unplaced = {self.vmi_uid: self.namespace} if self.vmi_uid else {}
        return Questions(vms=titles, vmis=titles, unplaced=unplaced)

    def step(self, moment: Moment) -> tuple[Starting, Start | TakeMarkOff | None]:
        if not self.unfinished:
            return self, None
        entry = replace(self, begun_at=self.begun_at or moment.now, vmi_uid="")
        seen = moment.look.replica_sets if self.kind == VMI_REPLICA_SET else moment.look.vms
        found = seen.get(self.title)
        if found is None or found.uid != self.uid:
            return entry, self._take_mark_off()
        shown, is_early = (found, moment.look.vmis.get(self.title)), moment.now - self.asked_at < RETRY_AFTER
        entry = entry._knowing(shown, is_early=is_early)
        entry, command = entry._with_vm(found, moment) if isinstance(found, SeenVm) else entry._with_set(found)
        if command is None or (entry.is_unsure and is_early):
            return entry, None
        return replace(entry, shown=shown), command

    def answered(self, answer: Answer, now: float) -> Starting:
        # Of one that somebody else has stopped since the mark was taken off.
        done = not (answer.lost or answer.needless) and answer.refused in ("", LEFT_OFF, HALTED_UNMARKED)
        asked = replace(
            self,
            has_acted=self.has_acted or done or answer.lost,
            is_unsure=self._stays_unsure(done=done, lost=answer.lost),
            message="" if self.message == OTHERS_FIRST else self.message,
            asked_since=self.asked_since or now,
            asked_at=now,
        )
        if answer.lost and not answer.refused:
            return asked
        if answer.refused:
            return replace(asked, message=answer.refused) if answer.passing else asked._failed(answer.refused, now)
        if isinstance(answer.command, TakeMarkOff):
            if answer.needless:
                return replace(asked, outcome=DELETED, message=_DELETED, ended_at=now)
            return replace(asked, outcome=STARTED, ended_at=now)
        return replace(asked, outcome=STARTING, message="", attempts=self.attempts + 1)

    def rehearsed(self) -> Starting:
        if self.outcome == DELETED:
            return self
        return replace(self, outcome=WOULD_START, message="" if self.message == OTHERS_FIRST else self.message)

    def status(self) -> str:
        if self.outcome == STARTED:
            return f"started{f' on {self.node}' if self.node else ''} in {self.seconds} s"
        return f"{self.outcome.replace('_', ' ')}{', ' if self.message else ''}{self.message}"

    def result(self) -> JsonObject:
        names = ("kind", "namespace", "name", "outcome", "node", "message")
        return {**{name: getattr(self, name) for name in names}, "seconds": self.seconds}

    def _knowing(self, shown: Shown, *, is_early: bool) -> Starting:
        """After a look that may show what no answer has told. is_early: what was asked for may still be done."""
        if not self.is_unsure or (is_early and shown == self.shown):
            return self
        return replace(self, has_acted=shown != self.shown, is_unsure=False)

    def _with_set(self, found: SeenReplicaSet) -> tuple[Starting, TakeMarkOff | None]:
        wanted = found.wanted.get(self.source_node, 0)
        if found.ready >= wanted:
            return replace(self, message=""), self._take_mark_off()
        return replace(self, outcome=STARTING, message=f"{found.ready} of {wanted} replicas are ready"), None

    def _with_vm(self, vm: SeenVm, moment: Moment) -> tuple[Starting, Start | TakeMarkOff | None]:
        vmi = moment.look.vmis.get(self.title)
        found = start_stage(vm, vmi, self.source_node)
        entry = replace(self, is_missing=found is StartStage.GONE)
        if found in (StartStage.FAILED, StartStage.GONE) and self.node:
            return entry, self._take_mark_off()
        if found is StartStage.FAILED and self.source_node not in vm.before:
            return self._failed(_OFF_UNMARKED, moment.now), None
        if found is StartStage.GONE:
            # A single look may fall between the end of one VMI and KubeVirt's note that it starts the next.
            why = _GONE if self.source_node in vm.before else _OFF_UNMARKED
            return self._failed(why, moment.now) if self.is_missing else entry, None
        runs_on = vmi is not None and vmi.owner_uid == vm.uid and not (vmi.has_ended or is_ending(vm, vmi))
        if found is StartStage.WANTED and not (moment.ready or runs_on):
            return replace(entry, message=OTHERS_FIRST), None
        if found in (StartStage.WANTED, StartStage.UNWANTED, StartStage.FAILED):
            if moment.kept_since and not entry.asked_since:  # what is left of their time, and some seconds of its own
                entry = replace(entry, asked_since=max(moment.kept_since, moment.now - _FOR_A_POD + _MORE))
            return entry._asking(moment.now, again=found is StartStage.FAILED)
        return entry._following(found, vmi, moment)

    def _asking(self, now: float, *, again: bool) -> tuple[Starting, Start | None]:
        pause = RETRY_AFTER * 2 ** min(self.attempts, _DOUBLINGS) if again else RETRY_AFTER
        entry = replace(self, message=_FAILED if again else "" if self.message in _PASSED else self.message)
        waits = self.asked_at and now - self.asked_at < pause
        return entry, None if waits else Start(self.action, self.namespace, self.name, self.uid, self.source_node)

    def _following(self, found: StartStage, vmi: SeenVmi | None, moment: Moment) -> tuple[Starting, TakeMarkOff | None]:
        if found is StartStage.TAKEN:
            return replace(self, message=NOT_ITS_OWN), None
        if found is StartStage.ENDING:
            return replace(self, message=STILL_THERE if vmi is not None and vmi.has_ended else STILL_ENDING), None
        if found is StartStage.RUNS and vmi is not None:
            return replace(self, node=vmi.node, message=""), self._take_mark_off()
        if vmi is not None and vmi.ending and vmi.has_ended:
            return replace(self, outcome=STARTING, message=STILL_THERE), None
        since = self.asked_since or moment.now
        # At first the scheduler may still see the taint of a node that was uncordoned right before.
        heard = vmi is not None and moment.now - since >= _MORE
        words = moment.look.words.get(vmi.uid, "") if vmi is not None and heard else ""
        placed = self.is_placed or bool(words or (vmi is not None and vmi.node))
        coming = replace(self, outcome=STARTING, message=f"no node fits: {words}" if words else "", is_placed=placed)
        coming = replace(coming, asked_since=since)
        return (replace(coming, vmi_uid=vmi.uid) if vmi is not None else coming), None

    def _take_mark_off(self) -> TakeMarkOff:
        return TakeMarkOff(self.action, self.kind, self.namespace, self.name, self.uid, self.source_node)

    def _failed(self, message: str, now: float) -> Starting:
        return replace(self, outcome=NOT_STARTED, message=message, ended_at=now)

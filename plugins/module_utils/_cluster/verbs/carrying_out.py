# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out commands. Each asks first, or by its preconditions, whether it is done already, so that it may come twice.

A refusal is the answer of one command. What concerns all of them, a server that does not answer or a permission that is
missing, is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    May,
    always,
    repeatable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import machines, migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    UNFORETOLD,
    Answer,
    Command,
    Evict,
    Interrupt,
    Migrate,
    Start,
    TakeMarkOff,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    REPLICA_SET,
    STOPPED_BY_OTHERS,
    VM,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import (
    HALTED_UNMARKED,
    LEFT_OFF,
    STILL_ENDING,
    StartStage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import find_cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    BY_REQUEST,
    HALTED,
    run_strategy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks

_THREADS = 8
_IN_FLIGHT = "in-flight migration"
_LEFT = "HasLeft"
# Of a webhook with side effects (k8s.io/apiserver, pkg/admission/plugin/webhook/errors/statuserror.go).
_NO_DRY_RUN = "does not support dry run"


@dataclass(frozen=True, slots=True)
class VerbSettings:
    """run: label of the run on what is created. owner: who is named on what is stopped.

    grace_period: of evicted pods in seconds, None for their own. unschedulable_timeout: of migrations, in seconds. What
    no command of a plan needs may be left out.
    """

    run: str = ""
    owner: str = ""
    grace_period: int | None = None
    unschedulable_timeout: int = 0
    dry_run: bool = False


class Verbs:
    """Carries out commands on a cluster.

    undoing: takes back what was begun, also where nothing more may be begun; None for `client`.
    """

    def __init__(self, client: Client, settings: VerbSettings, undoing: Client | None = None) -> None:
        self._client = client
        self._settings = settings
        self._undoing = undoing or client

    @property
    def server(self) -> str:
        return self._client.server

    def carry_out(
        self, commands: Iterable[Command], may: May = always, *, once: bool = False
    ) -> tuple[list[Answer], Failure | None]:
        """What came of them, side by side, and why some could not be asked at all, if so.

        may: asked before each of them, as this process may have stood still since the one before. once: whether nobody
        asks anew for what has failed for a moment.
        With the first of these nothing more is asked: the others come again after the next look, if they are still
        right then.
        """
        answers: list[Answer] = []
        troubles: list[Failure] = []
        client = self._client.guarded(may) if once else self._client.briefly(may)
        asking = Verbs(client, self._settings, self._undoing if once else self._undoing.briefly())

        def ask(command: Command) -> None:
            if troubles:
                return
            try:
                may()
                answers.append(asking._act(command) or Answer(command))
            except Failure as error:
                troubles.append(error)
                if error.maybe_done:
                    answers.append(Answer(command, lost=True))

        with ThreadPoolExecutor(_THREADS) as pool:
            for _done in pool.map(ask, list(commands)):
                pass
        lasting = (error for error in troubles if not error.passing)
        return answers, next(lasting, troubles[0] if troubles else None)

    def _act(self, command: Command) -> Answer | None:
        """None if it was carried out. Raises Failure for what concerns all commands."""
        if isinstance(command, Migrate):
            return self._migrate(command)
        if isinstance(command, Evict):
            return self._evict(command)
        if isinstance(command, Interrupt):
            return self._interrupt(command)
        try:
            if isinstance(command, Start):
                return self._start(command)
            return self._take_mark_off(command)
        except Failure as error:
            refusal = _refusal(command, error)
            # Of what has just been deleted the next look tells.
            return replace(refusal, passing=True) if error.gone else refusal

    def _migrate(self, command: Migrate) -> Answer | None:
        # Where nobody plans anew, it is left to the scheduler whether a pod may go to a node, and when.
        closed = "" if command.binding else self._closed(command.target)
        if why := closed or self._has_left(command):
            return Answer(command, why, passing=True)
        item = migrations.manifest(
            command.namespace,
            command.name,
            command.vmi,
            command.selector,
            self._settings.run,
            self._settings.unschedulable_timeout,
            source=command.source,
        )
        try:
            migrations.create(self._client, item, dry_run=self._settings.dry_run)
        except Failure as error:
            refusal = _refusal(command, error)
            if _IN_FLIGHT in refusal.refused and not command.binding:
                return self._in_flight(command, refusal)
            # The server's no to a VM that ends at this very moment says less than the next look does.
            gone = "" if refusal.passing else self._has_left(command)
            return Answer(command, gone, passing=True) if gone else refusal
        return None

    def _has_left(self, command: Migrate) -> str:
        """By a fresh look."""
        vmi = objects.find_vmi(self._client, command.namespace, command.vmi)
        return _elsewhere(vmi, command.uid, command.source)

    def _in_flight(self, command: Migrate, refusal: Answer) -> Answer:
        """Somebody else migrates it, or an earlier migration of it is just ending."""
        other = objects.unfinished(self._client, command.namespace).get(command.vmi)
        words = (
            f"VirtualMachineInstanceMigration {other.name} of somebody else moves it ({other.phase or 'new'})"
            if other
            else refusal.refused
        )
        return Answer(command, words, passing=True)

    def _closed(self, target: str) -> str:
        """Why a node takes no pods for now; empty if it does."""
        if not target:
            return ""
        node = objects.find(self._client, object_path("v1", None, "nodes", target), f"read node {target}")
        cordon = find_cordon(node, FIELD_MANAGER) if node else None
        if node is None:
            return f"there is no node {target} any more"
        if cordon is None:
            return ""
        return f"{target} has been cordoned by {cordon.told}"

    def _evict(self, command: Evict) -> Answer | None:
        options: JsonObject = {"preconditions": {"uid": command.uid}}
        if self._settings.grace_period is not None:
            options["gracePeriodSeconds"] = self._settings.grace_period
        if self._settings.dry_run:
            options["dryRun"] = ["All"]
        body: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": command.namespace, "name": command.pod},
            "deleteOptions": options,
        }
        path = object_path("v1", command.namespace, "pods", command.pod) + "/eviction"
        done = repeatable if self._settings.dry_run else None
        try:
            self._client.post(path, f"evict pod {command.namespace}/{command.pod}", body, done=done)
        except Failure as error:
            if error.gone:
                return Answer(command, needless=True)
            refusal = _refusal(command, error)
            # Another pod has the name now, or this one is being written: the next look tells.
            return Answer(command, refusal.refused, passing=True) if error.status == HTTPStatus.CONFLICT else refusal
        return None

    def _interrupt(self, command: Interrupt) -> Answer | None:
        """What has been asked already is not asked again: a second restart would even end the successor."""
        if command.owner_kind not in (VM, REPLICA_SET):
            return Answer(command, "nothing would start it again, as no VM or replica set owns it")
        end = self._end_vm if command.owner_kind == VM else self._end_replica
        try:
            vmi = self._vmi(command)
            if why := _elsewhere(vmi, command.uid, command.node):
                return self._by_itself(command, why)
            return end(command, vmi or {})
        except Failure as error:
            if error.reason == _LEFT:
                return Answer(command, lost=True) if error.maybe_done else self._by_itself(command, error.message)
            return _refusal(command, error)

    def _by_itself(self, command: Interrupt, why: str) -> Answer | None:
        """Of what is elsewhere already, unless an earlier command has stopped it."""
        stopped = command.stop and _is_off(self._vmi(command)) and self._is_marked(command)
        return None if stopped else Answer(command, why, passing=True, needless=True)

    def _end_vm(self, command: Interrupt, vmi: JsonObject) -> Answer | None:
        vm = self._owner(VM, command)
        if vm is None:
            return Answer(command, f"there is no VM {command.owner} any more that would start it again")
        if _is_going(vm):
            return Answer(command, f"VM {command.owner} is being deleted", passing=True)
        if _is_asked(command, vm, vmi):
            return _by_whom(command, is_marked=command.node in find_marks(vm))
        # What its VM was asked for before the look at it, and has done since, a later look at the VMI shows.
        self._stays(command)
        try:
            self._ask_vm(command, vm)
        except Failure as error:
            if error.status == HTTPStatus.CONFLICT and self._has_been_asked(command):
                return _by_whom(command, is_marked=self._is_marked(command))
            runs_on = not (self._settings.dry_run or error.passing or error.maybe_done)
            if command.stop and runs_on and not (error.reason == _LEFT and _is_off(self._vmi(command))):
                # By its mark it would be started again even if its owner stops it from now on.
                Verbs(self._undoing, self._settings)._take_mark_off(_mark_of(command))
            raise
        return None

    def _has_been_asked(self, command: Interrupt) -> bool:
        """By a fresh look."""
        vmi = self._vmi(command)
        vm = self._owner(VM, command)
        return bool(_elsewhere(vmi, command.uid, command.node)) or (
            vm is not None and vmi is not None and _is_asked(command, vm, vmi)
        )

    def _is_marked(self, command: Interrupt) -> bool:
        """Whether an earlier command, whose answer was lost, has stopped it."""
        owner = self._owner(command.owner_kind, command)
        return owner is not None and command.node in find_marks(owner)

    def _vmi(self, command: Interrupt) -> JsonObject | None:
        """By a fresh look, whichever has the name."""
        return objects.find_vmi(self._client, command.namespace, command.vmi)

    def _owner(self, kind: str, command: Interrupt) -> JsonObject | None:
        """None if it is gone; another one of its name is not it."""
        owner = objects.find_owner(self._client, kind, command.namespace, command.owner)
        return owner if owner is not None and owner["metadata"]["uid"] == command.owner_uid else None

    def _ask_vm(self, command: Interrupt, vm: JsonObject) -> None:
        dry_run, owner = self._settings.dry_run, self._settings.owner
        client = self._while_it_stays(command)
        if command.stop:
            if not dry_run:
                machines.mark_vm(self._client, vm, command.node, owner)
            machines.request(client, "stop", command.namespace, command.owner, dry_run=dry_run)
        elif run_strategy(vm) in BY_REQUEST:
            machines.request(client, "restart", command.namespace, command.owner, dry_run=dry_run)
        else:
            machines.delete_vmi(client, command.namespace, command.vmi, command.uid, dry_run=dry_run)

    def _while_it_stays(self, command: Interrupt) -> Client:
        """Its VM is asked whichever VMI it has by the time of a try, for which may be waited."""
        return self._client.guarded(lambda: self._stays(command))

    def _stays(self, command: Interrupt) -> None:
        """Raises Failure with reason _LEFT if it has ended or moved since it was looked at."""
        if why := _elsewhere(self._vmi(command), command.uid, command.node):
            attempted = f"end VMI {command.namespace}/{command.vmi}"
            raise Failure(attempted, self.server, why, "Leave it as it is.", reason=_LEFT)

    def _end_replica(self, command: Interrupt, _vmi: JsonObject) -> Answer | None:
        dry_run, owner = self._settings.dry_run, self._settings.owner
        replica_set = self._owner(REPLICA_SET, command)
        if replica_set is None or _is_going(replica_set):
            # Its VMIs go with it, or are nobody's from now on and would be lost: the next look tells.
            return Answer(command, f"replica set {command.owner} is being deleted", passing=True)
        if command.stop and not dry_run:
            try:
                machines.mark_replica(self._client, replica_set, command.node, owner, command.vmi)
            except Failure as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                # Many write it, as others of its VMIs are stopped at the same time.
                return Answer(command, _refusal(command, error).refused, passing=True)
        client = self._while_it_stays(command)
        machines.delete_vmi(client, command.namespace, command.vmi, command.uid, dry_run=dry_run)
        return None

    def _start(self, command: Start) -> Answer | None:
        vm = objects.find_owner(self._client, VM, command.namespace, command.vm)
        if vm is None or vm["metadata"]["uid"] != command.uid:
            return Answer(command, f"the {VM} is gone", passing=True)
        how_far = machines.start(self._client, vm, command.node, dry_run=self._settings.dry_run)
        if how_far is StartStage.UNWANTED:
            return Answer(command, LEFT_OFF if command.node in find_marks(vm) else HALTED_UNMARKED)
        return Answer(command, STILL_ENDING, passing=True) if how_far is StartStage.ENDING else None

    def _take_mark_off(self, command: TakeMarkOff) -> Answer | None:
        dry_run = self._settings.dry_run
        found = objects.find_owner(self._client, command.kind, command.namespace, command.name)
        if found is not None and found["metadata"]["uid"] == command.uid:
            machines.take_mark_off(self._client, found, command.kind, command.node, dry_run=dry_run)
            return None
        if command.kind == VM:
            machines.forget(self._client, command.node, command.uid, dry_run=dry_run)
        return Answer(command, needless=True)


def _elsewhere(vmi: JsonObject | None, uid: str, source: str) -> str:
    """Why a VM is not the one that was seen, or not where it was seen; empty if it is: watches lag behind."""
    if vmi is None or has_ended(vmi) or vmi["metadata"]["uid"] != uid:
        return "it has just ended"
    node = (vmi.get("status") or {}).get("nodeName") or ""
    return "" if node == source else f"it has just moved to {node}"


def _is_going(owner: JsonObject) -> bool:
    """Whether it was told to go, and starts nothing again."""
    return "deletionTimestamp" in owner["metadata"]


def _is_off(vmi: JsonObject | None) -> bool:
    return vmi is None or has_ended(vmi)


def _is_asked(command: Interrupt, vm: JsonObject, vmi: JsonObject) -> bool:
    """Whether all that is wanted has been asked for. vmi: the one that is to end."""
    if command.stop and run_strategy(vm) not in BY_REQUEST:
        return run_strategy(vm) == HALTED
    requests = (vm.get("status") or {}).get("stateChangeRequests") or ()
    asked = any(request["action"] == "Stop" and request.get("uid") == command.uid for request in requests)
    return asked or "deletionTimestamp" in vmi["metadata"]


def _mark_of(command: Interrupt) -> TakeMarkOff:
    """To be taken off a VM, which got it right before it was asked to stop."""
    return TakeMarkOff(command.action, VM, command.namespace, command.owner, command.owner_uid, command.node)


def _by_whom(command: Interrupt, *, is_marked: bool) -> Answer | None:
    """Of what has been asked already. What is not to start again for the node was not stopped for it."""
    theirs = command.stop and not is_marked
    return Answer(command, STOPPED_BY_OTHERS, passing=True, needless=True) if theirs else None


def _refusal(command: Command, error: Failure) -> Answer:
    """The server's no to one command. Raises the failure again where it concerns all commands."""
    if error.status is None or error.concerns_all:
        raise error
    # A budget's own words say all; of a server that is busy, or of a proxy before it, the status is news.
    tells = error.considered or error.unadmitted
    own = error.message.partition(", ")[2] if error.passing and tells else ""
    words = f"{UNFORETOLD}, as {error.message}" if _NO_DRY_RUN in error.message else own or error.message
    return Answer(command, words, error.passing, lost=error.maybe_done)

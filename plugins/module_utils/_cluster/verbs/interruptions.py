# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End a VM where it is, by stop or restart, through what brings it back: a VM, or a replica set."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import machines
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import (
    VerbSettings,
    answer_of,
    elsewhere,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Interrupt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    STOPPED_BY_OTHERS,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_refused
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
    JsonObject,
    controller,
    has_ended,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    BY_REQUEST,
    HALTED,
    run_strategy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks

_LEFT = "HasLeft"
_MIGRATABLE = "it can be migrated by now"


class Interruptions:
    """Carries out interruptions.

    undoing: takes back what was begun, also where nothing more may be begun.
    """

    def __init__(self, client: Client, settings: VerbSettings, undoing: Client) -> None:
        self._client = client
        self._settings = settings
        self._undoing = undoing

    def carry_out(self, command: Interrupt) -> Answer | None:
        """None if it was done. Raises Failure for what concerns all commands.

        What has been asked already is not asked again: a second restart would even end the successor.
        """
        if command.owner_kind not in (VM, VMI_REPLICA_SET):
            words = "nothing would start it again, as no VM or replica set owns it"
            taken_back = not command.begins
            return Answer(command, words, passing=taken_back, needless=taken_back, spared=taken_back)
        end = self._end_vm if command.owner_kind == VM else self._end_replica
        if not command.begins:
            end = self._as_asked
        try:
            vmi = self._vmi(command)
            if why := elsewhere(vmi, command.uid, command.node):
                return self._by_itself(command, why)
            return end(command, vmi or {})
        except Failure as error:
            if error.reason == _LEFT:
                return Answer(command, lost=True) if error.maybe_done else self._by_itself(command, error.message)
            if not (error.passing or error.maybe_done or self._has_stopped(command)):
                self._take_mark_off(command)
            return answer_of(command, error)

    def _by_itself(self, command: Interrupt, why: str) -> Answer | None:
        """Of what is elsewhere already, unless an earlier command has stopped it."""
        if self._has_stopped(command):
            return None
        self._take_mark_off(command)
        return Answer(command, why, passing=True, needless=True)

    def _spares(self, command: Interrupt, why: str) -> Answer:
        """Of what is there, and was not told to end."""
        self._take_mark_off(command)
        return Answer(command, why, passing=True, needless=True, spared=True)

    def _has_stopped(self, command: Interrupt) -> bool:
        """Whether it is off to stay so, or about to be, by a command whose answer was lost. By fresh looks."""
        owner = self._owner(command.owner_kind, command)
        return owner is not None and self._is_off(command, owner)

    def _is_off(self, command: Interrupt, owner: JsonObject) -> bool:
        """By a fresh look at the VMI, and this one at what brings it back."""
        if not command.stop or not _is_marked(command, owner):
            return False
        vmi = self._vmi(command)
        if vmi is None or has_ended(vmi) or _is_of_others(command, vmi):
            return command.owner_kind == VMI_REPLICA_SET or run_strategy(owner) in (HALTED, *BY_REQUEST)
        is_it = vmi["metadata"]["uid"] == command.uid
        if command.owner_kind == VMI_REPLICA_SET:
            return is_it and _is_going(vmi)
        # It may be on its way to another node and be stopped there.
        return run_strategy(owner) == HALTED or (is_it and _is_asked(command, owner, vmi))

    def _take_mark_off(self, command: Interrupt) -> None:
        """Of what runs on: by it, it would be started again even if its owner stops it from now on."""
        if not command.stop or self._settings.dry_run:
            return
        owner = self._owner(command.owner_kind, command)
        if owner is not None and _is_marked(command, owner):
            kind, node, ours = command.owner_kind, command.node, self._settings.owner
            machines.take_back(self._undoing, owner, kind, node, ours, command.vmi, partial(self._is_off, command))

    def _as_asked(self, command: Interrupt, vmi: JsonObject) -> Answer | None:
        """Of what is not to begin any more."""
        owner = self._owner(command.owner_kind, command)
        if command.owner_kind == VM and owner is not None and _is_asked(command, owner, vmi):
            return _by_whom(command, is_marked=_is_marked(command, owner))
        return None if _is_going(vmi) else self._spares(command, "it is not to end any more")

    def _may_migrate(self, command: Interrupt, vmi: JsonObject) -> bool:
        """Whether it may leave by a migration after all. What is only put to the server goes by the look before."""
        return command.if_refused and not (is_refused(vmi) or self._settings.dry_run)

    def _end_vm(self, command: Interrupt, vmi: JsonObject) -> Answer | None:
        vm = self._owner(VM, command)
        if vm is None:
            return Answer(command, f"there is no VM {command.owner} any more that would start it again")
        if _is_going(vm):
            return Answer(command, f"VM {command.owner} is being deleted", passing=True)
        if _is_asked(command, vm, vmi):
            return _by_whom(command, is_marked=_is_marked(command, vm))
        if self._may_migrate(command, vmi):
            return self._spares(command, _MIGRATABLE)
        # What its VM was asked for before the look at it, and has done since, a later look at the VMI shows.
        self._stays(command)
        try:
            self._ask_vm(command, vm)
            return self._keep_marked(command, vm) if command.stop else None
        except Failure as error:
            if error.status == HTTPStatus.CONFLICT and self._has_been_asked(command):
                owner = self._owner(VM, command)
                return _by_whom(command, is_marked=owner is not None and _is_marked(command, owner))
            raise

    def _has_been_asked(self, command: Interrupt) -> bool:
        """By a fresh look."""
        vmi = self._vmi(command)
        vm = self._owner(VM, command)
        return bool(elsewhere(vmi, command.uid, command.node)) or (
            vm is not None and vmi is not None and _is_asked(command, vm, vmi)
        )

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
                client = client.guarded(lambda: self._stays_marked(command))
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
        if why := elsewhere(self._vmi(command), command.uid, command.node):
            attempted = f"end VMI {command.namespace}/{command.vmi}"
            raise Failure(attempted, self._client.server, why, "Leave it as it is.", reason=_LEFT)

    def _keep_marked(self, command: Interrupt, before: JsonObject) -> Answer | None:
        """Of what was stopped, also where another process has taken the mark off at this very moment."""
        if self._settings.dry_run:
            return None
        try:
            owner = self._owner(VM, command)
            if owner is not None and not _is_marked(command, owner):
                machines.mark_vm(self._undoing, before, command.node, self._settings.owner, stopped=True)
        except Failure:
            return Answer(command, lost=True)  # it was asked for, and the next look tells whether it has its mark
        return None

    def _stays_marked(self, command: Interrupt) -> None:
        """As the last thing before it is asked: nobody would start it again for the node without its mark."""
        owner = self._owner(VM, command)
        if owner is None or not (_is_marked(command, owner) or run_strategy(owner) == HALTED):
            attempted = f"stop VM {command.namespace}/{command.owner}"
            why = "another process has taken its mark off"
            raise Failure(attempted, self._client.server, why, "Leave it as it is.", reason=_LEFT)

    def _end_replica(self, command: Interrupt, vmi: JsonObject) -> Answer | None:
        dry_run, owner = self._settings.dry_run, self._settings.owner
        replica_set = self._owner(VMI_REPLICA_SET, command)
        if replica_set is None or _is_going(replica_set):
            # Its VMIs go with it, or are nobody's from now on and would be lost: the next look tells.
            return Answer(command, f"replica set {command.owner} is being deleted", passing=True)
        if self._may_migrate(command, vmi) and not _is_going(vmi):
            return self._spares(command, _MIGRATABLE)
        if command.stop and not dry_run:
            try:
                machines.mark_replica(self._client, replica_set, command.node, owner, command.vmi)
            except Failure as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                # Many write it, as others of its VMIs are stopped at the same time.
                return Answer(command, answer_of(command, error).refused, passing=True)
        client = self._while_it_stays(command)
        machines.delete_vmi(client, command.namespace, command.vmi, command.uid, dry_run=dry_run)
        return None


def _is_going(item: JsonObject) -> bool:
    """Whether it was told to go: as an owner it starts nothing again."""
    return "deletionTimestamp" in item["metadata"]


def _is_of_others(command: Interrupt, vmi: JsonObject) -> bool:
    """Whether it has the name only, and keeps it: what is nobody's KubeVirt makes the VM's own, and lets run on."""
    owner = controller(vmi)
    return owner is not None and owner["uid"] != command.owner_uid


def _is_marked(command: Interrupt, owner: JsonObject) -> bool:
    """Whether it was stopped for its node, or was about to be."""
    mark = find_marks(owner).get(command.node)
    return mark is not None and (command.owner_kind == VM or command.vmi in mark.vmis)


def _is_asked(command: Interrupt, vm: JsonObject, vmi: JsonObject) -> bool:
    """Whether all that is wanted has been asked for. vmi: the one that is to end."""
    if command.stop and run_strategy(vm) not in BY_REQUEST:
        return run_strategy(vm) == HALTED
    requests = (vm.get("status") or {}).get("stateChangeRequests") or ()
    asked = any(request["action"] == "Stop" and request.get("uid") == command.uid for request in requests)
    return asked or _is_going(vmi)


def _by_whom(command: Interrupt, *, is_marked: bool) -> Answer | None:
    """Of what has been asked already. What is not to start again for the node was not stopped for it."""
    theirs = command.stop and not is_marked
    return Answer(command, STOPPED_BY_OTHERS, passing=True, needless=True) if theirs else None

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
from dataclasses import replace
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
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import (
    VerbSettings,
    answer_of,
    elsewhere,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.interruptions import Interruptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Answer,
    Command,
    Evict,
    Interrupt,
    Migrate,
    Start,
    TakeMarkOff,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import (
    HALTED_UNMARKED,
    LEFT_OFF,
    NOT_ITS_OWN,
    STILL_ENDING,
    StartStage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import find_cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks

_THREADS = 8
_IN_FLIGHT = "in-flight migration"


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
        """What came of them, side by side, and why some were not asked for, or nothing can tell, if so.

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
            if not troubles:
                try:
                    may()
                except Failure as error:
                    troubles.append(error)
            if troubles:
                answers.append(Answer(command, unasked=True))
                return
            try:
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
            return Interruptions(self._client, self._settings, self._undoing).carry_out(command)
        try:
            if isinstance(command, Start):
                return self._start(command)
            return self._take_mark_off(command)
        except Failure as error:
            refusal = answer_of(command, error)
            # Of what has just been deleted the next look tells.
            return replace(refusal, passing=True) if error.gone else refusal

    def _migrate(self, command: Migrate) -> Answer | None:
        item = migrations.manifest(
            command.namespace,
            command.name,
            command.vmi,
            command.selector,
            self._settings.run,
            self._settings.unschedulable_timeout,
            source=command.source,
        )
        # Where nobody plans anew, it is left to the scheduler whether a pod may go to a node, and when.
        closed = "" if command.binding else self._closed(command.target)
        if why := closed or self._has_left(command):
            # It may have left by this very migration, by a request that had no answer.
            is_made = not self._settings.dry_run and migrations.existing(self._client, item) is not None
            return None if is_made else Answer(command, why, passing=True, needless=True)
        try:
            migrations.create(self._client, item, dry_run=self._settings.dry_run)
        except Failure as error:
            refusal = answer_of(command, error)
            if _IN_FLIGHT in refusal.refused and not command.binding:
                return self._in_flight(command, refusal)
            # The server's no to a VM that ends at this very moment says less than the next look does.
            gone = "" if refusal.passing else self._has_left(command)
            return Answer(command, gone, passing=True) if gone else refusal
        return None

    def _has_left(self, command: Migrate) -> str:
        """By a fresh look."""
        vmi = objects.find_vmi(self._client, command.namespace, command.vmi)
        return elsewhere(vmi, command.uid, command.source)

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
            refusal = answer_of(command, error)
            # Another pod has the name now, or this one is being written: the next look tells.
            return Answer(command, refusal.refused, passing=True) if error.status == HTTPStatus.CONFLICT else refusal
        return None

    def _start(self, command: Start) -> Answer | None:
        vm = objects.find_owner(self._client, VM, command.namespace, command.vm)
        if vm is None or vm["metadata"]["uid"] != command.uid:
            return Answer(command, f"the {VM} is gone", passing=True)
        how_far = machines.start(self._client, vm, command.node, dry_run=self._settings.dry_run)
        if how_far is StartStage.UNWANTED:
            return Answer(command, LEFT_OFF if command.node in find_marks(vm) else HALTED_UNMARKED)
        waits = {StartStage.ENDING: STILL_ENDING, StartStage.TAKEN: NOT_ITS_OWN}.get(how_far)
        return Answer(command, waits, passing=True) if waits else None

    def _take_mark_off(self, command: TakeMarkOff) -> Answer | None:
        dry_run = self._settings.dry_run
        found = objects.find_owner(self._client, command.kind, command.namespace, command.name)
        if found is not None and found["metadata"]["uid"] == command.uid:
            machines.take_mark_off(self._client, found, command.kind, command.node, dry_run=dry_run)
            return None
        if command.kind == VM:
            machines.forget(self._client, command.node, command.uid, dry_run=dry_run)
        return Answer(command, needless=True)

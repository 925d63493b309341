# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations in parallel, each followed to its end: created, watched, and tried again when one fails.

A run can be interrupted after any call of `follow` and resumed in another process from `to_json`: whatever has
happened meanwhile stands in the cluster.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import migration_reasons, migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.following import follow
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.watch import WatchedList
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    FAILED,
    RUN_LABEL,
    SUCCEEDED,
    failure_reason,
    read_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.move import (
    MIGRATED,
    NOT_MIGRATED,
    PLANNED,
    WAITING,
    Move,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

# While target pods have no node the scheduler is asked why this often, in seconds: nothing tells by itself.
_PLACING_INTERVAL = 2.0
_QUIET_INTERVAL = 20.0
_VM_ENDED = "the VM ended during its migration"
_ENDED = ("Succeeded", "Failed")  # phases of a VMI
_NOT_ALLOWED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class MigrationRun:
    """moves: what is to be done. token: of this run, in the names of its migrations and a label on them.

    retries: how often a failed migration is tried again. unschedulable_timeout: seconds KubeVirt waits for a node.
    """

    def __init__(
        self, client: Client, moves: Iterable[Move], token: str, *, retries: int, unschedulable_timeout: int
    ) -> None:
        self.moves = list(moves)
        # The last wave that may be on its way.
        self.wave = max((move.wave for move in self.moves), default=1)
        self.trouble: Failure | None = None
        self.away = False
        self._client = client
        self._token = token
        self._retries = retries
        self._unschedulable_timeout = unschedulable_timeout
        # When the scheduler was asked, by the host's clock, which outlasts this process.
        self._asked_at = 0.0
        self._watched: WatchedList | None = None
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}

    @classmethod
    def begin(cls, client: Client, prospects: Iterable[Prospect], **settings: int) -> MigrationRun:
        return cls(client, map(Move.begin, prospects), uuid.uuid4().hex[:8], **settings)

    @classmethod
    def resume(cls, client: Client, state: Mapping[str, Any], **settings: int) -> MigrationRun:
        run = cls(client, (Move(**move) for move in state["moves"]), state["token"], **settings)
        run.away, run._asked_at = state["away"], state["asked_at"]
        return run

    def to_json(self) -> dict[str, Any]:
        """What `resume` takes."""
        moves = [asdict(move) for move in self.moves]
        return {"token": self._token, "away": self.away, "asked_at": self._asked_at, "moves": moves}

    @property
    def unfinished(self) -> list[Move]:
        return [move for move in self.moves if move.unfinished]

    @property
    def has_created(self) -> bool:
        return any(move.run == self._token for move in self.moves)

    def start(self, *, dry_run: bool = False) -> None:
        """Create what has no migration yet; what cannot be created now is left to `follow`.

        Raises Failure only if nothing was created.
        """
        for move in self.moves:
            if move.outcome != WAITING:
                continue
            try:
                self._create(move, dry_run=dry_run)
            except Failure as error:
                if not self.has_created:
                    raise
                self.trouble = error

    def follow(self, seconds: float, *, until_news: bool = False) -> list[str]:
        """Follow the migrations until all have ended, or for so long, or until there is news; lines on the news.

        While the API server does not answer it is asked again; `trouble` says so. Raises Failure.
        """
        return follow(self, seconds, until_news=until_news)

    def step(self, seconds: float) -> None:
        """Wait so long for something to happen, and do what follows from it. Raises Failure."""
        watched = self._watched = self._watched or self._watch()
        watched.update(min(seconds, self._interval()))
        self._objects = watched.objects
        for move in self.unfinished:
            if move.wave <= self.wave:
                self._advance(move)
        self._ask_scheduler()

    def news(self) -> list[str]:
        return [line for line in (move.news() for move in self.moves) if line]

    def _watch(self) -> WatchedList:
        """In all namespaces only if the VMIs stand in several, as that takes a permission on all of them."""
        namespaces = {move.namespace for move in self.unfinished}
        runs = ",".join(sorted({self._token, *(move.run for move in self.unfinished if move.run)}))
        path = migrations.migrations_path(namespaces.pop() if len(namespaces) == 1 else None)
        return WatchedList(self._client, path, migrations.RESOURCE, f"{RUN_LABEL} in ({runs})")

    def _interval(self) -> float:
        return _PLACING_INTERVAL if any(move.placing for move in self.unfinished) else _QUIET_INTERVAL

    def _advance(self, move: Move) -> None:
        if move.outcome == WAITING:
            self._create(move)
            return
        item = self._objects.get((move.namespace, move.migration))
        if item is None:
            self._vanished(move)
            return
        migration = read_migration(item)
        move.observe(migration)
        if migration.phase == SUCCEEDED:
            self._succeeded(move)
        elif migration.phase == FAILED and migration.cancelled:
            self._vanished(move)
        elif migration.phase == FAILED:
            self._failed(move)
        elif not move.placing:
            move.scheduler_message = migration.blocked if move.queued else ""

    def _ask_scheduler(self) -> None:
        placing = [move for move in self.moves if move.placing]
        # Its distance, as clocks are also set back.
        if not placing or abs(time.time() - self._asked_at) < _PLACING_INTERVAL:
            return
        self._asked_at = time.time()
        for namespace in sorted({move.namespace for move in placing}):
            asked = {move.migration_uid: move for move in placing if move.namespace == namespace}
            words = migration_reasons.scheduler_messages(self._client, namespace, asked)
            for uid, move in asked.items():
                move.scheduler_message = words.get(uid, "")

    def _create(self, move: Move, *, dry_run: bool = False) -> None:
        """A refusal is this VMI's alone. The name tells an attempt that was made before its answer was lost."""
        # What follows the VMI's name takes up to 20 characters.
        name = f"{move.name[:230]}-{self._token}-{move.attempts + 1}"
        timeout = self._unschedulable_timeout
        item = migrations.manifest(move.namespace, name, move.name, move.node_selector, self._token, timeout)
        try:
            created = migrations.create(self._client, item, dry_run=dry_run)
        except Failure as error:
            if error.passing or (error.status in _NOT_ALLOWED and not self.has_created):
                raise
            move.end(NOT_MIGRATED, reason=error.message if self._vmi(move) else _VM_ENDED)
            return
        if dry_run:
            move.end(PLANNED)
            return
        move.attempts += 1
        move.scheduler_message = ""
        move.observe(read_migration(created))
        self._objects[move.namespace, name] = created

    def _succeeded(self, move: Move) -> None:
        vmi = self._vmi(move)
        node = str(vmi["status"].get("nodeName")) if vmi else ""
        if vmi is None:
            move.end(NOT_MIGRATED, reason="the VM ended right after its migration")
        elif move.target_node not in (None, node):
            move.end(NOT_MIGRATED, node=node, reason=f"KubeVirt reports success, but the VM runs on {node}")
        else:
            move.end(MIGRATED, node=node)

    def _failed(self, move: Move) -> None:
        vmi = self._vmi(move)
        if vmi is None:
            move.end(NOT_MIGRATED, reason=_VM_ENDED)
            return
        reason = failure_reason(vmi, move.migration_uid) or self._reason(move)
        move.end(NOT_MIGRATED, reason=reason or "KubeVirt gives no reason")
        if move.attempts <= self._retries:
            move.outcome = WAITING
            self._create(move)

    def _reason(self, move: Move) -> str:
        """Why an attempt failed that did not get as far as to the hypervisor."""
        of_this = (self._client, move.namespace, move.migration_uid)
        if not move.scheduler_message:
            move.scheduler_message = migration_reasons.past_scheduler_message(*of_this)
        if move.scheduler_message:
            return f"no node could take it within {self._unschedulable_timeout} s: {move.scheduler_message}"
        return migration_reasons.last_warning(*of_this)

    def _vanished(self, move: Move) -> None:
        """Nobody but a user deletes an unfinished migration, or KubeVirt when its VM is gone."""
        if self._vmi(move) is None:
            move.end(NOT_MIGRATED, reason=_VM_ENDED)
        else:
            move.end(NOT_MIGRATED, reason=f"somebody deleted {migrations.KIND} {move.migration}, which cancels it")

    def _vmi(self, move: Move) -> Mapping[str, Any] | None:
        """The same VM that was to be migrated, unless it has ended."""
        vmi = migrations.find_vmi(self._client, move.namespace, move.name)
        if vmi is None or vmi["metadata"]["uid"] != move.uid or vmi["status"].get("phase") in _ENDED:
            return None
        return vmi

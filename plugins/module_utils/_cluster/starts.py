# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the VMs again that were stopped for a node, and see that they run; replica sets are only waited for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import following, machines
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migration_reasons import unscheduled_reason
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import find_vmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import REPLICA_SET, VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.start import (
    NOT_STARTED,
    STARTED,
    STARTING,
    WAITING,
    WOULD_START,
    Start,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks, wanted_replicas

_PAUSE = 0.5
_LAUNCHERS_OF = "kubevirt.io/created-by"


class Starts:
    """VMs and replica sets that carry the mark of a node and an owner."""

    def __init__(self, client: Client, node: str, starts: Iterable[Start]) -> None:
        self.starts = list(starts)
        self.trouble: Failure | None = None
        self.away = False
        self._client = client
        self._node = node

    @classmethod
    def begin(cls, client: Client, node: str, owner: str) -> Starts:
        """Raises Failure."""
        starts = []
        for kind in machines.RESOURCES:
            for item in machines.stopped(client, kind):
                mark = find_marks(item).get(node)
                if mark and mark.owner == owner:
                    starts.append(Start(kind, item["metadata"]["namespace"], item["metadata"]["name"]))
        return cls(client, node, starts)

    @classmethod
    def resume(cls, client: Client, node: str, state: Mapping[str, Any]) -> Starts:
        run = cls(client, node, (Start(**item) for item in state["starts"]))
        run.away = state["away"]
        return run

    def to_json(self) -> dict[str, Any]:
        """What `resume` takes."""
        return {"starts": [asdict(item) for item in self.starts], "away": self.away}

    @property
    def unfinished(self) -> list[Start]:
        return [item for item in self.starts if item.unfinished]

    def follow(self, seconds: float, *, until_news: bool = False) -> list[str]:
        """Until all run, or for so long, or until there is news; lines on the news. Raises Failure."""
        return following.follow(self, seconds, until_news=until_news)

    def rehearse(self) -> None:
        """Put each to the server without starting it. Raises Failure."""
        for item in self.starts:
            self._start(item, dry_run=True)
            if item.unfinished:
                item.outcome = WOULD_START

    def step(self, seconds: float) -> None:
        for item in self.unfinished:
            if item.outcome == WAITING:
                self._start(item)
            elif item.kind == VM:
                self._look_for_vm(item)
            else:
                self._look_for_replicas(item)
        if self.unfinished:
            time.sleep(min(seconds, _PAUSE))

    def news(self) -> list[str]:
        return [line for line in (item.news() for item in self.starts) if line]

    def _start(self, item: Start, *, dry_run: bool = False) -> None:
        """A refusal is this VM's alone. The mark may be gone by now if an answer was lost."""
        item.begun_at = item.begun_at or time.time()
        found = self._find(item)
        if found is None:
            return
        try:
            if item.kind == VM and self._node in find_marks(found):
                machines.start(self._client, found, self._node, dry_run=dry_run)
        except Failure as error:
            if error.passing or error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            item.end(NOT_STARTED, time.time(), message=error.message)
        else:
            item.outcome = item.outcome if dry_run else STARTING

    def _look_for_vm(self, item: Start) -> None:
        vmi = find_vmi(self._client, item.namespace, item.name)
        status = (vmi or {}).get("status") or {}
        if status.get("phase") == "Running":
            item.end(STARTED, time.time(), node=str(status.get("nodeName") or ""))
        elif vmi:
            launchers = f"{_LAUNCHERS_OF}={vmi['metadata']['uid']}"
            why = unscheduled_reason(self._client, item.namespace, launchers)
            item.message = f"no node fits: {why}" if why else ""

    def _look_for_replicas(self, item: Start) -> None:
        """The mark goes when all are there, so that a run that was killed is not forgotten."""
        found = self._find(item)
        if found is None:
            return
        wanted, ready = wanted_replicas(found, self._node), found.get("status", {}).get("readyReplicas", 0)
        item.message = "" if ready >= wanted else f"{ready} of {wanted} replicas are ready"
        if ready >= wanted:
            machines.take_mark_off(self._client, found, REPLICA_SET, self._node, dry_run=False)
            item.end(STARTED, time.time())

    def _find(self, item: Start) -> dict[str, Any] | None:
        found = machines.find_owner(self._client, item.kind, item.namespace, item.name)
        if found is None:
            item.end(NOT_STARTED, time.time(), message=f"the {item.kind} is gone")
        return found

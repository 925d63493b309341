# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the VMs again that were stopped for a node, and see that they run."""

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
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import API_VERSION, find_vmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import (
    STOPPED_LABEL,
    StoppedMark,
    find_stopped_mark,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.start import (
    NOT_STARTED,
    STARTED,
    STARTING,
    WAITING,
    WOULD_START,
    Start,
)

_PAUSE = 0.5
_LAUNCHERS_OF = "kubevirt.io/created-by"


class Starts:
    """VMs that carry the mark of a node and an owner."""

    def __init__(self, client: Client, starts: Iterable[Start]) -> None:
        self.starts = list(starts)
        self.trouble: Failure | None = None
        self.away = False
        self._client = client

    @classmethod
    def begin(cls, client: Client, node: str, owner: str) -> Starts:
        """Raises Failure."""
        path = f"/apis/{API_VERSION}/virtualmachines"
        page = client.get(path, "list VMs that were stopped", labelSelector=f"{STOPPED_LABEL}=true")
        found = [(vm["metadata"], find_stopped_mark(vm)) for vm in page["items"]]
        ours = [metadata for metadata, mark in found if mark and (mark.node, mark.owner) == (node, owner)]
        return cls(client, (Start(metadata["namespace"], metadata["name"]) for metadata in ours))

    @classmethod
    def resume(cls, client: Client, state: Mapping[str, Any]) -> Starts:
        run = cls(client, (Start(**item) for item in state["starts"]))
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
            else:
                self._look(item)
        if self.unfinished:
            time.sleep(min(seconds, _PAUSE))

    def news(self) -> list[str]:
        return [line for line in (item.news() for item in self.starts) if line]

    def _start(self, item: Start, *, dry_run: bool = False) -> None:
        """A refusal is this VM's alone. The mark may be gone by now if an answer was lost."""
        item.begun_at = item.begun_at or time.time()
        vm = machines.find_vm(self._client, item.namespace, item.name)
        if vm is None:
            item.end(NOT_STARTED, time.time(), message="the VM is gone")
            return
        mark: StoppedMark | None = find_stopped_mark(vm)
        try:
            if mark:
                machines.start_again(self._client, vm, mark, dry_run=dry_run)
        except Failure as error:
            if error.passing or error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            item.end(NOT_STARTED, time.time(), message=error.message)
        else:
            item.outcome = item.outcome if dry_run else STARTING

    def _look(self, item: Start) -> None:
        vmi = find_vmi(self._client, item.namespace, item.name)
        status = (vmi or {}).get("status") or {}
        if status.get("phase") == "Running":
            item.end(STARTED, time.time(), node=str(status.get("nodeName") or ""))
        elif vmi:
            launchers = f"{_LAUNCHERS_OF}={vmi['metadata']['uid']}"
            item.message = unscheduled_reason(self._client, item.namespace, launchers)

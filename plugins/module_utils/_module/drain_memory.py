# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_drain lets its run remember in the cluster, so that whoever goes on with the run knows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import failed_migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_memory import RunMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import RecordError, Remembered
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan


class DrainMemory:
    """Of one node. store: of the run, None for a drain that belongs to none: it remembers nothing.

    `hold`: of the run, None for a drain that changes nothing: it only reads. No method but `begin` raises anything.
    """

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any],
        progress: Progress,
        store: RunStore | None = None,
        hold: RunHold | None = None,
    ) -> None:
        self._client = client
        self._node = params["name"]
        self._progress = progress
        self._known = Remembered(self._node, "")
        self._store = store
        self._run: RunMemory | None = None
        if store is not None and hold is not None:
            self._run = RunMemory(hold, store, progress.tell)

    def mended(self, plan: Plan) -> None:
        """Let the plan in force say of the node what this plan says."""
        if self._run is None:
            return
        # With numpy; whoever has mended a plan has it.
        from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import in_force  # noqa: PLC0415

        self._run.remember(in_force.PLAN_DOCUMENT, lambda content: in_force.mended(content, plan, self._node))
        self._run.write()

    def begin(self, epochs: Mapping[str, str], label: str) -> dict[str, str]:
        """By node, what tells the attempts that still count from others. Raises Failure.

        epochs: what tells a node's maintenance from others. label: of the run on its migrations. Attempts whose failure
        a drain has reported count no more. One that belongs to no run, and shares no node with others, begins anew.
        All processes have to come to the same for a node: they name migrations by it.
        """
        own = epochs.get(self._node, "")
        self._known = self._read(self._node, own) or Remembered(self._node, own)
        if self._store is None:
            return {self._node: f"{own}/{self._failed(label)}"} if len(epochs) == 1 else dict(epochs)
        known = {node: self._read(node, epoch) for node, epoch in epochs.items()}
        return {node: f"{epoch}/{found.reported if (found := known[node]) else 0}" for node, epoch in epochs.items()}

    def recall(self, record: Record, now: float) -> Record:
        if self._known.is_empty:
            return record
        self._progress.tell(_told(self._known))
        return memory.recall(record, self._known, now)

    def keep(self, record: Record) -> None:
        """What has changed is written at once, or a little later if something was written a moment ago.

        Interruptions never wait: whoever goes on has to know which VMIs ran before.
        """
        if self._run is None:
            return
        found = memory.remembered(record, self._node, self._known.epoch)
        begun = {entry.uid for entry in found.interruptions} - {entry.uid for entry in self._known.interruptions}
        self._note(replace(found, reported=self._known.reported))
        self._run.write(at_once=bool(begun))

    def end(self, record: Record, *, is_done: bool) -> None:
        """Write all that has not been written. Of a drain that is done nothing has to be remembered."""
        if self._run is None:
            return
        known = self._known
        if is_done:
            self._note(Remembered(self._node, known.epoch))
        else:
            found = memory.remembered(record, self._node, known.epoch)
            self._note(replace(found, migrations=(), reported=known.reported + 1))
        self._run.write(last=True)

    def _failed(self, label: str) -> str:
        """What stands for the migrations away from the node that have failed so far."""
        return hashlib.sha256(" ".join(failed_migrations(self._client, label, self._node)).encode()).hexdigest()

    def _read(self, node: str, epoch: str) -> Remembered | None:
        try:
            kept = self._store.get(f"record-{node}") if self._store is not None else None
            found = memory.decode(kept.content) if kept else None
        except Failure as error:
            self._progress.tell(f"{error} Going on without it.")
            return None
        except RecordError as error:
            self._progress.tell(f"what is remembered of the node is passed over: {error}")
            return None
        return found if found and (found.node, found.epoch) == (node, epoch) else None

    @property
    def _document(self) -> str:
        return f"record-{self._node}"

    def _note(self, known: Remembered) -> None:
        if self._run is not None and known != self._known:
            self._known = known
            self._run.remember(self._document, lambda _content: memory.encode(known))


def _told(found: Remembered) -> str:
    counts = (
        (len(found.migrations), "VM whose migration has failed", "VMs whose migrations have failed"),
        (len(found.interruptions), "interruption", "interruptions"),
    )
    parts = [f"{count} {one if count == 1 else several}" for count, one, several in counts if count]
    return f"an earlier process has left {' and '.join(parts)} to go on from"

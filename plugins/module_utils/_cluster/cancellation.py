# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cancel the unfinished migrations of some VMIs, and wait until KubeVirt has undone them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import (
    KIND,
    cancel,
    find,
    find_vmi,
    migration_path,
    unfinished,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Wish

NOT_MIGRATING, MIGRATING, WOULD_CANCEL, CANCELLING = "not_migrating", "migrating", "would_cancel", "cancelling"
CANCELLED, TOO_LATE = "cancelled", "migrated"
_INTERVAL = 0.5


class Cancellation:
    """What becomes of the migrations of some VMIs, as far as it was seen: nothing of it is lost with the API server.

    `outcomes`: by title of the VMI; MIGRATING is one whose cancellation could not be asked for. `trouble`: why asking
    or looking fails now.
    """

    def __init__(self, client: Client, wishes: Iterable[Wish]) -> None:
        """Look for them. Raises Failure."""
        self.trouble: Failure | None = None
        self._client = client
        self._wishes = list(wishes)
        by_namespace = {name: unfinished(client, name) for name in {wish.namespace for wish in self._wishes}}
        found = {wish.title: by_namespace[wish.namespace].get(wish.name) for wish in self._wishes}
        self.migrations: dict[str, Migration] = {title: item for title, item in found.items() if item}
        self.outcomes = {title: MIGRATING if item else NOT_MIGRATING for title, item in found.items()}
        self._sources = {wish.title: self._node(wish) for wish in self._wishes}
        self._nodes = dict(self._sources)

    @property
    def left(self) -> list[str]:
        """VMIs whose migration is not undone yet."""
        return [title for title, outcome in self.outcomes.items() if outcome in (MIGRATING, CANCELLING)]

    @property
    def has_begun(self) -> bool:
        return any(outcome not in (NOT_MIGRATING, MIGRATING) for outcome in self.outcomes.values())

    def request(self, *, dry_run: bool = False) -> None:
        """What cannot be asked for now is left to `wait`. Raises Failure only if nothing was changed."""
        try:
            self._request(dry_run=dry_run)
        except Failure as error:
            if dry_run or not self.has_begun:
                raise
            self.trouble = error

    def wait(self, seconds: float) -> None:
        """Until KubeVirt has undone them all, at most for so long; not on where time does not mend the trouble."""
        end = time.monotonic() + seconds
        while self.left and time.monotonic() < end:
            try:
                self._request(dry_run=False)
                self._look()
                self.trouble = None
            except Failure as error:
                self.trouble = error
                if not error.passing:
                    return
            if self.left:
                time.sleep(_INTERVAL)

    def results(self) -> list[dict[str, Any]]:
        """What a module returns of them, in the order of the wishes."""
        results = []
        for wish in self._wishes:
            migration = self.migrations.get(wish.title)
            result = {
                "namespace": wish.namespace,
                "name": wish.name,
                "outcome": self.outcomes[wish.title],
                "source_node": self._sources[wish.title],
                "node": self._nodes[wish.title],
                "migration": migration.name if migration else "",
            }
            results.append(result)
        return results

    def _request(self, *, dry_run: bool) -> None:
        for title, migration in self.migrations.items():
            if self.outcomes[title] == MIGRATING:
                cancel(self._client, migration, dry_run=dry_run)
                self.outcomes[title] = WOULD_CANCEL if dry_run else CANCELLING

    def _look(self) -> None:
        by_title = {wish.title: wish for wish in self._wishes}
        for title in self.left:
            migration = self.migrations[title]
            path = migration_path(migration.namespace, migration.name)
            item = find(self._client, path, f"read {KIND} {migration.namespace}/{migration.name}")
            if item is None or item["metadata"]["uid"] != migration.uid:
                self._nodes[title] = self._node(by_title[title])
                moved = self._nodes[title] not in ("", self._sources[title])
                self.outcomes[title] = TOO_LATE if moved else CANCELLED

    def _node(self, wish: Wish) -> str:
        """Where the VMI runs; empty if it does not."""
        vmi = find_vmi(self._client, wish.namespace, wish.name)
        return str(((vmi or {}).get("status") or {}).get("nodeName") or "")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cancel the unfinished migrations of some VMIs, and wait until KubeVirt has undone them.

An evacuation is withdrawn first: KubeVirt would start the next migration at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    evacuated_from,
    find_again,
    find_vmi,
    node_of,
    unfinished,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.evacuations import withdraw
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import cancel
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest

NOT_MIGRATING, STILL_MIGRATING, WOULD_CANCEL, CANCELLING = "not_migrating", "migrating", "would_cancel", "cancelling"
CANCELLED, TOO_LATE = "cancelled", "migrated"
_INTERVAL = 0.5


class Cancellation:
    """What becomes of the migrations of some VMIs, as far as it was seen: nothing of it is lost with the API server.

    `outcomes`: by title of the VMI; MIGRATING is one whose cancellation could not be asked for. evacuated: the node
    that KubeVirt wanted it to leave, by title, of those where it did. `trouble`: why asking or looking fails now.
    """

    def __init__(self, client: Client, requests: Iterable[MigrationRequest], may: May) -> None:
        """Look for them. Raises Failure.

        may: asked before anything is cancelled.
        """
        self.trouble: Failure | None = None
        self._client = client.guarded(may)
        self._requests = list(requests)
        by_namespace = {name: unfinished(client, name) for name in {request.namespace for request in self._requests}}
        found = {request.title: by_namespace[request.namespace].get(request.name) for request in self._requests}
        self.migrations: dict[str, Migration] = {title: item for title, item in found.items() if item}
        vmis = {request.title: find_vmi(client, request.namespace, request.name) for request in self._requests}
        self.evacuated = {title: node for title, vmi in vmis.items() if (node := evacuated_from(vmi))}
        # By title: whose evacuations were withdrawn, or need not be any more; and of whom something was asked.
        self._withdrawn: set[str] = set()
        self._asked: set[str] = set()
        moving = {*self.migrations, *self.evacuated}
        self.outcomes = {title: STILL_MIGRATING if title in moving else NOT_MIGRATING for title in vmis}
        self._sources = {title: node_of(vmi) for title, vmi in vmis.items()}
        self._nodes = dict(self._sources)

    @property
    def left(self) -> list[str]:
        """VMIs whose migration is not undone yet."""
        return [title for title, outcome in self.outcomes.items() if outcome in (STILL_MIGRATING, CANCELLING)]

    @property
    def has_begun(self) -> bool:
        """Or may have, or would in check mode."""
        return bool(self._asked)

    def request(self, *, dry_run: bool = False) -> None:
        """What cannot be asked for now is left to `wait`. Raises Failure only if nothing was changed."""
        try:
            self._request(self._client, dry_run=dry_run)
        except Failure as error:
            if dry_run or not self.has_begun:
                raise
            self.trouble = error

    def wait(self, seconds: float) -> None:
        """Until KubeVirt has undone them all, at most for so long; not on where time does not mend the trouble.

        Looks at least once: what was asked for at the very end may be done.
        """
        end, client = time.monotonic() + seconds, self._client.briefly()
        while self.left:
            try:
                self._request(client, dry_run=False)
                self._look(client)
                self.trouble = None
            except Failure as error:
                self.trouble = error.following(self.trouble)
                if not error.passing:
                    return
            if not self.left or time.monotonic() >= end:
                return
            time.sleep(_INTERVAL)

    def results(self) -> list[JsonObject]:
        """What a module returns of them, in the order of the requests."""
        results = []
        for request in self._requests:
            migration = self.migrations.get(request.title)
            result = {
                "namespace": request.namespace,
                "name": request.name,
                "outcome": self.outcomes[request.title],
                "source_node": self._sources[request.title],
                "node": self._nodes[request.title],
                "migration": migration.name if migration else "",
            }
            results.append(result)
        return results

    def _request(self, client: Client, *, dry_run: bool) -> None:
        for request in self._requests:
            title = request.title
            if self.outcomes[title] != STILL_MIGRATING:
                continue
            if title in self.evacuated and not self._end_evacuation(client, request, dry_run=dry_run):
                self.outcomes[title] = TOO_LATE
                continue
            if title in self.migrations:
                with self._asking(title):
                    if cancel(client, self.migrations[title], dry_run=dry_run):
                        self._asked.add(title)
            asked = CANCELLING if title in self.migrations else CANCELLED
            self.outcomes[title] = WOULD_CANCEL if dry_run else asked

    def _end_evacuation(self, client: Client, request: MigrationRequest, *, dry_run: bool) -> bool:
        """A migration that KubeVirt has begun for it meanwhile goes on, and is found only by a look afterwards.

        False if the VMI has moved by now: what makes it leave that node as well is not what was looked at.
        """
        title = request.title
        if title not in self._withdrawn:
            with self._asking(title):
                if withdraw(client, self.evacuated[title], request.namespace, request.name, dry_run=dry_run):
                    self._asked.add(title)
            self._withdrawn.add(title)
        begun = unfinished(client, request.namespace).get(request.name)
        if self._has_moved(client, request):
            return False
        if begun is not None:
            self.migrations[title] = begun
        return True

    @contextmanager
    def _asking(self, title: str) -> Iterator[None]:
        """What may have been done though nobody knows counts."""
        try:
            yield
        except Failure as error:
            if error.maybe_done:
                self._asked.add(title)
            raise

    def _look(self, client: Client) -> None:
        by_title = {request.title: request for request in self._requests}
        for title in self.left:
            if find_again(client, self.migrations[title]) is None:
                self.outcomes[title] = TOO_LATE if self._has_moved(client, by_title[title]) else CANCELLED

    def _has_moved(self, client: Client, request: MigrationRequest) -> bool:
        title = request.title
        self._nodes[title] = node_of(find_vmi(client, request.namespace, request.name))
        return self._nodes[title] not in ("", self._sources[title])

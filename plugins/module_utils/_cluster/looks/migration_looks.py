# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at some VMIs that are wanted elsewhere, and at them on their way, with as few permissions as that takes.

First at each request: the VMI, the nodes it may go to, and its migrations. Then one watch, of migrations, in all
namespaces only if the VMIs stand in several; VMIs are read one by one, when the reducer asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    MIGRATIONS,
    find,
    find_migrations,
    find_vmi,
    migrations_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.watch import WatchedList
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL, by_vmi, read_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect

# What pins a pod to the wanted nodes, and the names of those nodes.
_Destination = tuple[Mapping[str, str], frozenset[str]]


def read_prospects(client: Client, requests: Iterable[MigrationRequest]) -> list[Prospect]:
    """One for each request, in their order. Each place is read once. Raises Failure, InvalidRequest."""
    requests = list(requests)
    namespaces = {request.namespace for request in requests}
    migrations = by_vmi(entry for namespace in namespaces for entry in find_migrations(client, namespace))
    different = {request.destination: request for request in requests}
    destinations = {name: _destination(client, request) for name, request in different.items()}
    prospects = []
    for request in requests:
        selector, nodes = destinations[request.destination]
        vmi = find_vmi(client, request.namespace, request.name)
        prospects.append(Prospect(request, vmi, selector, nodes, migrations.get(request.title, ())))
    return prospects


def _destination(client: Client, request: MigrationRequest) -> _Destination:
    if request.target_node:
        return _node(client, request.target_node)
    query = {"labelSelector": request.destination}
    page = client.get(
        collection_path("v1", None, "nodes"), f"list nodes with the labels {request.destination}", **query
    )
    return request.added_node_selector, frozenset(node["metadata"]["name"] for node in page["items"])


def _node(client: Client, name: str) -> _Destination:
    """A pod is pinned to a node by its label, which need not be the node's name."""
    node = find(client, object_path("v1", None, "nodes", name), f"read node {name}")
    if node is None:
        return {}, frozenset()
    hostname = (node["metadata"].get("labels") or {}).get(HOSTNAME)
    return {HOSTNAME: hostname} if hostname else {}, frozenset({name})


class MigrationLooks:
    """run: label of the run. unschedulable_timeout: of its migrations, in seconds."""

    def __init__(self, client: Client, run: str, unschedulable_timeout: int) -> None:
        self._client = client
        self._run = run
        self._inquiries = Inquiries(client, unschedulable_timeout)
        self._known: set[str] = set()
        self._at_hand: list[SeenVmi] = []
        self._runs = {run}
        self._namespaces: set[str] = set()
        self._migrations: WatchedList | None = None

    def follow(self, prospects: Iterable[Prospect]) -> None:
        """Look at these VMIs as well from now on. What was read of them will do for the first look.

        Migrations by which they are on their way already are looked at as well, but no others of the runs that those
        belong to.
        """
        prospects = list(prospects)
        known = [prospect.in_flight for prospect in prospects if prospect.in_flight is not None]
        self._known.update(migration.uid for migration in known)
        self._at_hand += [SeenVmi.of(prospect.vmi) for prospect in prospects if prospect.vmi is not None]
        runs = self._runs | {migration.run for migration in known}
        namespaces = self._namespaces | {prospect.request.namespace for prospect in prospects}
        if (runs, namespaces) != (self._runs, self._namespaces):
            self._leave()
            self._runs, self._namespaces, self._migrations = runs, namespaces, None

    def look(self, questions: Questions, seconds: float) -> Observation:
        """Return with the next changes, or after some seconds without one; at once the first time, and if asked to.

        Raises Failure.
        """
        wait = min(seconds, self._inquiries.ask_scheduler(questions))
        migrations = self._migrations = self._migrations or self._watched()
        migrations.update(0.0 if questions.vmis else max(0.0, wait))
        seen = map(read_migration, migrations.objects.values())
        ours = [migration for migration in seen if migration.run == self._run or migration.uid in self._known]
        at_hand, self._at_hand = self._at_hand, []
        return self._inquiries.observe(questions, at_hand, ours)

    def forget(self) -> None:
        """Let the next look read everything anew, and not wait."""
        self._leave()
        self._at_hand = []

    def _leave(self) -> None:
        """Hear no more of the watch that is open; its list is read anew."""
        if self._migrations is not None:
            self._migrations.forget()

    def _watched(self) -> WatchedList:
        path = migrations_path(next(iter(self._namespaces)) if len(self._namespaces) == 1 else None)
        selector = f"{RUN_LABEL} in ({','.join(sorted(self._runs))})"
        return WatchedList(self._client, path, MIGRATIONS, {"labelSelector": selector})

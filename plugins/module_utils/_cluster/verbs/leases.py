# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, write and delete the Leases in one namespace, those of nodes too, each on the version that was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.namespaces import create_in
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import (
    held_lease,
    lease_name,
    parse_lease,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_API_VERSION = "coordination.k8s.io/v1"


class Leases:
    """`query`: of every write, such as a dry run's. All methods raise Failure."""

    def __init__(self, client: Client, namespace: str, query: Mapping[str, str]) -> None:
        self.namespace = namespace
        self._client = client
        self._query = dict(query)
        self._dry_run = "dryRun" in query
        self._all = collection_path(_API_VERSION, namespace, "leases")

    def find(self, name: str) -> JsonObject | None:
        return find(self._client, self._path(name), f"read lease {self.namespace}/{name}")

    def labelled(self, label: str, value: str) -> list[JsonObject]:
        attempted = f"list leases in namespace {self.namespace}"
        items: list[JsonObject] = self._client.get(self._all, attempted, labelSelector=f"{label}={value}")["items"]
        return items

    def write(self, lease: JsonObject, *, there: bool) -> JsonObject:
        """As the server keeps it. Status 409 if somebody else wrote the Lease since it was read, or was there first.

        There: whether one was read that this is to replace. A missing namespace is created.
        """
        name = lease["metadata"]["name"]
        attempted = f"hold lease {self.namespace}/{name}"
        if there:
            written: JsonObject = self._client.replace(self._path(name), attempted, lease, **self._query)
            return written
        return create_in(
            self._client, self.namespace, self._all, attempted, lease, dry_run=self._dry_run, **self._query
        )

    def release(self, lease: JsonObject) -> None:
        """Delete it while its holder has it; one that is gone, or another's by now, is released.

        The holder may renew it at the same time from elsewhere, so a version that was outrun is read again.
        """
        name, holder = lease["metadata"]["name"], parse_lease(lease).holder

        def delete(found: JsonObject) -> None:
            if found and parse_lease(found).holder == holder:
                self._delete(found)

        retry_on_newest(lease, delete, lambda _conflict: self.find(name) or {})

    def _delete(self, lease: JsonObject) -> None:
        """As it was read; fails with status 409 if somebody wrote it since. One that is gone is no error."""
        metadata = lease["metadata"]
        written = {"resourceVersion": metadata["resourceVersion"]}
        attempted = f"release lease {self.namespace}/{metadata['name']}"
        try:
            self._client.delete_only(self._path(metadata["name"]), attempted, written, dry_run=self._dry_run)
        except Failure as error:
            if not error.gone:
                raise

    def _path(self, name: str) -> str:
        return object_path(_API_VERSION, self.namespace, "leases", name)


class NodeLeases(Leases):
    """All methods raise Failure."""

    def read(self, node: str) -> JsonObject | None:
        return self.find(lease_name(node))

    def hold(
        self, before: JsonObject | None, node: JsonObject, holder: str, seconds: int, now: datetime, run: str = ""
    ) -> JsonObject:
        """Take or renew; fails with status 409 if somebody else wrote the Lease since `before` was read."""
        lease = held_lease(before, node, self.namespace, holder, seconds, now, run)
        self.write(lease, there=before is not None)
        return lease

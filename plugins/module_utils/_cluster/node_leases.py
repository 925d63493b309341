# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, take, renew and release the Leases of nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path, object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node_lease import held_lease, lease_name

Object = dict[str, Any]

_API_VERSION = "coordination.k8s.io/v1"


class NodeLeases:
    """The Leases in one namespace. `query`: of every write, such as a dry run's. All methods raise Failure."""

    def __init__(self, client: Client, namespace: str, query: dict[str, str]) -> None:
        self.namespace = namespace
        self._client = client
        self._query = query
        self._dry_run = "dryRun" in query
        self._all = collection_path(_API_VERSION, namespace, "leases")

    def read(self, node: str) -> Object | None:
        name = lease_name(node)
        try:
            lease: Object = self._client.get(self._path(name), f"read lease {self.namespace}/{name}")
        except Failure as error:
            if error.status == 404:
                return None
            raise
        return lease

    def hold(self, before: Object | None, node: Object, holder: str, seconds: int, now: datetime) -> Object:
        """Take or renew; fails with status 409 if somebody else wrote the Lease since `before` was read."""
        lease = held_lease(before, node, self.namespace, holder, seconds, now)
        name = lease["metadata"]["name"]
        attempted = f"hold lease {self.namespace}/{name}"
        if before:
            self._client.put(self._path(name), attempted, lease, **self._query)
        else:
            self._create(lease, attempted)
        return lease

    def release(self, lease: Object) -> None:
        """Delete it, unless somebody wrote it since it was read."""
        name, version = lease["metadata"]["name"], lease["metadata"]["resourceVersion"]
        attempted = f"release lease {self.namespace}/{name}"
        written = {"resourceVersion": version}
        self._client.delete_only(self._path(name), attempted, written, dry_run=self._dry_run)

    def _path(self, name: str) -> str:
        return object_path(_API_VERSION, self.namespace, "leases", name)

    def _create(self, lease: Object, attempted: str) -> None:
        try:
            self._client.post(self._all, attempted, lease, **self._query)
        except Failure as error:
            if error.status != 404:
                raise
            self._create_namespace()
            # In a dry run the namespace is still missing, and all that can be checked has been.
            if not self._dry_run:
                self._client.post(self._all, attempted, lease, **self._query)

    def _create_namespace(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        try:
            self._client.post("/api/v1/namespaces", f"create namespace {self.namespace}", namespace, **self._query)
        except Failure as error:
            if error.status != 409:  # somebody else was quicker
                raise

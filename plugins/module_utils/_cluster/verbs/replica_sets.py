# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replica sets of VMIs, by the API: find, put to the server's test, write, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    RESOURCES,
    VMIS,
    find,
    owner_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import repeatable
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
    JsonObject,
)

# From the spec that is there (empty without one) to the spec that is wanted.
SpecChange = Callable[[Mapping[str, Any]], JsonObject]

_CORRECT = "Correct the task; nothing was written."
# What helps when the server refuses to write; it read and understood the task.
_REMEDIES: Mapping[int | None, str] = {
    HTTPStatus.BAD_REQUEST: _CORRECT,
    HTTPStatus.UNPROCESSABLE_ENTITY: _CORRECT,
    HTTPStatus.NOT_FOUND: "Create the namespace first, or check its name; nothing was written.",
}


class ReplicaSet:
    """One replica set, there or not. `stored`: the object as last read or written, None if there is none."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        """Raises InvalidRequest for a name that no object can have."""
        self.title = f"{namespace}/{name}"
        self.stored: JsonObject | None = None
        self._client = client
        self._namespace = namespace
        self._name = name
        self._all = collection_path(API_VERSION, namespace, RESOURCES[VMI_REPLICA_SET])
        self._path = owner_path(VMI_REPLICA_SET, namespace, name)

    def read(self) -> JsonObject | None:
        """What is stored now. Raises Failure."""
        self.stored = find(self._client, self._path, f"read replica set {self.title}")
        return self.stored

    def write(self, change: SpecChange, *, dry_run: bool) -> JsonObject:
        """The object as the API server stores it, or in a dry run would. Raises Failure, and what `change` raises.

        virt-controller writes the object too; a change that it has outrun is made again on what is there then.
        """
        written = retry_on_newest(
            self.stored, lambda stored: self._write(stored, change, dry_run=dry_run), lambda _conflict: self.read()
        )
        self.stored = self.stored if dry_run else written
        return written

    def delete(self, *, dry_run: bool) -> None:
        """Its VMIs are deleted after it by the cluster's garbage collector. One that is gone is no error.

        Nor is another one of its name by now, which is not this one.
        """
        if self.stored is None:
            return
        uid, attempted = self.stored["metadata"]["uid"], f"delete replica set {self.title}"
        self._client.delete(self._path, attempted, uid, dry_run=dry_run, propagationPolicy="Background")

    def try_vmi(self, template: Mapping[str, Any]) -> JsonObject:
        """The VMI that the API server would admit of a template today; none is created. Raises Failure."""
        metadata = {key: part for key, part in (template.get("metadata") or {}).items() if key != "name"}
        vmi: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": "VirtualMachineInstance",
            "metadata": {**metadata, "namespace": self._namespace, "generateName": f"{self._name}-"},
            "spec": template["spec"],
        }
        path, attempted = (
            collection_path(API_VERSION, self._namespace, VMIS),
            f"try out a VMI of replica set {self.title}",
        )
        tried: JsonObject = self._client.post(path, attempted, vmi, done=repeatable, **_query(True))
        return tried

    def _write(self, stored: JsonObject | None, change: SpecChange, *, dry_run: bool) -> JsonObject:
        attempted = f"write replica set {self.title}"
        # An unknown field is a misspelt one: without this the server would drop it in silence.
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_query(dry_run)}
        try:
            written: JsonObject
            if stored is None:
                written = self._client.create(self._all, attempted, self._new(change({})), **query)
            else:
                changed = {**stored, "spec": change(stored["spec"])}
                written = self._client.replace(self._path, attempted, changed, **query)
        except Failure as error:
            if error.foreign:  # a proxy says nothing of a namespace, nor does a server without the kind
                raise
            remedy = _REMEDIES.get(error.status, error.remedy)
            raise error.replaced(remedy=remedy) from error
        return written

    def _new(self, spec: JsonObject) -> JsonObject:
        metadata = {"namespace": self._namespace, "name": self._name}
        return {"apiVersion": API_VERSION, "kind": VMI_REPLICA_SET, "metadata": metadata, "spec": spec}


def _query(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations and the VMIs they move, by the API: create, find, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path, object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    Migration,
    read_migration,
)

Object = dict[str, Any]

API_VERSION = "kubevirt.io/v1"
KIND = "VirtualMachineInstanceMigration"
RESOURCE = "virtualmachineinstancemigrations"
VMIS = "virtualmachineinstances"
_UNSCHEDULABLE_TIMEOUT = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"


def migrations_path(namespace: str | None) -> str:
    """Of all migrations in a namespace, or (None) in all namespaces. Raises Mistake."""
    return collection_path(API_VERSION, namespace, RESOURCE)


def migration_path(namespace: str, name: str) -> str:
    """Raises Mistake."""
    return object_path(API_VERSION, namespace, RESOURCE, name)


def manifest(
    namespace: str, name: str, vmi: str, node_selector: Mapping[str, str], run: str, unschedulable_timeout: int
) -> Object:
    """unschedulable_timeout: seconds after which KubeVirt is to give up a target pod that no node can take."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {RUN_LABEL: run},
            "annotations": {_UNSCHEDULABLE_TIMEOUT: str(unschedulable_timeout)},
        },
        "spec": {"vmiName": vmi, "addedNodeSelector": dict(node_selector)},
    }


def create(client: Client, migration: Object, *, dry_run: bool = False) -> Object:
    """The created object. One that is there already was created by a request whose answer was lost. Raises Failure."""
    metadata, spec = migration["metadata"], migration["spec"]
    query = {"dryRun": "All"} if dry_run else {}
    attempted = f"migrate VMI {metadata['namespace']}/{spec['vmiName']}"
    try:
        created: Object = client.post(migrations_path(metadata["namespace"]), attempted, migration, **query)
    except Failure as error:
        if error.reason != "AlreadyExists":
            raise
        path = migration_path(metadata["namespace"], metadata["name"])
        created = client.get(path, attempted)
    return created


def cancel(client: Client, migration: Migration, *, dry_run: bool = False) -> None:
    """Ask KubeVirt to cancel it, which takes a moment. One that is gone is no error. Raises Failure."""
    query = {"dryRun": "All"} if dry_run else {}
    path = migration_path(migration.namespace, migration.name)
    try:
        client.delete(path, f"cancel migration {migration.namespace}/{migration.name}", **query)
    except Failure as error:
        if error.status != 404:
            raise


def find(client: Client, path: str, attempted: str) -> Object | None:
    """An object, or None if there is none. Raises Failure."""
    try:
        found: Object = client.get(path, attempted)
    except Failure as error:
        if error.status == 404:
            return None
        raise
    return found


def find_vmi(client: Client, namespace: str, name: str) -> Object | None:
    """Raises Failure, Mistake."""
    path = object_path(API_VERSION, namespace, VMIS, name)
    return find(client, path, f"read VMI {namespace}/{name}")


def unfinished(client: Client, namespace: str) -> dict[str, Migration]:
    """The unfinished migrations of a namespace by the name of their VMI, which has one at most. Raises Failure."""
    page = client.get(migrations_path(namespace), f"list {RESOURCE} in namespace {namespace}")
    found = map(read_migration, page["items"])
    return {migration.vmi: migration for migration in found if migration.unfinished}

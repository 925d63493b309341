# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, migrations, VMIs, and the VMs and replica sets that own these, found by name or node."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    SOURCE_LABEL,
    Migration,
    label_value,
    read_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    FAILED,
    VM,
    VMI_REPLICA_SET,
    JsonObject,
    has_ended,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import LABEL

API_VERSION = "kubevirt.io/v1"
MIGRATION, MIGRATIONS = "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations"
VMIS = "virtualmachineinstances"
# virt-controller sets it as soon as the VMI's pod is ready, and virt-handler moves it with a migration.
NODE_LABEL = "kubevirt.io/nodeName"
RESOURCES = {VM: "virtualmachines", VMI_REPLICA_SET: "virtualmachineinstancereplicasets"}


def migrations_path(namespace: str | None) -> str:
    """Of all migrations in a namespace, or (None) in all namespaces. Raises InvalidRequest."""
    return collection_path(API_VERSION, namespace, MIGRATIONS)


def migration_path(namespace: str, name: str) -> str:
    """Raises InvalidRequest."""
    return object_path(API_VERSION, namespace, MIGRATIONS, name)


def find(client: Client, path: str, attempted: str) -> JsonObject | None:
    """An object, or None if there is none. Raises Failure."""
    try:
        found: JsonObject = client.get(path, attempted)
    except Failure as error:
        if error.gone:
            return None
        raise
    return found


def listed(client: Client, path: str, attempted: str, **query: str) -> list[JsonObject]:
    """The objects of a list; none where their kind is unknown, as in a cluster without KubeVirt. Raises Failure."""
    try:
        items: list[JsonObject] = client.get(path, attempted, **query)["items"]
    except Failure as error:
        if error.unserved:
            return []
        raise
    return items


def read_node(client: Client, name: str) -> JsonObject:
    """Raises Failure, with status 404 if there is none; InvalidRequest."""
    found: JsonObject = client.get(object_path("v1", None, "nodes", name), f"read node {name}")
    return found


def node_of(vmi: JsonObject | None) -> str:
    """Where a VMI runs; empty if it does not."""
    return str(((vmi or {}).get("status") or {}).get("nodeName") or "")


def evacuated_from(vmi: JsonObject | None) -> str:
    """The node that KubeVirt wants a VMI to leave; empty if there is none."""
    return str(((vmi or {}).get("status") or {}).get("evacuationNodeName") or "")


def running_on(client: Client, node: str) -> list[JsonObject]:
    """The VMIs on a node that have not ended. Raises Failure."""
    path = collection_path(API_VERSION, None, VMIS)
    found = listed(client, path, f"list VMIs on node {node}", labelSelector=f"{NODE_LABEL}={node}")
    return [vmi for vmi in found if not has_ended(vmi)]


def evacuees(client: Client, node: str) -> list[JsonObject]:
    """The VMIs on a node that KubeVirt wants to leave it. Raises Failure.

    The mark stays on one that has ended, and KubeVirt passes it over (filterRunningNonMigratingVMIs in its controller's
    drain/evacuation).
    """
    return [vmi for vmi in running_on(client, node) if evacuated_from(vmi) == node]


def find_vmi(client: Client, namespace: str, name: str) -> JsonObject | None:
    """Raises Failure, InvalidRequest."""
    path = object_path(API_VERSION, namespace, VMIS, name)
    return find(client, path, f"read VMI {namespace}/{name}")


def find_again(client: Client, migration: Migration) -> Migration | None:
    """The same one as it is now; None if it is gone, though another one may have its name. Raises Failure."""
    path = migration_path(migration.namespace, migration.name)
    item = find(client, path, f"read {MIGRATION} {migration.namespace}/{migration.name}")
    return read_migration(item) if item is not None and item["metadata"]["uid"] == migration.uid else None


def find_migrations(client: Client, namespace: str | None) -> list[Migration]:
    """All of a namespace, None for everywhere, over or not. Raises Failure."""
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    page = client.get(migrations_path(namespace), f"list {MIGRATIONS} {where}")
    return [read_migration(item) for item in page["items"]]


def failed_migrations(client: Client, run: str, source: str) -> list[str]:
    """Uids of the failed migrations of a run away from a node, sorted. run: the label. Raises Failure."""
    labels = f"{RUN_LABEL}={run},{SOURCE_LABEL}={label_value(source)}"
    page = client.get(migrations_path(None), f"list {MIGRATIONS} away from node {source}", labelSelector=labels)
    return sorted(entry.uid for entry in map(read_migration, page["items"]) if entry.phase == FAILED)


def unfinished(client: Client, namespace: str) -> dict[str, Migration]:
    """The unfinished migrations of a namespace by the name of their VMI, which has one at most. Raises Failure."""
    return {entry.vmi: entry for entry in find_migrations(client, namespace) if entry.unfinished}


def find_owner(client: Client, kind: str, namespace: str, name: str) -> JsonObject | None:
    """A VM or replica set, or None if there is none. Raises Failure."""
    return find(client, owner_path(kind, namespace, name), f"read {kind} {namespace}/{name}")


def stopped(client: Client, kind: str) -> list[JsonObject]:
    """Those that carry a mark, in all namespaces. Raises Failure."""
    path = collection_path(API_VERSION, None, RESOURCES[kind])
    items: list[JsonObject] = client.get(path, f"list stopped {RESOURCES[kind]}", labelSelector=f"{LABEL}=true")[
        "items"
    ]
    return items


def owner_path(kind: str, namespace: str, name: str) -> str:
    """Of a VM or replica set. Raises InvalidRequest."""
    return object_path(API_VERSION, namespace, RESOURCES[kind], name)

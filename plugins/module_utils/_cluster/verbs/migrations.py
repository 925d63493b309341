# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations and the VMIs they move, by the API: create, find, cancel."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    MIGRATION,
    find,
    migration_path,
    migrations_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    SOURCE_LABEL,
    Migration,
    label_value,
    needed_to_pin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_UNSCHEDULABLE_TIMEOUT = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"


def manifest(
    namespace: str,
    name: str,
    vmi: str,
    node_selector: Mapping[str, str],
    run: str,
    unschedulable_timeout: int,
    source: str = "",
) -> JsonObject:
    """unschedulable_timeout: seconds after which KubeVirt is to give up a target pod that no node can take.

    source: the node that the VM is to leave.
    """
    labels = {RUN_LABEL: run, **({SOURCE_LABEL: label_value(source)} if source else {})}
    return {
        "apiVersion": API_VERSION,
        "kind": MIGRATION,
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": labels,
            "annotations": {_UNSCHEDULABLE_TIMEOUT: str(unschedulable_timeout)},
        },
        "spec": {"vmiName": vmi, "addedNodeSelector": dict(node_selector)},
    }


def create(client: Client, migration: JsonObject, *, dry_run: bool = False) -> JsonObject:
    """The created object, or the very one that a request created whose answer was lost. Raises Failure.

    That one makes the API server refuse another in words of many kinds: KubeVirt's admission, which is asked before
    the name is looked at, says that the VMI is migrating, that it has ended, or that it cannot be migrated any more.
    Where KubeVirt cannot pin it to a node it is refused: by default the API server would drop the field that it does
    not know, and the VM go anywhere.
    """
    metadata, spec = migration["metadata"], migration["spec"]
    query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
    attempted = f"migrate VMI {metadata['namespace']}/{spec['vmiName']}"
    try:
        created: JsonObject = client.create(migrations_path(metadata["namespace"]), attempted, migration, **query)
    except Failure as error:
        known = None if dry_run or error.passing or error.unasked else _known(client, migration, error)
        if known is None:
            if error.field_unknown:
                raise _unpinned(error) from error
            raise
        return known
    return created


def _known(client: Client, migration: JsonObject, refusal: Failure) -> JsonObject | None:
    """The same migration as the cluster has it, as far as that may be read.

    refusal: of a request that may have been sent before without an answer; nothing was done where there is none.
    """
    try:
        found = existing(client, migration)
    except Failure as error:
        if error.passing:
            raise
        return None
    if found is None:
        refusal.maybe_done = False
    return found


def existing(client: Client, migration: JsonObject) -> JsonObject | None:
    """The same migration as the cluster has it, None if it has none. Raises Failure."""
    namespace, name = migration["metadata"]["namespace"], migration["metadata"]["name"]
    found = find(client, migration_path(namespace, name), f"read migration {namespace}/{name}")
    return found if found and _purpose(found) == _purpose(migration) else None


def _unpinned(error: Failure) -> Failure:
    return error.replaced(remedy=f"To pin a migration to a node {needed_to_pin()}: upgrade it. Nothing was created.")


def _purpose(migration: JsonObject) -> tuple[object, ...]:
    """Whose it is, and what it moves where."""
    spec, labels = migration["spec"], migration["metadata"].get("labels") or {}
    return labels.get(RUN_LABEL), spec["vmiName"], spec.get("addedNodeSelector") or {}


def cancel(client: Client, migration: Migration, *, dry_run: bool = False) -> bool:
    """Ask KubeVirt to cancel it, which takes a moment. False if it was gone, which is no error. Raises Failure."""
    path = migration_path(migration.namespace, migration.name)
    attempted = f"cancel migration {migration.namespace}/{migration.name}"
    return client.delete(path, attempted, migration.uid, dry_run=dry_run)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write and remove what gives an account its rights: namespaces, service accounts, roles and their bindings."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.as_wanted import is_as_wanted
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_whole
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import RBAC_API_VERSION

_BINDINGS = {"ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings"}
_RESOURCES = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "Role": "roles",
    **_BINDINGS,
}
_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class Written:
    """What was done to the object that is wanted so, or not at all. before, after: None where there is none."""

    wanted: JsonObject
    before: JsonObject | None
    after: JsonObject | None


def store(client: Client, wanted: JsonObject, *, dry_run: bool) -> Written | None:
    """Let an object have all that is wanted of it; None if it has. Raises Failure."""
    query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
    attempted = f"write {title(wanted)}"

    def write(found: JsonObject | None) -> Written | None:
        if found is None:
            return Written(wanted, None, create())
        if is_as_wanted(found, wanted):
            return None
        return Written(wanted, found, client.patch(_path(wanted), attempted, wanted, **query))

    def create() -> JsonObject:
        try:
            created: JsonObject = client.create(_path(wanted, is_all=True), attempted, wanted, **query)
        except Failure as error:
            # What it stands in, or refers to, is only written when it is meant.
            if not (dry_run and error.gone):
                raise
            created = wanted
        return created

    found = _find(client, wanted)
    return retry_on_newest(found, write, lambda _conflict: _find(client, wanted))


def remove(client: Client, unwanted: JsonObject, *, dry_run: bool) -> Written | None:
    """None if there is no such object. Raises Failure."""
    found = _find(client, unwanted)
    if found is None:
        return None
    client.delete(_path(unwanted), f"remove {title(unwanted)}", found["metadata"]["uid"], dry_run=dry_run)
    return Written(unwanted, found, None)


def read_bindings(client: Client) -> list[JsonObject]:
    """All of the cluster and of its namespaces. Raises Failure."""
    found = (
        read_whole(
            client, collection_path(RBAC_API_VERSION, None, resource), f"list {resource}", {"limit": _PAGE_SIZE}, list
        )
        for resource in _BINDINGS.values()
    )
    return [binding for bindings in found for binding in bindings]


def title(item: JsonObject) -> str:
    metadata = item["metadata"]
    return f"{item['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


def _find(client: Client, item: JsonObject) -> JsonObject | None:
    return find(client, _path(item), f"read {title(item)}")


def _path(item: JsonObject, *, is_all: bool = False) -> str:
    """Of the object, or of all of its kind where it stands. Raises InvalidRequest."""
    metadata, resource = item["metadata"], _RESOURCES[item["kind"]]
    place = item["apiVersion"], metadata.get("namespace"), resource
    return collection_path(*place) if is_all else object_path(*place, metadata["name"])

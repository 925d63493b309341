# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write and remove what gives an account its rights: namespaces, service accounts, roles and their bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_whole
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import RBAC_API_VERSION

ROLE_KINDS = "ClusterRole", "Role"
BINDINGS = "ClusterRoleBinding", "RoleBinding"
_RESOURCES = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "Role": "roles",
    "ClusterRoleBinding": "clusterrolebindings",
    "RoleBinding": "rolebindings",
}
_PAGE_SIZE = 500
# What says which object it is, and not what it is like.
_IDENTITY = ("apiVersion", "kind", "metadata")
# Of its metadata what says which object it is, and as of when, so that nobody else's write is lost.
_VERSION = ("name", "namespace", "resourceVersion")


@dataclass(frozen=True, slots=True)
class Written:
    """What was done to the object that is wanted so, or not at all. before, after: None where there is none."""

    wanted: JsonObject
    before: JsonObject | None
    after: JsonObject | None

    def content(self, item: JsonObject) -> JsonObject:
        """What of it is the collection's to say."""
        return _content(item, self.wanted)


def store(client: Client, wanted: JsonObject, *, dry_run: bool, foretold: Iterable[Written] = ()) -> Written | None:
    """Let an object be as it is wanted; None if it is. Raises Failure, also for what nobody can change so.

    foretold: what a dry run would have written before.
    """
    query = _query(dry_run=dry_run)
    attempted = f"write {title(wanted)}"

    def write(found: JsonObject | None) -> Written | None:
        if found is None:
            return Written(wanted, None, create())
        if obstacle := _obstacle(found, wanted):
            raise Failure(attempted, client.server, *obstacle, reason="Unchangeable")
        if _is_as_wanted(found, wanted):
            return None
        return Written(wanted, found, client.patch(_path(wanted), attempted, wanted, _is_as_wanted, **query))

    def create() -> JsonObject:
        try:
            created: JsonObject = client.create(_path(wanted, is_all=True), attempted, wanted, _is_as_wanted, **query)
        except Failure as error:
            # What it stands in, or binds to, is only written when it is meant.
            missing = {_key(item.wanted) for item in foretold if item.before is None}
            if not (dry_run and error.gone and missing & _foundations(wanted)):
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


def unbind(
    client: Client, binding: JsonObject, others: Callable[[Object], list[JsonObject]], *, dry_run: bool
) -> Written | None:
    """Leave its others in a binding, which goes where there are none; None if it is gone or so already. Raises Failure.

    binding: as it was looked at. others: the subjects of a binding that stay in it, also of what it is by now.
    """

    def write(found: JsonObject) -> Written | None:
        left = others(found)
        if not found or (left and left == found["subjects"]):
            return None
        try:
            return _leave(client, found, left, dry_run=dry_run) if left else _drop(client, found, dry_run=dry_run)
        except Failure as error:
            if not error.gone:
                raise
        return None

    return retry_on_newest(binding, write, lambda _conflict: _find(client, binding) or {})


def _leave(client: Client, binding: JsonObject, subjects: list[JsonObject], *, dry_run: bool) -> Written:
    """As it was read; fails with status 409 if somebody wrote it since, with 404 if it is gone."""
    version = {key: value for key, value in binding["metadata"].items() if key in _VERSION}
    wanted, query = {**binding, "metadata": version, "subjects": subjects}, _query(dry_run=dry_run)
    written = client.patch(_path(binding), f"write {title(binding)}", wanted, _is_as_wanted, **query)
    return Written(wanted, binding, written)


def _drop(client: Client, binding: JsonObject, *, dry_run: bool) -> Written:
    """The same: somebody may have bound others since it was read."""
    read = {key: binding["metadata"][key] for key in ("uid", "resourceVersion")}
    client.delete_only(_path(binding), f"remove {title(binding)}", read, dry_run=dry_run)
    return Written(binding, binding, None)


def read_all(client: Client, *kinds: str) -> list[JsonObject]:
    """All roles or bindings of these kinds, of the cluster and of its namespaces. Raises Failure."""
    return [item for kind in kinds for item in _read_all(client, kind)]


def _read_all(client: Client, kind: str) -> list[JsonObject]:
    resource = _RESOURCES[kind]
    path, query = collection_path(RBAC_API_VERSION, None, resource), {"limit": _PAGE_SIZE}
    # In a list they do not say what they are.
    known = {"apiVersion": RBAC_API_VERSION, "kind": kind}
    return [{**known, **item} for item in read_whole(client, path, f"list {resource}", query, list)]


def title(item: JsonObject) -> str:
    metadata = item["metadata"]
    return f"{item['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


def _query(*, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}


def _content(item: Object, wanted: Object) -> JsonObject:
    return {key: item.get(key) for key in wanted if key not in _IDENTITY}


def _is_as_wanted(found: Object, wanted: Object) -> bool:
    """A rule that says more grants less, or more: what is wanted at all has to be just so."""
    return _content(found, wanted) == _content(wanted, wanted)


def _key(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _foundations(item: Object) -> set[tuple[str, str]]:
    """What it cannot be without: its namespace, and the role that it binds to."""
    role = item.get("roleRef") or {}
    return {("Namespace", item["metadata"].get("namespace", "")), (role.get("kind", ""), role.get("name", ""))}


def _obstacle(found: Object, wanted: Object) -> tuple[str, str] | None:
    """Why it cannot be made as it is wanted, and what to do; None if it can."""
    if found.get("aggregationRule") is not None:
        why = "its rules are those of other ClusterRoles, by its aggregationRule, and others do not last"
        return why, "Remove its aggregationRule and run the task again."
    if "roleRef" in wanted and (there := found["roleRef"]) != wanted["roleRef"]:
        why = f"it binds to {there['kind']} {there['name']}, and Kubernetes lets nobody change that"
        return why, "Remove it, if nobody needs it, and run the task again."
    return None


def _find(client: Client, item: JsonObject) -> JsonObject | None:
    return find(client, _path(item), f"read {title(item)}")


def _path(item: JsonObject, *, is_all: bool = False) -> str:
    """Of the object, or of all of its kind where it stands. Raises InvalidRequest."""
    metadata, resource = item["metadata"], _RESOURCES[item["kind"]]
    place = item["apiVersion"], metadata.get("namespace"), resource
    return collection_path(*place) if is_all else object_path(*place, metadata["name"])

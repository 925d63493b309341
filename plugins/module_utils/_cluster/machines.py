# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop, start and restart virtual machines through what brings them back: a VM, or a replica set.

A VM that ran by `Manual` or `RerunOnFailure` would stay off if only its VMI were deleted, so it is asked to restart;
one that runs `Always` or `Once` gets a new VMI by itself (syncRunStrategy in pkg/virt-controller/watch/vm/vm.go).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import (
    API_VERSION,
    VMIS,
    find,
    find_vmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path, object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import (
    REPLICA_SET,
    VM,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import (
    LABEL,
    StoppedMark,
    find_marks,
    marked,
    with_replica,
)

Object = dict[str, Any]

_SUBRESOURCES = "subresources.kubevirt.io/v1"
# Strategies by which a VM is started and stopped by request; its strategy stays what it is.
BY_REQUEST = frozenset({"Manual", "RerunOnFailure"})
RESOURCES = {VM: "virtualmachines", REPLICA_SET: "virtualmachineinstancereplicasets"}
# Controllers write these objects as well; to lose that often in a row is no coincidence any more.
_ATTEMPTS = 5


def find_owner(client: Client, kind: str, namespace: str, name: str) -> Object | None:
    """A VM or replica set, or None if there is none. Raises Failure."""
    return find(client, _path(kind, namespace, name), f"read {kind} {namespace}/{name}")


def stopped(client: Client, kind: str) -> list[Object]:
    """Those that carry a mark, in all namespaces. Raises Failure."""
    path = collection_path(API_VERSION, None, RESOURCES[kind])
    items: list[Object] = client.get(path, f"list stopped {RESOURCES[kind]}", labelSelector=f"{LABEL}=true")["items"]
    return items


def delete_vmi(client: Client, namespace: str, name: str, uid: str, *, dry_run: bool = False) -> None:
    """End this very VMI; one that is gone is no error. Raises Failure."""
    path = object_path(API_VERSION, namespace, VMIS, name)
    try:
        client.delete_only(path, f"delete VMI {namespace}/{name}", {"uid": uid}, dry_run=dry_run)
    except Failure as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise


def request(client: Client, verb: str, namespace: str, name: str, *, dry_run: bool = False) -> None:
    """start, stop or restart a VM. Raises Failure."""
    path = f"{object_path(_SUBRESOURCES, namespace, RESOURCES[VM], name)}/{verb}"
    client.act(path, f"{verb} VM {namespace}/{name}", {"dryRun": ["All"]} if dry_run else {})


def mark_vm(client: Client, vm: Object, node: str, owner: str) -> None:
    """Note on a VM that it is stopped for a node, and what it ran with; older marks are void. Raises Failure.

    One that is halted is stopped already, by a request whose answer was lost or by somebody else: what it ran with
    stands in its mark, or is for them to know.
    """
    since = _now()

    def change(current: Object) -> Object:
        if run_strategy(current) == HALTED:
            return {}
        return {"metadata": marked({node: StoppedMark(owner, run_strategy(current), since)})}

    _write(client, vm, VM, change, dry_run=False)


def mark_replica(client: Client, replica_set: Object, node: str, owner: str, vmi: str) -> None:
    """Note on a replica set which VMI of it is stopped for a node. Raises Failure."""
    since = _now()

    def change(current: Object) -> Object:
        return {"metadata": marked(with_replica(current, node, owner, vmi, since))}

    _write(client, replica_set, REPLICA_SET, change, dry_run=False)


def take_mark_off(client: Client, item: Object, kind: str, node: str, *, dry_run: bool) -> None:
    """A VM gets the run strategy back that it was stopped with, at once with losing the mark. Raises Failure."""

    def change(current: Object) -> Object:
        marks = find_marks(current)
        mark = marks.pop(node, None)
        spec = _as_before(current, mark.run_strategy) if mark and kind == VM else {}
        return {"metadata": marked(marks), **({"spec": spec} if spec else {})}

    _write(client, item, kind, change, dry_run=dry_run)


def start(client: Client, vm: Object, node: str, *, dry_run: bool) -> None:
    """Let a VM that was stopped for the node run as before. Raises Failure."""
    namespace, name = vm["metadata"]["namespace"], vm["metadata"]["name"]
    if run_strategy(vm) in BY_REQUEST and find_vmi(client, namespace, name) is None:
        request(client, "start", namespace, name, dry_run=dry_run)
    take_mark_off(client, vm, VM, node, dry_run=dry_run)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _as_before(vm: Object, strategy: str) -> Object:
    """The fields to write. A VM that somebody has given another strategy since keeps that."""
    if run_strategy(vm) != HALTED or strategy in BY_REQUEST:
        return {}
    return {"runStrategy": strategy} if "runStrategy" in vm["spec"] else {"running": True}


def _write(client: Client, item: Object, kind: str, change: Callable[[Object], Object], *, dry_run: bool) -> None:
    """Patch what was read, if there is a change, and read again if somebody else was quicker."""
    namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
    path, attempted = _path(kind, namespace, name), f"mark {kind} {namespace}/{name}"
    query = {"dryRun": "All"} if dry_run else {}
    for attempt in range(1, _ATTEMPTS + 1):
        body = change(item)
        if not body:
            return
        body["metadata"]["resourceVersion"] = item["metadata"]["resourceVersion"]
        try:
            client.patch(path, attempted, body, **query)
        except Failure as error:
            if error.status != HTTPStatus.CONFLICT or attempt == _ATTEMPTS:
                raise
            item = client.get(path, attempted)
        else:
            return


def _path(kind: str, namespace: str, name: str) -> str:
    return object_path(API_VERSION, namespace, RESOURCES[kind], name)

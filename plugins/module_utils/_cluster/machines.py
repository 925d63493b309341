# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop, start and restart virtual machines through what brings them back: a VM, or a replica set.

A VM that ran by `Manual` or `RerunOnFailure` would stay off if only its VMI were deleted, so it is asked to restart;
one that runs `Always` or `Once` gets a new VMI by itself (syncRunStrategy in pkg/virt-controller/watch/vm/vm.go).
"""

from __future__ import annotations

from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import API_VERSION, find, find_vmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import (
    STOPPED_ANNOTATION,
    STOPPED_LABEL,
    StoppedMark,
    run_strategy,
)

Object = dict[str, Any]

_SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"
# Strategies by which a VM is started and stopped by request; its strategy stays what it is.
BY_REQUEST = frozenset({"Manual", "RerunOnFailure"})


def vm_path(namespace: str, name: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/virtualmachines/{name}"


def vmi_path(namespace: str, name: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/virtualmachineinstances/{name}"


def find_vm(client: Client, namespace: str, name: str) -> Object | None:
    return find(client, vm_path(namespace, name), f"read VM {namespace}/{name}")


def delete_vmi(client: Client, namespace: str, name: str, uid: str, *, dry_run: bool = False) -> None:
    """End this very VMI; one that is gone is no error. Raises Failure."""
    try:
        attempted = f"delete VMI {namespace}/{name}"
        client.delete_only(vmi_path(namespace, name), attempted, {"uid": uid}, dry_run=dry_run)
    except Failure as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise


def request(client: Client, verb: str, namespace: str, name: str, *, dry_run: bool = False) -> None:
    """start, stop or restart a VM. Raises Failure."""
    path = f"{_SUBRESOURCES}/namespaces/{namespace}/virtualmachines/{name}/{verb}"
    client.act(path, f"{verb} VM {namespace}/{name}", {"dryRun": ["All"]} if dry_run else {})


def mark_stopped(client: Client, vm: Object, node: str, owner: str) -> None:
    """Note on a VM that it is stopped for a node, so that it can be started when that returns. Raises Failure."""
    since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = StoppedMark(node, owner, run_strategy(vm), since)
    _patch(client, vm, {STOPPED_LABEL: "true"}, {STOPPED_ANNOTATION: mark.to_text()}, {})


def start_again(client: Client, vm: Object, mark: StoppedMark, *, dry_run: bool) -> None:
    """Let a stopped VM run as before, and take the note off it. Raises Failure.

    The strategy and the note are written at once: whoever has changed the VM in between is not overruled.
    """
    namespace, name = vm["metadata"]["namespace"], vm["metadata"]["name"]
    now = run_strategy(vm)
    spec: Object = {}
    if now == "Halted" and mark.run_strategy not in BY_REQUEST:
        spec = {"runStrategy": mark.run_strategy} if "runStrategy" in vm["spec"] else {"running": True}
    elif now in BY_REQUEST and find_vmi(client, namespace, name) is None:
        request(client, "start", namespace, name, dry_run=dry_run)
    _patch(client, vm, {STOPPED_LABEL: None}, {STOPPED_ANNOTATION: None}, spec, dry_run=dry_run)


def _patch(
    client: Client,
    vm: Object,
    labels: dict[str, str | None],
    annotations: dict[str, str | None],
    spec: Object,
    *,
    dry_run: bool = False,
) -> None:
    namespace, name = vm["metadata"]["namespace"], vm["metadata"]["name"]
    body: Object = {"metadata": {"labels": labels, "annotations": annotations}, **({"spec": spec} if spec else {})}
    query = {"dryRun": "All"} if dry_run else {}
    client.patch(vm_path(namespace, name), f"mark VM {namespace}/{name}", body, **query)

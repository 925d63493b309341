# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restart VMs elsewhere or stop them, and see that it comes about."""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import machines
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migration_reasons import unscheduled_reason
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import API_VERSION, VMIS, find_vmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import (
    ENDING,
    FAILED,
    REPLICA_SET,
    RESTART,
    RESTARTED,
    STOP,
    STOPPED,
    VM,
    WAITING,
    WOULD,
    Interruption,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy

Object = dict[str, Any]

_LAUNCHERS_OF = "kubevirt.io/created-by"


class Interruptions:
    """owner: of the maintenance, who is named on each VM that is stopped."""

    def __init__(self, client: Client, interruptions: Iterable[Interruption], owner: str) -> None:
        self.interruptions = list(interruptions)
        self._client = client
        self._owner = owner

    @property
    def unfinished(self) -> list[Interruption]:
        return [item for item in self.interruptions if item.unfinished]

    def ask(self, wave: int) -> None:
        """End the VMs up to a wave. Raises Failure where no answer came, or none may be ended."""
        replicas = _Replicas(self._client)
        for item in self.interruptions:
            if item.outcome == WAITING and item.wave <= wave:
                item.begun_at = item.begun_at or time.time()
                if item.action == RESTART and not item.known:
                    item.known = [vmi["metadata"]["uid"] for vmi in self._siblings(item, replicas)]
                self._end(item)

    def look(self) -> None:
        """See how far the VMs are that were ended. Raises Failure."""
        replicas = _Replicas(self._client)
        for item in self.interruptions:
            if item.outcome == ENDING and item.action == STOP:
                self._look_for_end(item)
            elif item.outcome == ENDING:
                self._look_for_successor(item, replicas)

    def rehearse(self) -> None:
        """Put each to the server without ending a VM. Raises Failure."""
        for item in self.interruptions:
            self._end(item, dry_run=True)
            if item.unfinished:
                item.outcome = WOULD[item.action]

    def _end(self, item: Interruption, *, dry_run: bool = False) -> None:
        try:
            if item.owner_kind == VM:
                self._end_vm(item, dry_run)
            else:
                self._end_replica(item, dry_run)
        except Failure as error:
            if error.passing or error.status in (401, 403):
                raise
            item.end(FAILED, time.time(), reason=error.message)
        else:
            if item.unfinished and not dry_run:
                item.outcome = ENDING

    def _end_vm(self, item: Interruption, dry_run: bool) -> None:
        """What has been asked already is not asked again: the answer to it was lost, or the run that asked was killed.

        A second restart would even end the successor.
        """
        vm = machines.find_owner(self._client, VM, item.namespace, item.owner)
        if vm is None:
            item.end(FAILED, time.time(), reason=f"there is no VM {item.owner} any more that would start it again")
        elif not self._is_ending(item, vm):
            try:
                self._ask_vm(item, vm, dry_run)
            except Failure as error:
                if error.status != HTTPStatus.CONFLICT or not self._is_ending(item, self._read(vm)):
                    raise

    def _is_ending(self, item: Interruption, vm: Object) -> bool:
        """Whether all that is wanted has been asked for."""
        by_request = run_strategy(vm) in machines.BY_REQUEST
        if item.action == STOP and not by_request:
            return run_strategy(vm) == HALTED
        requests = (vm.get("status") or {}).get("stateChangeRequests") or ()
        if any(request["action"] == "Stop" and request.get("uid") == item.uid for request in requests):
            return True
        vmi = find_vmi(self._client, item.namespace, item.name)
        if vmi is None:  # what is started by request only comes back if that was requested
            return item.action == STOP or not by_request or bool(requests)
        return vmi["metadata"]["uid"] != item.uid or "deletionTimestamp" in vmi["metadata"]

    def _read(self, vm: Object) -> Object:
        """As it is by now."""
        metadata = vm["metadata"]
        return machines.find_owner(self._client, VM, metadata["namespace"], metadata["name"]) or vm

    def _ask_vm(self, item: Interruption, vm: Object, dry_run: bool) -> None:
        by_request = run_strategy(vm) in machines.BY_REQUEST
        if item.action == STOP:
            if not dry_run:
                machines.mark_vm(self._client, vm, item.node, self._owner)
            machines.request(self._client, "stop", item.namespace, item.owner, dry_run=dry_run)
        elif by_request:
            machines.request(self._client, "restart", item.namespace, item.owner, dry_run=dry_run)
        else:
            machines.delete_vmi(self._client, item.namespace, item.name, item.uid, dry_run=dry_run)

    def _end_replica(self, item: Interruption, dry_run: bool) -> None:
        replica_set = machines.find_owner(self._client, REPLICA_SET, item.namespace, item.owner)
        if item.action == STOP and replica_set and not dry_run:
            machines.mark_replica(self._client, replica_set, item.node, self._owner, item.name)
        machines.delete_vmi(self._client, item.namespace, item.name, item.uid, dry_run=dry_run)

    def _look_for_end(self, item: Interruption) -> None:
        vmi = find_vmi(self._client, item.namespace, item.name)
        if vmi is None or vmi["metadata"]["uid"] != item.uid:
            item.end(STOPPED, time.time())

    def _look_for_successor(self, item: Interruption, replicas: _Replicas) -> None:
        taken = {other.successor for other in self.interruptions if other is not item and other.owner == item.owner}
        for vmi in self._siblings(item, replicas):
            metadata, status = vmi["metadata"], vmi.get("status") or {}
            if metadata["uid"] in {item.uid, *item.known} or metadata["name"] in taken:
                continue
            item.successor = metadata["name"]
            if status.get("phase") == "Running":
                item.end(RESTARTED, time.time(), node=str(status.get("nodeName") or ""))
            else:
                item.message = self._why_not_placed(vmi)
            return

    def _siblings(self, item: Interruption, replicas: _Replicas) -> list[Object]:
        """The VMIs of the same owner, by name. Raises Failure."""
        if item.owner_kind == VM:
            vmi = find_vmi(self._client, item.namespace, item.name)
            return [vmi] if vmi else []
        return replicas.of(item.namespace, item.owner_uid)

    def _why_not_placed(self, vmi: Object) -> str:
        namespace, uid = vmi["metadata"]["namespace"], vmi["metadata"]["uid"]
        return unscheduled_reason(self._client, namespace, f"{_LAUNCHERS_OF}={uid}")


class _Replicas:
    """The VMIs of replica sets at one moment. Each namespace is read once, however many VMIs are looked for in it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read: dict[str, list[Object]] = {}

    def of(self, namespace: str, owner_uid: str) -> list[Object]:
        """By name. Raises Failure."""
        if namespace not in self._read:
            path = collection_path(API_VERSION, namespace, VMIS)
            page = self._client.get(path, f"list VMIs in namespace {namespace}")
            self._read[namespace] = sorted(page["items"], key=lambda vmi: str(vmi["metadata"]["name"]))
        return [vmi for vmi in self._read[namespace] if owner_uid in _owners(vmi)]


def _owners(vmi: Object) -> set[str]:
    return {owner["uid"] for owner in vmi["metadata"].get("ownerReferences") or ()}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stop, start and restart virtual machines through what brings them back: a VM, or a replica set.

A VM that ran by `Manual` or `RerunOnFailure` would stay off if only its VMI were deleted, so it is asked to restart;
one that runs `Always` or `Once` gets a new VMI by itself (syncRunStrategy in pkg/virt-controller/watch/vm/vm.go).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    RESOURCES,
    VMIS,
    find_vmi,
    owner_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_newest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import SeenVm, SeenVmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import (
    StartStage,
    is_on_its_way,
    start_stage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    BY_REQUEST,
    HALTED,
    ONCE,
    run_strategy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import (
    StoppedMark,
    StoppedNote,
    find_marks,
    marked,
    noted,
    unnoted,
    with_replica,
    without_vmi,
)

_SUBRESOURCES = "subresources.kubevirt.io/v1"


def delete_vmi(client: Client, namespace: str, name: str, uid: str, *, dry_run: bool = False) -> None:
    """End this very VMI; one that is gone is no error. Raises Failure."""
    path = object_path(API_VERSION, namespace, VMIS, name)
    client.delete(path, f"delete VMI {namespace}/{name}", uid, dry_run=dry_run)


def request(client: Client, verb: str, namespace: str, name: str, *, dry_run: bool = False) -> None:
    """start, stop or restart a VM. Raises Failure."""
    path = f"{object_path(_SUBRESOURCES, namespace, RESOURCES[VM], name)}/{verb}"
    client.act(path, f"{verb} VM {namespace}/{name}", {"dryRun": ["All"]} if dry_run else {}, done=None)


def mark_vm(client: Client, vm: JsonObject, node: str, owner: str, *, stopped: bool = False) -> None:
    """Note on a VM that it is stopped for a node, and what it ran with; older marks are void. Raises Failure.

    The node notes it as well, as the mark goes when somebody replaces the VM. One that is halted is stopped already, by
    a request whose answer was lost or by somebody else: what it ran with stands in its mark, or is for them to know.
    stopped: this process has just stopped it, and `vm` is what it was before.
    """
    since = _now()

    def change(current: JsonObject) -> JsonObject:
        if run_strategy(current) == HALTED and not stopped:
            return {}
        return {"metadata": marked({node: StoppedMark(owner, run_strategy(vm if stopped else current), since)})}

    if _write(client, vm, VM, change, dry_run=False):
        metadata = vm["metadata"]
        note = StoppedNote(owner, metadata["namespace"], metadata["name"], metadata["uid"])
        _annotate(client, node, noted(note), dry_run=False)


def mark_replica(client: Client, replica_set: JsonObject, node: str, owner: str, vmi: str) -> None:
    """Note on a replica set which VMI of it is stopped for a node. Raises Failure."""
    since = _now()

    def change(current: JsonObject) -> JsonObject:
        return {"metadata": marked(with_replica(current, node, owner, vmi, since))}

    _write(client, replica_set, VMI_REPLICA_SET, change, dry_run=False)


def take_mark_off(client: Client, item: JsonObject, kind: str, node: str, *, dry_run: bool) -> None:
    """What was stopped for the node runs again, or is not to. Raises Failure.

    The mark goes last: with it what is left is found again.
    """
    if kind == VM:
        forget(client, node, item["metadata"]["uid"], dry_run=dry_run)

    def change(current: JsonObject) -> JsonObject:
        marks = find_marks(current)
        return {"metadata": marked(marks)} if marks.pop(node, None) else {}

    _write(client, item, kind, change, dry_run=dry_run)


def take_back(
    client: Client, item: JsonObject, kind: str, node: str, owner: str, vmi: str, is_off: Callable[[JsonObject], bool]
) -> None:
    """Let the mark that this owner has made on it, for the node, say nothing more of a VMI. Raises Failure.

    Who has the node by now may have made one as well: that stays. So does the mark of what is off, or about to be, by
    another process for the same node; is_off: whether it is, of what has just been read.
    """
    mark, off = find_marks(item)[node], is_off(item)
    is_noted = kind == VM and mark.owner == owner and not off
    metadata = item["metadata"]
    if is_noted:  # the mark goes last: with it the note is found again
        forget(client, node, metadata["uid"], dry_run=False)

    def change(current: JsonObject) -> JsonObject:
        nonlocal off
        off = is_off(current)
        marks = find_marks(current) if off else without_vmi(current, node, owner, vmi)
        return {"metadata": marked(marks)} if marks != find_marks(current) else {}

    _write(client, item, kind, change, dry_run=False)
    if off and is_noted:
        note = StoppedNote(owner, metadata["namespace"], metadata["name"], metadata["uid"])
        _annotate(client, node, noted(note), dry_run=False)


def forget(client: Client, node: str, uid: str, *, dry_run: bool) -> None:
    """Let a node, if it is there still, say nothing more of a VM that was stopped for it. Raises Failure."""
    try:
        _annotate(client, node, unnoted(uid), dry_run=dry_run)
    except Failure as error:
        if not error.gone:
            raise


def start(client: Client, vm: JsonObject, node: str, *, dry_run: bool) -> StartStage:
    """Let a VM that was stopped for the node run as before, and say how far it was. Raises Failure.

    Called again, it asks for nothing twice. One that somebody else has stopped since loses its mark; one whose VMI has
    failed gets another one.
    """
    seen, vmi = SeenVm.of(vm), _seen_vmi(client, vm)
    how_far = start_stage(seen, vmi, node)
    if how_far is StartStage.UNWANTED:
        take_mark_off(client, vm, VM, node, dry_run=dry_run)
    if how_far is StartStage.WANTED:
        needs_request = seen.strategy in BY_REQUEST and not is_on_its_way(seen, vmi)
        if needs_request and not _ask_to_start(client, vm, dry_run=dry_run):
            return StartStage.TAKEN
        _give_strategy_back(client, vm, node, dry_run=dry_run)
    if how_far is StartStage.FAILED:
        if seen.strategy == ONCE:
            _stop_again(client, vm, node, dry_run=dry_run)
        elif not _ask_to_start(client, vm, dry_run=dry_run):
            return StartStage.TAKEN
    return how_far


def _ask_to_start(client: Client, vm: JsonObject, *, dry_run: bool) -> bool:
    """False if a VMI has its name that is not its own: virt-api takes no request while one runs.

    Nor does it while an older request is pending.
    """
    try:
        request(client, "start", vm["metadata"]["namespace"], vm["metadata"]["name"], dry_run=dry_run)
    except Failure as error:
        # Somebody else was quicker; else it is refused for good.
        vmi = _seen_vmi(client, vm) if error.status == HTTPStatus.CONFLICT else None
        if vmi is not None and vmi.owner_uid != vm["metadata"]["uid"]:
            return False
        if vmi is None or not is_on_its_way(SeenVm.of(vm), vmi):
            raise
    return True


def _seen_vmi(client: Client, vm: JsonObject) -> SeenVmi | None:
    vmi = find_vmi(client, vm["metadata"]["namespace"], vm["metadata"]["name"])
    return SeenVmi.of(vmi) if vmi is not None else None


def _give_strategy_back(client: Client, vm: JsonObject, node: str, *, dry_run: bool) -> None:
    def change(current: JsonObject) -> JsonObject:
        marks = find_marks(current)
        mark = marks.get(node)
        if mark is None or not mark.run_strategy:
            return {}
        spec = _as_before(current, mark.run_strategy)
        given = {**marks, node: replace(mark, run_strategy="")}
        return {"metadata": marked(given), **({"spec": spec} if spec else {})}

    _write(client, vm, VM, change, dry_run=dry_run)


def _stop_again(client: Client, vm: JsonObject, node: str, *, dry_run: bool) -> None:
    """Let KubeVirt remove the failed VMI of a VM that runs `Once`; the next `start` finds it as if never started."""

    def change(current: JsonObject) -> JsonObject:
        marks = find_marks(current)
        if node not in marks or run_strategy(current) != ONCE:
            return {}
        again = {**marks, node: replace(marks[node], run_strategy=ONCE)}
        return {"metadata": marked(again), "spec": {"runStrategy": HALTED}}

    _write(client, vm, VM, change, dry_run=dry_run)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _as_before(vm: JsonObject, strategy: str) -> JsonObject:
    """The fields to write. A VM that somebody has given another strategy since keeps that."""
    if run_strategy(vm) != HALTED or not strategy or strategy in BY_REQUEST:
        return {}
    return {"runStrategy": strategy} if "runStrategy" in vm["spec"] else {"running": True}


def _write(
    client: Client, item: JsonObject, kind: str, change: Callable[[JsonObject], JsonObject], *, dry_run: bool
) -> bool:
    """Patch what was read, and say whether there was a change; another one of its name is not it, with status 409."""
    namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
    path, attempted = owner_path(kind, namespace, name), f"mark {kind} {namespace}/{name}"
    query = {"dryRun": "All"} if dry_run else {}

    def write(found: JsonObject) -> bool:
        body = change(found)
        if body:
            body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            client.patch(path, attempted, body, **query)
        return bool(body)

    def read(conflict: Failure) -> JsonObject:
        found: JsonObject = client.get(path, attempted)
        if found["metadata"]["uid"] != item["metadata"]["uid"]:
            raise conflict.replaced(message=f"{kind} {namespace}/{name} is another one by now")
        return found

    return retry_on_newest(item, write, read)


def _annotate(client: Client, node: str, metadata: JsonObject, *, dry_run: bool) -> None:
    """Whatever else is written there at the same time: each VM has an annotation of its own."""
    query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
    path = object_path("v1", None, "nodes", node)
    client.patch(path, f"note on node {node} what is stopped for it", {"metadata": metadata}, **query)

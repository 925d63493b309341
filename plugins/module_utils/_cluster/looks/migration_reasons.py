# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a migration gets no node, or has failed: from its target pod while that is there, and from events afterwards.

Reasons are worth reading, but not worth a migration: what may not be read is left out or said to be unknown.
"""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_TARGET_POD_OF = "kubevirt.io/migrationJobUID"
_FORBIDDEN = 403
# Behind the reasons of the nodes the scheduler tells what else it tried; that helps nobody to place a VM.
_AFTERTHOUGHTS = (" no new claims to deallocate", " preemption:")


def scheduler_messages(client: Client, namespace: str, migration_uids: Collection[str]) -> dict[str, str]:
    """Why no node can take a target pod, in the scheduler's words, by migration; none where one can. Raises Failure."""
    # Of all at once: one by one, what is asked for would grow with the square of the VMs. Who has arrived keeps the
    # label, but has a node.
    query = {"labelSelector": _TARGET_POD_OF, "fieldSelector": "spec.nodeName="}
    try:
        pods = _pods(client, namespace, **query)
    except Failure as error:
        if error.status == _FORBIDDEN:
            return dict.fromkeys(migration_uids, f"(unknown, as {error.message})")
        raise
    words = {pod["metadata"]["labels"][_TARGET_POD_OF]: _unscheduled(pod) for pod in pods}
    return {uid: words[uid] for uid in migration_uids if words.get(uid)}


def unscheduled_reason(client: Client, namespace: str, label_selector: str) -> str:
    """Why no node can take the pod with these labels, in the scheduler's words; empty if one can. Raises Failure."""
    try:
        pods = _pods(client, namespace, labelSelector=label_selector)
    except Failure as error:
        if error.status == _FORBIDDEN:
            return f"(unknown, as {error.message})"
        raise
    return next(filter(None, map(_unscheduled, pods)), "")


def past_scheduler_message(client: Client, namespace: str, migration_uid: str) -> str:
    """The same of a target pod that KubeVirt has removed; empty if it had a node. Raises Failure."""
    told = [event.get("message") or "" for event in _events(client, namespace, f"involvedObject.uid={migration_uid}")]
    for event in reversed(_events(client, namespace, "reason=FailedScheduling") if told else []):
        # KubeVirt's events on a migration name its target pod.
        if any(event["involvedObject"]["name"] in message for message in told):
            return _reasons(event.get("message") or "")
    return ""


def last_warning(client: Client, namespace: str, migration_uid: str) -> str:
    """The newest warning that KubeVirt published about a migration; empty if there is none. Raises Failure."""
    events = _events(client, namespace, f"involvedObject.uid={migration_uid},type=Warning")
    return str(events[-1].get("message") or "") if events else ""


def _pods(client: Client, namespace: str, **query: str) -> list[JsonObject]:
    page = client.get(collection_path("v1", namespace, "pods"), f"list pods in namespace {namespace}", **query)
    items: list[JsonObject] = page["items"]
    return items


def _unscheduled(pod: JsonObject) -> str:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return _reasons(condition.get("message") or "")
    return ""


def _events(client: Client, namespace: str, field_selector: str) -> list[JsonObject]:
    """Oldest first."""
    query = {"fieldSelector": field_selector}
    try:
        page = client.get(collection_path("v1", namespace, "events"), f"list events in namespace {namespace}", **query)
    except Failure as error:
        if error.status == _FORBIDDEN:
            return []
        raise
    items: list[JsonObject] = page["items"]
    return sorted(items, key=lambda event: (event.get("lastTimestamp") or event.get("eventTime") or "", _age(event)))


def _age(event: JsonObject) -> int:
    """Events within the same second are told apart by etcd's revision."""
    return int(event["metadata"]["resourceVersion"])


def _reasons(message: str) -> str:
    for afterthought in _AFTERTHOUGHTS:
        message = message.partition(afterthought)[0]
    return message

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to the reducer's questions that watches do not give, each by a request of its own.

Why a migration gets no node, or has failed, is told by its target pod while that is there, and by events afterwards.
Reasons are worth reading, but not worth a migration: what may not be read is left out or said to be unknown.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    VMIS,
    find_owner,
    find_vmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
    SeenReplicaSet,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    Migration,
    by_vmi,
    failure_reason,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
    JsonObject,
    has_ended,
)

_LAUNCHERS_OF = "kubevirt.io/created-by"
# The scheduler's words are asked for this often, in seconds: nothing tells by itself when they change.
_WORDS_EVERY = 2.0
_TARGET_POD_OF = "kubevirt.io/migrationJobUID"
_FORBIDDEN = 403
# Behind the reasons of the nodes the scheduler tells what else it tried; that helps nobody to place a VM.
_AFTERTHOUGHTS = (" no new claims to deallocate", " preemption:")


class Inquiries:
    """unschedulable_timeout: of the migrations that are asked about, in seconds. Methods raise Failure."""

    def __init__(self, client: Client, unschedulable_timeout: int) -> None:
        self._client = client
        self._timeout = unschedulable_timeout
        self._words: Mapping[str, str] = {}
        self._words_until = -math.inf

    def ask_scheduler(self, questions: Questions) -> float:
        """Ask for its words if that is due. So many seconds a look may wait for news: none if there are new words."""
        if not (questions.placing or questions.unplaced):
            self._words = {}
            return math.inf
        left = self._words_until - time.monotonic()
        if left > 0:
            return left
        self._words = self._scheduler_words(questions)
        self._words_until = time.monotonic() + _WORDS_EVERY
        return 0.0

    def observe(
        self,
        questions: Questions,
        vmis: Iterable[SeenVmi],
        migrations: Iterable[Migration],
        pods: Iterable[SeenPod] = (),
    ) -> Observation:
        """What was seen by watches, with the answers to what they do not tell. VMIs are read later than all of that."""
        anew = self._pods_anew(questions.pods)
        present = (anew.get(pod.uid) if pod.title in questions.pods else pod for pod in pods)
        vms = self._owners(VM, questions.vms)
        replica_sets = self._owners(VMI_REPLICA_SET, questions.replica_sets)
        found = {vmi.title: vmi for vmi in vmis}
        read = {title: self._vmi(title) for title in questions.vmis | (questions.known - found.keys())}
        found |= {title: SeenVmi.of(vmi) for title, vmi in read.items() if vmi is not None}
        gone = {title for title, vmi in read.items() if vmi is None}
        words, reasons = dict(self._words), dict[str, str]()
        for uid, title in questions.failed.items():
            reasons[uid], words[uid] = self._reason(uid, title, read.get(title))
        return Observation(
            vmis={title: vmi for title, vmi in found.items() if title not in gone},
            pods={pod.uid: pod for pod in present if pod is not None},
            migrations=by_vmi(migrations),
            words=words,
            reasons=reasons,
            siblings=self._siblings(questions.owners),
            vms={title: SeenVm.of(vm) for title, vm in vms.items()},
            replica_sets={title: SeenReplicaSet.of(item) for title, item in replica_sets.items()},
        )

    def _owners(self, kind: str, titles: Iterable[str]) -> dict[str, JsonObject]:
        read = {title: find_owner(self._client, kind, *title.split("/")) for title in titles}
        return {title: item for title, item in read.items() if item is not None}

    def _vmi(self, title: str) -> JsonObject | None:
        namespace, _slash, name = title.partition("/")
        return find_vmi(self._client, namespace, name)

    def _pods_anew(self, titles: Iterable[str]) -> dict[str, SeenPod]:
        """By uid, without those that have ended."""
        found: list[JsonObject] = []
        for title in titles:
            namespace, _slash, name = title.partition("/")
            found += _pods(self._client, namespace, fieldSelector=f"metadata.name={name}")
        return {pod.uid: pod for pod in map(SeenPod.of, itertools.filterfalse(has_ended, found))}

    def _scheduler_words(self, questions: Questions) -> dict[str, str]:
        words: dict[str, str] = {}
        for namespace, uids in questions.placing.items():
            words |= _scheduler_messages(self._client, namespace, uids)
        for uid, namespace in questions.unplaced.items():
            words[uid] = _unscheduled_reason(self._client, namespace, f"{_LAUNCHERS_OF}={uid}")
        return words

    def _reason(self, uid: str, title: str, vmi: JsonObject | None) -> tuple[str, str]:
        """Why a migration failed, by the hypervisor, else the scheduler, else KubeVirt; and the scheduler's words."""
        namespace = title.partition("/")[0]
        if vmi is not None and (reason := failure_reason(vmi, uid)):
            return reason, ""
        if words := _past_scheduler_message(self._client, namespace, uid):
            return f"no node could take it within {self._timeout} s: {words}", words
        return _last_warning(self._client, namespace, uid), ""

    def _siblings(self, owners: Iterable[tuple[str, str]]) -> dict[str, tuple[SeenVmi, ...]]:
        """Each namespace is read once, however many owners there are in it."""
        by_namespace: defaultdict[str, list[str]] = defaultdict(list)
        for namespace, uid in owners:
            by_namespace[namespace].append(uid)
        found: dict[str, tuple[SeenVmi, ...]] = {}
        for namespace, uids in by_namespace.items():
            page = self._client.get(
                collection_path(API_VERSION, namespace, VMIS), f"list VMIs in namespace {namespace}"
            )
            vmis = sorted(map(SeenVmi.of, page["items"]), key=lambda vmi: vmi.name)
            found |= {uid: tuple(vmi for vmi in vmis if vmi.owner_uid == uid) for uid in uids}
        return found


def _scheduler_messages(client: Client, namespace: str, migration_uids: Collection[str]) -> dict[str, str]:
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


def _unscheduled_reason(client: Client, namespace: str, label_selector: str) -> str:
    """Why no node can take the pod with these labels, in the scheduler's words; empty if one can. Raises Failure."""
    try:
        pods = _pods(client, namespace, labelSelector=label_selector)
    except Failure as error:
        if error.status == _FORBIDDEN:
            return f"(unknown, as {error.message})"
        raise
    return next(filter(None, map(_unscheduled, pods)), "")


def _past_scheduler_message(client: Client, namespace: str, migration_uid: str) -> str:
    """The same of a target pod that KubeVirt has removed; empty if it had a node. Raises Failure."""
    told = [event.get("message") or "" for event in _events(client, namespace, f"involvedObject.uid={migration_uid}")]
    for event in reversed(_events(client, namespace, "reason=FailedScheduling") if told else []):
        # KubeVirt's events on a migration name its target pod.
        if any(event["involvedObject"]["name"] in message for message in told):
            return _reasons(event.get("message") or "")
    return ""


def _last_warning(client: Client, namespace: str, migration_uid: str) -> str:
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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evict pods wherever they are, and wait until their controllers have as many pods ready again as before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun, Teller
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import (
    Verbs,
    VerbSettings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    action_id,
    plan_of,
)


class PodLooks:
    """Looks at all pods of some namespaces, by lists alone, so that nothing else has to be allowed.

    pods: as they were seen last.
    """

    def __init__(self, client: Client, namespaces: Iterable[str]) -> None:
        self.pods: list[JsonObject] = []
        self._client = client
        self._namespaces = sorted(set(namespaces))
        self._is_due = True

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """Pods are looked at wherever they are."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        """After some seconds, at once the first time. Raises Failure."""
        if not self._is_due:
            time.sleep(seconds)
        self.pods = [pod for namespace in self._namespaces for pod in self._list(namespace)]
        self._is_due = False
        return Observation(pods={pod.uid: pod for pod in map(SeenPod.of, self.pods)})

    def forget(self) -> None:
        """Let the next look not wait."""
        self._is_due = True

    def _list(self, namespace: str) -> list[JsonObject]:
        page = self._client.get(collection_path("v1", namespace, "pods"), f"list pods in namespace {namespace}")
        items: list[JsonObject] = page["items"]
        return items


@dataclass(kw_only=True)
class EvictionRun(PlanRun):
    """replacements: what is to come instead, by controller. gone: pods of the task that were not there."""

    looks: PodLooks
    replacements: Sequence[Replacement]
    gone: Sequence[str]

    @classmethod
    def begin(
        cls,
        client: Client,
        wanted: Sequence[ObjectReference],
        settings: VerbSettings,
        teller: Teller,
        may: Callable[[], None],
    ) -> EvictionRun:
        """Nothing is evicted yet. Raises Failure, InvalidRequest.

        wanted: pods, without a uid whichever has the name. may: raises Failure when nothing may be done any more.
        """
        looks = PodLooks(client, (reference.namespace for reference in wanted))
        looks.look(Questions(), 0.0)
        by_name = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in looks.pods}
        there = {pod.title: by_name[pod.title] for pod in wanted if pod.title in by_name}
        found = [there[pod.title] for pod in wanted if _is_there(pod, there)]
        _refuse_machines(found)
        replacements = (Replacement.of(pod, looks.pods) for pod in found)
        return cls(
            Means(looks, Verbs(client, settings), lambda _nodes: may(), teller),
            Execution(node="", run=""),
            plan_of(map(_action, found)),
            looks=looks,
            replacements=list({item.controller: item for item in replacements if item}.values()),
            gone=[pod.title for pod in wanted if not _is_there(pod, there)],
        )

    def _conclude(self) -> None:
        if self.record.unfinished:
            return
        for replacement in self.replacements:
            replacement.look(self.looks.pods)
        self.is_over = all(replacement.done for replacement in self.replacements)


def _is_there(wanted: ObjectReference, pods: Mapping[str, JsonObject]) -> bool:
    """Whether a pod is among those found by its name, and not another one."""
    pod = pods.get(wanted.title)
    return pod is not None and wanted.uid in ("", pod["metadata"]["uid"])


def _action(pod: JsonObject) -> Action:
    metadata, node = pod["metadata"], str(pod["spec"].get("nodeName") or "")
    reference = ObjectReference("Pod", metadata["namespace"], metadata["name"], metadata["uid"])
    return Action(action_id(1, ActionKind.EVICT, reference), ActionKind.EVICT, 1, node, reference, source=node)


def _refuse_machines(pods: Iterable[JsonObject]) -> None:
    titles = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods if of_a_machine(pod)]
    if titles:
        problems = [f"pod {title} belongs to a virtual machine" for title in titles]
        raise InvalidRequest(
            "evict the pods", problems, "Migrate virtual machines by vmi_migration; nothing was evicted."
        )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at pods that are evicted and at VMIs that migrate, at either only while something of the kind is under way.

At pods by lists alone, of all in a namespace, so that nothing else has to be allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import (
    MigrationLooks,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


class MoveLooks:
    """migrations: looks at VMIs. At what it looks is said beforehand, by `turn_to`."""

    def __init__(self, client: Client, migrations: MigrationLooks, clock: Clock | None = None) -> None:
        self.migrations = migrations
        self._client = client
        self._clock = clock or Clock()
        self._pods: dict[str, list[JsonObject]] = {}
        self._namespaces: tuple[str, ...] = ()
        self._migrating = False
        self._listed_at = float("-inf")
        # What was read when something had its turn will do for the next look.
        self._is_at_hand = False

    @property
    def pods(self) -> list[JsonObject]:
        """Those of the namespaces that are looked at, as they were seen last."""
        return [pod for pods in self._pods.values() for pod in pods]

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """Pods and VMIs are looked at wherever they are."""

    def turn_to(self, namespaces: Iterable[str], *, migrating: bool) -> None:
        """Look at the pods of these namespaces alone, and at VMIs or not."""
        self._namespaces, self._migrating = tuple(sorted(set(namespaces))), migrating

    def look(self, questions: Questions, seconds: float) -> Observation:
        """Return when VMIs have changed, or after some seconds; at once if there is news to be read. Raises Failure."""
        wait = 0.0 if self._is_at_hand else seconds
        found = Observation()
        if self._migrating:
            found = self.migrations.look(replace(questions, pods=frozenset()), wait)
        else:
            self._clock.sleep(wait)
        # VMIs may change many times meanwhile: that is no reason to list pods as often, unless they are asked about.
        is_due = bool(questions.pods) or self._clock.steady() - self._listed_at >= seconds
        if is_due and not self._is_at_hand:
            self.read_pods(self._namespaces)
        self._is_at_hand = False
        seen = (SeenPod.of(pod) for name in self._namespaces for pod in self._pods[name])
        return replace(found, pods={pod.uid: pod for pod in seen})

    def read_pods(self, namespaces: Iterable[str]) -> list[JsonObject]:
        """All pods of these, and of those that are looked at, by lists read anew. Raises Failure."""
        names = sorted({*self._namespaces, *namespaces})
        # Those that were read right before for others are looked at next as well.
        self._pods = {**(self._pods if self._is_at_hand else {}), **{name: self._list(name) for name in names}}
        self._listed_at = self._clock.steady()
        return self.pods

    def forget(self) -> None:
        """Let the next look read everything anew, and not wait."""
        self.migrations.forget()
        self._listed_at, self._is_at_hand = float("-inf"), False

    def hasten(self) -> None:
        """Let the next look not wait, and list no pods, as they were just read."""
        self._is_at_hand = True

    def _list(self, namespace: str) -> list[JsonObject]:
        page = self._client.get(collection_path("v1", namespace, "pods"), f"list pods in namespace {namespace}")
        items: list[JsonObject] = page["items"]
        return items

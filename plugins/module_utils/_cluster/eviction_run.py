# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evict pods wherever they are, and wait until their controllers have as many pods ready again as before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import following
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.evictions import Evictions
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import Eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement

Object = dict[str, Any]

_PAUSE = 0.5


class EvictionRun:
    """gone: pods of the task that are not there, `namespace/name`."""

    def __init__(
        self, client: Client, evictions: Evictions, replacements: Iterable[Replacement], gone: Sequence[str]
    ) -> None:
        self.evictions = evictions
        self.replacements = list(replacements)
        self.gone = list(gone)
        self.trouble: Failure | None = None
        self.away = False
        self._client = client

    @classmethod
    def begin(cls, client: Client, wanted: Sequence[tuple[str, str]], grace_period: int | None) -> EvictionRun:
        """`wanted`: namespaces and names of pods. Nothing is evicted yet. Raises Failure, Mistake."""
        pods = _pods(client, {namespace for namespace, _name in wanted})
        by_name = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in pods}
        found = [by_name[key] for key in wanted if key in by_name]
        _refuse_machines(found)
        evictions = [
            Eviction(pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in found
        ]
        replacements = {
            replacement.controller: replacement for pod in found if (replacement := Replacement.of(pod, pods))
        }
        gone = [f"{namespace}/{name}" for namespace, name in wanted if (namespace, name) not in by_name]
        return cls(client, Evictions(client, evictions, grace_period), replacements.values(), gone)

    @classmethod
    def resume(cls, client: Client, state: Mapping[str, Any], grace_period: int | None) -> EvictionRun:
        evictions = Evictions(client, (Eviction(**item) for item in state["evictions"]), grace_period)
        run = cls(client, evictions, (Replacement(**item) for item in state["replacements"]), state["gone"])
        run.away = state["away"]
        return run

    def to_json(self) -> dict[str, Any]:
        """What `resume` takes."""
        return {
            "evictions": [asdict(item) for item in self.evictions.evictions],
            "replacements": [asdict(item) for item in self.replacements],
            "gone": self.gone,
            "away": self.away,
        }

    @property
    def unfinished(self) -> list[Eviction | Replacement]:
        waiting = [item for item in self.replacements if not item.done] if self.evictions.evictions else []
        return [*self.evictions.unfinished, *waiting]

    def follow(self, seconds: float, *, until_news: bool = False) -> list[str]:
        """Until all is over, or for so long, or until there is news; lines on the news. Raises Failure."""
        return following.follow(self, seconds, until_news=until_news)

    def step(self, seconds: float) -> None:
        self.evictions.ask(wave=1)
        pods = _pods(self._client, {item.namespace for item in self.evictions.evictions})
        self.evictions.look(pods)
        if not self.evictions.unfinished:
            for replacement in self.replacements:
                replacement.look(pods)
        if self.unfinished:
            time.sleep(min(seconds, _PAUSE))

    def news(self) -> list[str]:
        return [line for line in (item.news() for item in self.evictions.evictions) if line]


def _refuse_machines(pods: Iterable[Object]) -> None:
    titles = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods if of_a_machine(pod)]
    if titles:
        problems = [f"pod {title} belongs to a virtual machine" for title in titles]
        raise Mistake("evict the pods", problems, "Migrate virtual machines by vmi_migration; nothing was evicted.")


def _pods(client: Client, namespaces: Iterable[str]) -> list[Object]:
    found: list[Object] = []
    for namespace in sorted(namespaces):
        page = client.get(collection_path("v1", namespace, "pods"), f"list pods in namespace {namespace}")
        found += page["items"]
    return found

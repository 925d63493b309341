# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evict pods by the eviction API: all at once, and again and again where a disruption budget forbids it for now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import (
    EVICTED,
    EVICTING,
    NOT_EVICTED,
    WAITING,
    WOULD_EVICT,
    Eviction,
)

Object = dict[str, Any]

# Seconds after which a refused eviction is tried again. A budget yields when other pods have become ready.
_RETRY_AFTER = 2.0
_THREADS = 8
# The pod is gone, or another one has its name by now.
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


def pods_on(client: Client, node: str) -> list[Object]:
    """All pods that are bound to a node, ended ones too. Raises Failure."""
    query = {"fieldSelector": f"spec.nodeName={node}"}
    items: list[Object] = client.get("/api/v1/pods", f"list pods on node {node}", **query)["items"]
    return items


class Evictions:
    """grace_period: seconds a pod gets to end, None for its own."""

    def __init__(self, client: Client, evictions: Iterable[Eviction], grace_period: int | None) -> None:
        self.evictions = list(evictions)
        self._client = client
        self._grace_period = grace_period

    @property
    def unfinished(self) -> list[Eviction]:
        return [eviction for eviction in self.evictions if eviction.unfinished]

    def ask(self, wave: int) -> None:
        """Ask for the evictions up to a wave that are due. Raises Failure where no answer came or none may be asked."""
        now = time.time()
        due = [
            eviction
            for eviction in self.evictions
            if eviction.outcome == WAITING and eviction.wave <= wave and now - eviction.asked_at >= _RETRY_AFTER
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self._ask, due))

    def look(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Compare with the pods that the node has now."""
        left, now = {pod["metadata"]["uid"] for pod in pods}, time.time()
        for eviction in self.unfinished:
            if eviction.uid not in left:
                eviction.begun_at = eviction.begun_at or now
                eviction.end(EVICTED, now)

    def rehearse(self) -> None:
        """Put each to the server without evicting a pod. Raises Failure."""
        for eviction in self.evictions:
            self._ask(eviction, dry_run=True)
            if eviction.unfinished:
                eviction.outcome = WOULD_EVICT

    def _ask(self, eviction: Eviction, *, dry_run: bool = False) -> None:
        eviction.asked_at = time.time()
        eviction.begun_at = eviction.begun_at or eviction.asked_at
        options: Object = {"preconditions": {"uid": eviction.uid}}
        if self._grace_period is not None:
            options["gracePeriodSeconds"] = self._grace_period
        if dry_run:
            options["dryRun"] = ["All"]
        body: Object = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": eviction.namespace, "name": eviction.name},
            "deleteOptions": options,
        }
        path = object_path("v1", eviction.namespace, "pods", eviction.name) + "/eviction"
        try:
            self._client.post(path, f"evict pod {eviction.title}", body)
        except Failure as error:
            self._refused(eviction, error)
        else:
            eviction.outcome, eviction.refusal = EVICTING, ""

    def _refused(self, eviction: Eviction, error: Failure) -> None:
        """A budget answers 429, and 500 where two budgets select one pod; the server's words say which."""
        if error.status is None or error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise error
        if error.status in _GONE:
            eviction.end(EVICTED, time.time())
        elif error.passing:
            eviction.refusal = error.message.partition(", ")[2] or error.message
        else:
            eviction.end(NOT_EVICTED, time.time(), error.message)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a growing set of nodes: only what is looked at by now wakes who waits for news."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.observer import Observer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

from unit.plugins.module_utils._execution.moments import seen_pod

# Seconds without news, after which a look ends.
QUIET = 0.2


@dataclass
class Server:
    """What a Client offers to an observer: empty lists, and watches, of which those that know no n2 have news.

    gate: opened for that. left: released by each watch that was left before its end.
    """

    gate: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    left: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def get(self, path: str, attempted: str, **query: str) -> Any:
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    def watch(self, path: str, attempted: str, seconds: int, **query: str) -> Iterator[Any]:
        if "n2" not in query.get("labelSelector", "n2"):
            self.gate.wait(10)
            try:
                yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}
            except GeneratorExit:
                self.left.release()
                raise
        self.closing.wait(60)


def pod(name: str, phase: str = "Running", **metadata: str) -> JsonObject:
    named = {"namespace": "shop", "name": name, "uid": f"uid-{name}"}
    return {"metadata": named | metadata, "spec": {"nodeName": "n1"}, "status": {"phase": phase}}


class Pods:
    """What a Client offers to who asks for pods by their names."""

    def __init__(self, *pods: JsonObject) -> None:
        self._pods = pods

    def get(self, path: str, attempted: str, fieldSelector: str) -> Any:  # noqa: N803  # as the API has it
        assert path == "/api/v1/namespaces/shop/pods"
        return {"items": [pod for pod in self._pods if f"metadata.name={pod['metadata']['name']}" == fieldSelector]}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.gate.set()
    server.closing.set()


def test_watches_that_others_have_taken_the_place_of_wake_nobody(server: Server) -> None:
    """A look at once finds nothing, and the next one would, too, for as long as their streams last."""
    client: Any = server
    observer = Observer(client, ["n1"], "run", 30)
    observer.first()
    observer.attend(["n2"], ())
    observer.first()
    server.gate.set()
    for watched in ("migrations", "VMIs"):
        assert server.left.acquire(timeout=60), watched
    begun = time.monotonic()
    observer.look(Questions(), QUIET)
    assert time.monotonic() - begun >= QUIET


def test_pods_may_be_read_anew_that_a_watch_has_shown() -> None:
    """What it has not shown yet it will."""
    client: Any = Pods(
        pod("ending", deletionTimestamp="2026-01-01T00:00:00Z"), pod("ended", "Failed"), pod("another", uid="uid-new")
    )
    shown = [seen_pod(name) for name in ("ending", "ended", "another", "gone", "other")]
    asked = Questions(pods=frozenset(pod.title for pod in shown[:-1]))
    found = Inquiries(client, 30).observe(asked, (), (), shown).pods
    assert {pod.name: pod.ending for pod in found.values()} == {"ending": True, "other": False}

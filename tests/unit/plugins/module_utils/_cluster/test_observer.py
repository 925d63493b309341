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

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.observer import Observer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions

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

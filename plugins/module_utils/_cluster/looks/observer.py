# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at what a plan is about: watches of what is on its nodes and of the run's migrations, and answers to questions.

How many requests that takes depends on what happens, not on how long it takes: a list and a watch of the run's
migrations, of the VMIs on the nodes and of the pods on each, one request for a VM that has arrived or failed, and one
every two seconds while target pods have no node. So a migration costs a drain four: its VMI and its target are read
before it is created, and the VMI when it is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    MIGRATIONS,
    NODE_LABEL,
    VMIS,
    migrations_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.watch import WatchedList
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    SOURCE_LABEL,
    label_value,
    read_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import has_ended

_MACHINES = "VMIs"
# Events seldom come alone: so long is waited for more of them, in seconds.
_LULL = 0.02


class Observer:
    """nodes: those that are looked at. run: label of the run. unschedulable_timeout: of its migrations, in seconds."""

    def __init__(self, client: Client, nodes: Iterable[str], run: str, unschedulable_timeout: int) -> None:
        self._client = client
        self._inquiries = Inquiries(client, unschedulable_timeout)
        self._bell = threading.Event()
        self._run = run
        self._pods: dict[str, WatchedList] = {}
        # By what messages call them.
        self._lists: dict[str, WatchedList] = {}
        self._sources: set[str] = set()
        self.attend(nodes, ())

    def attend(self, nodes: Iterable[str], sources: Iterable[str]) -> None:
        """Look at these nodes as well from now on, and at the run's migrations away from `sources`."""
        names = sorted({*self._pods, *nodes})
        if self._sources != (everywhere := {*self._sources, *sources, *names}):
            self._sources = everywhere
            labels = ",".join(sorted(map(label_value, everywhere)))
            selector = f"{RUN_LABEL}={self._run},{SOURCE_LABEL} in ({labels})"
            self._replace(MIGRATIONS, migrations_path(None), selector)
        if names == sorted(self._pods):
            return
        for name in names:
            if name not in self._pods:
                here = {"fieldSelector": f"spec.nodeName={name}"}
                self._pods[name] = WatchedList(self._client, "/api/v1/pods", "pods", here, self._bell)
        self._replace(_MACHINES, collection_path(API_VERSION, None, VMIS), f"{NODE_LABEL} in ({','.join(names)})")

    def look(self, questions: Questions, seconds: float) -> Observation:
        """Return with the next changes, or after some seconds without one; at once the first time. Raises Failure."""
        wait = min(seconds, self._inquiries.ask_scheduler(questions))
        if self._bell.wait(max(0.0, wait)):
            self._bell.clear()
            time.sleep(_LULL)
        # Migrations first: of one that is over, the VMI is looked at later than it.
        for watched in self._all():
            watched.update(0)
        pods = (pod for watched in self._pods.values() for pod in watched.objects.values() if not has_ended(pod))
        return self._inquiries.observe(
            questions,
            map(SeenVmi.of, self._lists[_MACHINES].objects.values()),
            map(read_migration, self._lists[MIGRATIONS].objects.values()),
            map(SeenPod.of, pods),
        )

    def first(self) -> Observation:
        """A look that waits for nothing. Raises Failure."""
        return self.look(Questions(), 0.0)

    def forget(self) -> None:
        """Let the next look read everything anew, and not wait."""
        for watched in self._all():
            watched.forget()
        self._bell.set()

    def _all(self) -> tuple[WatchedList, ...]:
        return self._lists[MIGRATIONS], self._lists[_MACHINES], *self._pods.values()

    def _replace(self, title: str, path: str, labels: str) -> None:
        """Look at objects with other labels from now on. What happens to those before rings for nobody any more."""
        if before := self._lists.get(title):
            before.forget()
        self._lists[title] = WatchedList(self._client, path, title, {"labelSelector": labels}, self._bell)
        self._bell.set()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of target pods, seen event by event: in a moment they are bound, or gone again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB

from testbed.api import Api, Object, resource_path

# Seconds that one watch lasts, and after which the thread looks whether it is still wanted.
WATCH = 2
# What the scheduler adds to its message about filters.
_PREEMPTION = " no new claims to deallocate"


@dataclass
class TargetPods:
    """By the uid of their migration. `born`: as KubeVirt made them, before anything else has changed them.

    `told`: what the scheduler said first of those that have no node, without its words on preemption.
    """

    born: dict[str, Object] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def see(self, event: Object) -> None:
        pod = event["object"]
        job = pod["metadata"]["labels"][MIGRATION_JOB]
        if event["type"] == "ADDED":
            self.born[job] = pod
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                self.told.setdefault(job, condition.get("message", "").partition(_PREEMPTION)[0])


@contextmanager
def watched_target_pods(api: Api, namespace: str | None = None) -> Iterator[TargetPods]:
    """Those that come from now on; of one namespace, or of all."""
    path = resource_path("v1", "pods", namespace)
    query: dict[str, str | int] = {
        "labelSelector": MIGRATION_JOB,
        "watch": "true",
        "resourceVersion": api.get(path, labelSelector=MIGRATION_JOB)["metadata"]["resourceVersion"],
        "timeoutSeconds": WATCH,
    }
    pods, wanted = TargetPods(), threading.Event()
    wanted.set()

    def follow() -> None:
        while wanted.is_set():
            with api.http.stream("GET", path, params=query) as response:
                for line in response.iter_lines():
                    event = json.loads(line)
                    query["resourceVersion"] = event["object"]["metadata"]["resourceVersion"]
                    pods.see(event)

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        try:
            yield pods
        finally:
            wanted.clear()
            following.result()

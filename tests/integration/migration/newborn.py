# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Target pods as KubeVirt has just made them: before the scheduler, the kubelet or KubeVirt itself change anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB

from testbed.api import resource_path

if TYPE_CHECKING:
    from testbed.api import Api, Object

TIMEOUT = 120.0


@contextmanager
def newborn_target_pods(api: Api, namespace: str) -> Iterator[dict[str, Object]]:
    """Pods by the uid of their migration, as they come while the context lasts."""
    path = resource_path("v1", "pods", namespace)
    since = api.get(path, labelSelector=MIGRATION_JOB)["metadata"]["resourceVersion"]
    query: dict[str, str | int] = {
        "labelSelector": MIGRATION_JOB,
        "watch": "true",
        "resourceVersion": since,
        "timeoutSeconds": round(TIMEOUT),
    }
    found: dict[str, Object] = {}

    def follow() -> None:
        with api.http.stream("GET", path, params=query, timeout=httpx.Timeout(30, read=TIMEOUT)) as response:
            for line in response.iter_lines():
                event = json.loads(line)
                if event["type"] == "ADDED":
                    pod: Object = event["object"]
                    found[pod["metadata"]["labels"][MIGRATION_JOB]] = pod

    threading.Thread(target=follow, daemon=True).start()
    yield found

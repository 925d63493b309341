# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry changes out."""

from __future__ import annotations

from typing import Any

from testbed.api import ApiError, Object
from testbed.simulator.changes import Boot, Patch, Replacement
from testbed.simulator.client import Client, Kind
from testbed.simulator.facts import OUTAGE_LABEL, pod_facts, timestamp
from testbed.simulator.launchers import terminate

# The object has changed since (or is gone): the news is on its way, and the decision will be made again.
OVERTAKEN = frozenset({404, 409})
# Exit code of a container whose fate was not seen.
LOST = 255


async def write(client: Client, change: Patch | Replacement) -> Object | None:
    """Make a change; the object as it is now, None when another writer was faster, ApiError for any other refusal."""
    try:
        if isinstance(change, Replacement):
            return await client.replace(change.path, change.obj)
        metadata = {**change.body.get("metadata", {}), "resourceVersion": change.version}
        return await client.patch(change.path, {**change.body, "metadata": metadata}, change.author == "virt-handler")
    except ApiError as error:
        if error.status in OVERTAKEN:
            return None
        raise


async def boot(client: Client, change: Boot, now: float) -> Object:
    """Bring a machine up: first its pods, then its state, then its kubelet; the node as it is then."""
    pods, _version = await client.items(Kind("/api/v1/pods"), fields=f"spec.nodeName={change.node}")
    for pod in pods:
        if pod["status"]["phase"] == "Running":
            await write(client, after_boot(pod, now))
    conditions = [
        {
            "type": "Ready",
            "status": "False",
            "reason": "KubeletNotReady",
            "message": "container runtime network not ready",
            "lastHeartbeatTime": timestamp(now),
            "lastTransitionTime": timestamp(now),
        }
    ]
    path = f"/api/v1/nodes/{change.node}"
    status = {"nodeInfo": {"bootID": change.boot_id}, "conditions": conditions}
    await client.patch(f"{path}/status", {"status": status})
    return await client.patch(path, {"metadata": {"labels": {OUTAGE_LABEL: None}}})


def after_boot(pod: Object, now: float) -> Patch:
    """What becomes of a pod that ran when the machine went off: its containers restart, or it has failed."""
    facts = pod_facts(pod)
    if pod["spec"].get("restartPolicy") == "Never":
        return terminate(facts, LOST, now, "its node rebooted")

    def restarted(status: Any) -> dict[str, Any]:
        running = {"running": {"startedAt": timestamp(now)}}
        return {**status, "ready": False, "restartCount": status["restartCount"] + 1, "state": running}

    unready = {"status": "False", "reason": "ContainersNotReady", "lastTransitionTime": timestamp(now)}
    return Patch(
        path=f"/api/v1/namespaces/{facts.namespace}/pods/{facts.name}/status",
        version=facts.version,
        author="kubelet",
        body={
            "status": {
                "conditions": [{"type": kind, **unready} for kind in ("Ready", "ContainersReady")],
                "containerStatuses": [restarted(status) for status in facts.containers],
            }
        },
        says=f"{facts.namespace}/{facts.name}: restarted with its node",
    )

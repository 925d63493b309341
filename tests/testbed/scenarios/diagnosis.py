# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a scenario does not settle, in the words of the scheduler and the controllers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from testbed.api import Api, Object, resource_path

# More lines than a person reads would only hide the first ones.
LINES = 20


def missing(api: Api, namespaces: list[str]) -> list[str]:
    """One line per pod or VMI that does not run, then the controllers' warnings; at most `LINES` of each."""
    lines = []
    for namespace in namespaces:
        pods = api.items(resource_path("v1", "pods", namespace))
        vmis = api.items(resource_path("kubevirt.io/v1", "virtualmachineinstances", namespace))
        waiting = [(pod, line) for pod in pods if (line := pod_problem(pod))]
        lines += [line for _pod, line in waiting]
        # A VMI whose pod waits has nothing to add to it.
        explained = {pod["metadata"].get("labels", {}).get("kubevirt.io/created-by") for pod, _line in waiting}
        lines += [line for vmi in vmis if vmi["metadata"]["uid"] not in explained and (line := vmi_problem(vmi))]
    return shortened(lines) + shortened(warnings(api, namespaces))


def pod_problem(pod: Object) -> str:
    """Why a pod is not Ready; empty when it is, or when it has ended and waits for nothing."""
    status: dict[str, Any] = pod.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions", ())}
    if status.get("phase") == "Succeeded" or conditions.get("Ready", {}).get("status") == "True":
        return ""
    scheduled = conditions.get("PodScheduled", {})
    reason = scheduled.get("message") or conditions.get("Ready", {}).get("message") or status.get("message", "")
    return f"pod {full_name(pod)} is {status.get('phase')}" + (f": {reason}" if reason else "")


def vmi_problem(vmi: Object) -> str:
    """Why a VMI does not run; empty when it is Running and Ready."""
    status: dict[str, Any] = vmi.get("status", {})
    phase = status.get("phase") or "Pending"
    conditions = {c["type"]: c for c in status.get("conditions", ())}
    if phase == "Running" and conditions.get("Ready", {}).get("status") == "True":
        return ""
    state = "Running but not Ready" if phase == "Running" else phase
    # Synchronized carries what virt-controller could not do, Ready what the pod lacks.
    messages = [conditions[kind].get("message", "") for kind in ("Synchronized", "Ready") if kind in conditions]
    reason = "; ".join(message for message in messages if message)
    return f"VMI {full_name(vmi)} is {state}" + (f": {reason}" if reason else "")


def warnings(api: Api, namespaces: list[str]) -> list[str]:
    """Warning events of controllers, equal ones once; the scheduler's stand on the pods already."""
    counts: Counter[str] = Counter()
    for namespace in namespaces:
        for event in api.items(resource_path("v1", "events", namespace), fieldSelector="type=Warning"):
            if event["reason"] != "FailedScheduling":
                target = event["involvedObject"]
                counts[f"{target['kind']} {namespace}/{target['name']}: {event['message']}"] += 1
    return [f"event on {text}" + (f" ({count} times)" if count > 1 else "") for text, count in counts.most_common()]


def shortened(lines: list[str]) -> list[str]:
    rest = len(lines) - LINES
    return [*lines[:LINES], f"… and {rest} more"] if rest > 0 else lines


def full_name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"

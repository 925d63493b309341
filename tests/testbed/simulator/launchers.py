# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-launcher pods end when their guest has ended or gone elsewhere, never before."""

from __future__ import annotations

from typing import Any

from testbed.simulator.changes import Decision, Patch
from testbed.simulator.facts import Pod, Raw, Vmi, timestamp
from testbed.simulator.fault import PREPARING_TARGET, SCHEDULING, TARGET_POD
from testbed.simulator.situation import Situation, guest_pod

# How long a source's virt-launcher outlives the guest that has left it, in real seconds (VMIs tell whole ones). Ended
# before virt-controller has learnt of the hand-over, it would pass for the VMI's only pod, and a replica set would
# replace the VMI.
LINGER = 2.0


def end_pods(situation: Situation) -> Decision | None:
    """End the first pod that has nothing left to do, on a node whose machine runs."""
    wakes = []
    for pod in situation.pods:
        if pod.live and situation.host(pod.node).on:
            why, due = idle(situation, pod), lingers_until(situation.vmi, pod)
            if why and situation.now >= due:
                return Decision(terminate(pod, 0, situation.now, why))
            if why:
                wakes.append(due)
    return Decision(wake=min(wakes)) if wakes else None


def lingers_until(vmi: Vmi | None, pod: Pod) -> float:
    """Until when the pod stays though it has no guest; 0 if it ends at once."""
    migration = vmi.migration if vmi and not vmi.final else None
    left = migration and migration.done and not migration.failed and pod.name == migration.source_pod
    return migration.ended + LINGER if migration and left and not pod.deleting else 0.0


def idle(situation: Situation, pod: Pod) -> str:
    """Why the pod has no guest any more and gets none; "" as long as it may."""
    vmi = situation.vmi
    if vmi is None or vmi.uid != pod.vmi_uid:
        return "its VMI is gone" if pod.deleting else ""
    if vmi.final:
        return f"the VMI is {vmi.phase}"
    if pod == guest_pod(situation, vmi) and vmi.phase == "Running" and situation.host(pod.node).handled:
        return ""  # its virt-handler first reports that the guest has ended
    if pod.deleting:
        return "it is being deleted and has no guest"
    migration = vmi.migration
    if migration is None or not migration.done or pod.node == vmi.node:
        return ""
    if migration.failed:
        return "the migration to it failed" if pod.name == migration.target_pod else ""
    return f"its guest runs on {vmi.node} now" if pod.name == migration.source_pod else ""


def kill_target(situation: Situation, vmi: Vmi) -> Decision | None:
    """Faults that make a migration's target pod fail: before the hand-over, during preparation, or while copying."""
    for pod in situation.pods:
        if not pod.live or not pod.migration_uid or not situation.host(pod.node).on:
            continue
        phase = target_phase(vmi, pod)
        if phase and situation.faults.for_migration(phase, vmi, situation.now, situation.occasion(vmi)):
            return Decision(terminate(pod, 1, situation.now, f"injected failure in phase {phase}"))
    return None


def target_phase(vmi: Vmi, pod: Pod) -> str:
    """The phase in which this pod, as a target, can be made to fail now; "" for none."""
    migration = vmi.migration
    if migration is None or migration.uid != pod.migration_uid:
        return SCHEDULING if pod.node != vmi.node else ""
    if migration.done or migration.switched:
        return ""
    if migration.received:
        return TARGET_POD
    return "" if migration.prepared else PREPARING_TARGET


def terminate(pod: Pod, exit_code: int, now: float, why: str) -> Patch:
    """End all containers of a pod, as kubelet reports it: phase Succeeded for exit code 0, else Failed."""
    phase = "Failed" if exit_code else "Succeeded"
    reason = "Error" if exit_code else "Completed"

    def ended(status: Raw) -> dict[str, Any]:
        running = (status.get("state") or {}).get("running") or {}
        times = {"startedAt": running.get("startedAt"), "finishedAt": timestamp(now)}
        terminated = {"exitCode": exit_code, "reason": reason, **times}
        return {**status, "ready": False, "started": False, "state": {"terminated": terminated}}

    unready = {
        "status": "False",
        "reason": f"Pod{'Failed' if exit_code else 'Completed'}",
        "lastTransitionTime": timestamp(now),
    }
    return Patch(
        path=f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status",
        version=pod.version,
        author="kubelet",
        body={
            "status": {
                "phase": phase,
                "conditions": [{"type": kind, **unready} for kind in ("Ready", "ContainersReady")],
                "containerStatuses": [ended(status) for status in pod.containers],
                "initContainerStatuses": [
                    ended(status) if "running" in (status.get("state") or {}) else dict(status)
                    for status in pod.init_containers
                ],
            }
        },
        says=f"{pod.namespace}/{pod.name}: pod {phase}: {why}",
    )

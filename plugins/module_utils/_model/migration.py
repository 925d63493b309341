# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration as KubeVirt's API tells of it, read from a VirtualMachineInstanceMigration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]

SUCCEEDED, FAILED = "Succeeded", "Failed"
# Queued: KubeVirt holds the migration back, and there is no target pod. Scheduling: there is one, maybe without a node.
QUEUED, SCHEDULING = frozenset({"", "Pending"}), "Scheduling"
# Names the run of a task that created a migration, so that a later run knows it for its own.
RUN_LABEL = "virtops.kubevirt/run"


@dataclass(frozen=True, slots=True)
class Migration:
    """`run`: of the task that created it, empty if something else did. `blocked`: why KubeVirt holds it back.

    `priority`: as the API names it, empty for none; only KubeVirt itself may set one. `created`: RFC 3339 in UTC.
    `cancelled`: whether it has been deleted, and is there only until KubeVirt has undone it.
    """

    namespace: str
    name: str
    uid: str
    vmi: str
    run: str
    node_selector: Mapping[str, str]
    priority: str
    created: str
    phase: str
    phases: tuple[tuple[str, str], ...]
    blocked: str
    cancelled: bool

    @property
    def unfinished(self) -> bool:
        return self.phase not in (SUCCEEDED, FAILED)


def read_migration(item: Object) -> Migration:
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    reached = status.get("phaseTransitionTimestamps") or ()
    return Migration(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        vmi=spec["vmiName"],
        run=(metadata.get("labels") or {}).get(RUN_LABEL, ""),
        node_selector=spec.get("addedNodeSelector") or {},
        priority=spec.get("priority") or "",
        created=metadata.get("creationTimestamp") or "",
        phase=status.get("phase") or "",
        phases=tuple((entry["phase"], entry["phaseTransitionTimestamp"]) for entry in reached),
        blocked="; ".join(_holds(status)),
        cancelled="deletionTimestamp" in metadata,
    )


def failure_reason(vmi: Object, migration_uid: str) -> str:
    """Why the migration failed in the words of the hypervisor; empty if the VMI's last migration was another one."""
    state = (vmi.get("status") or {}).get("migrationState") or {}
    return str(state.get("failureReason") or "") if state.get("migrationUid") == migration_uid else ""


def _holds(status: Object) -> list[str]:
    return [
        condition.get("message") or condition["type"]
        for condition in status.get("conditions") or ()
        if condition["status"] == "True" and condition["type"] != "migrationAbortRequested"
    ]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration as KubeVirt's API tells of it, read from a VirtualMachineInstanceMigration."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, is_finished

# Queued: KubeVirt holds the migration back, and there is no target pod. Scheduling: there is one, maybe without a node.
QUEUED, SCHEDULING = frozenset({"", "Pending"}), "Scheduling"
# On everything in the cluster that belongs to a run, so that a later invocation of it knows it for its own.
RUN_LABEL = "virtops.kubevirt/run"
# Names the node that a VM is to leave by a migration, as a value of a label.
SOURCE_LABEL = "virtops.kubevirt/source-node"
# The first KubeVirt whose migrations can be pinned to a node: it brought spec.addedNodeSelector.
PINNED_SINCE = (1, 6)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


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
        return not is_finished(self.phase)

    @property
    def goes_on(self) -> bool:
        """Whether it is on its way, or will be without anybody's doing: KubeVirt has no reason to hold it back."""
        return self.unfinished and not (self.phase in QUEUED and self.blocked)


def label_value(name: str) -> str:
    """A name as the value of a label: itself where that is allowed, else something that stands for it alone."""
    if _LABEL.fullmatch(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:46]
    return f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:16]}".lstrip("-")


def unpinned_by(version: str) -> str:
    """Why a KubeVirt of this version cannot pin a migration to a node, a clause; empty if it can, or does not tell.

    Builds of somebody's own have versions of any kind.
    """
    found = _VERSION.match(version)
    if found is None or (int(found[1]), int(found[2])) >= PINNED_SINCE:
        return ""
    return f"the cluster has KubeVirt {version}, which cannot pin a migration to a node; {needed_to_pin()}"


def needed_to_pin() -> str:
    """A clause."""
    return f"KubeVirt {'.'.join(map(str, PINNED_SINCE))} or newer is needed"


def read_migration(item: Object) -> Migration:
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    reached = status.get("phaseTransitionTimestamps") or ()
    return Migration(
        namespace=metadata.get("namespace") or "default",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
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


def by_vmi(migrations: Iterable[Migration]) -> dict[str, tuple[Migration, ...]]:
    """By the title of their VMI, namespace/name."""
    found: defaultdict[str, list[Migration]] = defaultdict(list)
    for migration in migrations:
        found[f"{migration.namespace}/{migration.vmi}"].append(migration)
    return {title: tuple(entries) for title, entries in found.items()}


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

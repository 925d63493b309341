# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulator reads of the cluster's objects; everything else of them is forgotten at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from testbed.simulator.quantity import number

Raw = Mapping[str, Any]

# On a node whose machine is off: the id of the outage. kwok leaves such nodes and their pods alone.
OUTAGE_LABEL = "testbed/outage"
SCHEDULABLE = "kubevirt.io/schedulable"
HEARTBEAT = "kubevirt.io/heartbeat"
NODE_NAME = "kubevirt.io/nodeName"
MIGRATION_TARGET_NODE = "kubevirt.io/migrationTargetNodeName"
OUTDATED_LAUNCHER = "kubevirt.io/outdatedLauncherImage"
EVICTION_SOURCE = "kubevirt.io/eviction-source"
CREATED_BY = "kubevirt.io/created-by"
MIGRATION_JOB = "kubevirt.io/migrationJobUID"
COMPONENT = "kubevirt.io"

FINAL_PHASES = frozenset({"Succeeded", "Failed"})


def seconds(timestamp: str | None) -> float:
    """An RFC 3339 time as seconds since the epoch; 0 for none."""
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0


def timestamp(moment: float) -> str:
    """Seconds since the epoch in the only form that survives KubeVirt's own reading and writing: whole seconds, UTC.

    A fraction would be lost when virt-controller compares what it read with what is stored, and fail its patches.
    """
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Migration:
    """A VMI's `status.migrationState`."""

    raw: Raw

    @property
    def uid(self) -> str:
        return str(self.raw.get("migrationUid", ""))

    @property
    def source_node(self) -> str:
        return str(self.raw.get("sourceNode", ""))

    @property
    def target_node(self) -> str:
        return str(self.raw.get("targetNode", ""))

    @property
    def source_pod(self) -> str:
        return str(self.raw.get("sourcePod", ""))

    @property
    def target_pod(self) -> str:
        return str(self.raw.get("targetPod", ""))

    @property
    def prepared(self) -> bool:
        return bool(self.raw.get("targetNodeAddress"))

    @property
    def started(self) -> float:
        """Seconds since the epoch, 0 when not started."""
        return seconds(self.raw.get("startTimestamp"))

    @property
    def ended(self) -> float:
        """Seconds since the epoch, 0 when it has not ended."""
        return seconds(self.raw.get("endTimestamp"))

    @property
    def mode(self) -> str:
        return str(self.raw.get("mode", ""))

    @property
    def failed(self) -> bool:
        return bool(self.raw.get("failed"))

    @property
    def completed(self) -> bool:
        return bool(self.raw.get("completed"))

    @property
    def done(self) -> bool:
        """Ended one way or the other (isMigrationDone in KubeVirt)."""
        return bool(self.raw.get("endTimestamp")) and (self.completed or self.failed)

    @property
    def abort_requested(self) -> bool:
        return bool(self.raw.get("abortRequested"))

    @property
    def abort_status(self) -> str:
        return str(self.raw.get("abortStatus", ""))

    @property
    def received(self) -> bool:
        """The target's libvirt has the (still paused) domain."""
        return bool(self.raw.get("targetNodeDomainDetected"))

    @property
    def switched(self) -> bool:
        """The guest runs on the target: there is no way back."""
        return bool(self.raw.get("targetNodeDomainReadyTimestamp"))

    @property
    def configuration(self) -> Raw:
        return self.raw.get("migrationConfiguration") or {}


@dataclass(frozen=True)
class Vmi:
    """A VirtualMachineInstance as the API gives it; the properties are what the rules read."""

    raw: Raw

    @cached_property
    def metadata(self) -> Raw:
        return dict(self.raw["metadata"])

    @cached_property
    def status(self) -> Raw:
        return dict(self.raw.get("status") or {})

    @property
    def spec(self) -> Raw:
        return dict(self.raw["spec"])

    @property
    def key(self) -> str:
        return f"{self.metadata['namespace']}/{self.metadata['name']}"

    @property
    def uid(self) -> str:
        return str(self.metadata["uid"])

    @property
    def version(self) -> str:
        return str(self.metadata["resourceVersion"])

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def created(self) -> float:
        return seconds(self.metadata.get("creationTimestamp"))

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.metadata

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def final(self) -> bool:
        return self.phase in FINAL_PHASES

    @property
    def node(self) -> str:
        return str(self.status.get("nodeName", ""))

    @property
    def conditions(self) -> list[Raw]:
        return list(self.status.get("conditions") or [])

    @cached_property
    def migration(self) -> Migration | None:
        state = self.status.get("migrationState")
        return Migration(state) if state else None

    @property
    def memory(self) -> float:
        """Bytes that a migration has to carry over: what the guest sees, else what was requested."""
        domain = self.spec["domain"]
        guest = (domain.get("memory") or {}).get("guest")
        requested = ((domain.get("resources") or {}).get("requests") or {}).get("memory", 0)
        return number(guest or requested)


@dataclass(frozen=True)
class Pod:
    """A pod of a node agent or of a VMI. `containers` and `init_containers` are its container statuses."""

    namespace: str
    name: str
    version: str
    labels: Mapping[str, str]
    node: str
    phase: str
    deleting: bool
    containers: tuple[Raw, ...] = field(default=(), repr=False)
    init_containers: tuple[Raw, ...] = field(default=(), repr=False)

    @property
    def vmi_uid(self) -> str:
        return self.labels.get(CREATED_BY, "")

    @property
    def migration_uid(self) -> str:
        """Of the migration that made the pod, "" for a VMI's first pod."""
        return self.labels.get(MIGRATION_JOB, "")

    @property
    def over(self) -> bool:
        return self.phase in FINAL_PHASES

    @property
    def live(self) -> bool:
        return self.phase == "Running"

    @property
    def containers_ready(self) -> bool:
        """Ready by its containers alone: the Ready condition is also taken away from pods of unreachable nodes."""
        return self.live and not self.deleting and all(status["ready"] for status in self.containers)

    @property
    def started(self) -> float:
        """When the last of its containers that run was started, in seconds since the epoch; 0 if none runs."""
        running = (status.get("state", {}).get("running") for status in self.containers)
        return max((seconds(state["startedAt"]) for state in running if state), default=0.0)


def pod_facts(raw: Raw) -> Pod:
    metadata, status = raw["metadata"], raw.get("status") or {}
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=metadata["resourceVersion"],
        labels=metadata.get("labels") or {},
        node=raw["spec"].get("nodeName", ""),
        phase=status.get("phase", ""),
        deleting="deletionTimestamp" in metadata,
        containers=tuple(status.get("containerStatuses") or ()),
        init_containers=tuple(status.get("initContainerStatuses") or ()),
    )


@dataclass(frozen=True)
class Node:
    """A node. `heartbeat` in seconds since the epoch, 0 for none; `schedulable` is KubeVirt's label, "" for none.

    `guarded`: a taint keeps DaemonSets away that do not tolerate everything.
    """

    name: str
    version: str
    address: str
    boot_id: str
    outage: str
    ready: bool
    schedulable: str
    heartbeat: float
    guarded: bool = False


def node_facts(raw: Raw) -> Node:
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses") or []}
    return Node(
        name=metadata["name"],
        version=metadata["resourceVersion"],
        address=addresses.get("InternalIP", ""),
        boot_id=(status.get("nodeInfo") or {}).get("bootID", ""),
        outage=labels.get(OUTAGE_LABEL, ""),
        ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or []),
        schedulable=labels.get(SCHEDULABLE, ""),
        heartbeat=seconds((metadata.get("annotations") or {}).get(HEARTBEAT)),
        guarded=any(_guards(taint) for taint in (raw.get("spec") or {}).get("taints") or []),
    )


def _guards(taint: Raw) -> bool:
    """The pods of every DaemonSet tolerate the taints of Kubernetes that tell a node's condition."""
    return taint["effect"] != "PreferNoSchedule" and not taint["key"].startswith("node.kubernetes.io/")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for one node: its virt-handler's heartbeat, and the machine going off and on.

    on -> (reboot only: schedulable=false) -> off, marked by OUTAGE_LABEL -> (reboot only: NotReady) -> boot -> on

While the label stands kwok plays no kubelet there. A reboot is announced as a kubelet with graceful shutdown does; a
machine that loses power says nothing, and the node lifecycle controller finds out, unless it is back before: then the
node looks as if nothing had happened, but for its boot ID, until its virt-handler speaks again.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testbed.simulator.changes import NOTHING, Boot, Decision, Patch
from testbed.simulator.facts import HEARTBEAT, OUTAGE_LABEL, SCHEDULABLE, Node, Pod, timestamp
from testbed.simulator.fault import NODE_REBOOT, OUTAGES, SILENT_HANDLER, STALE_HEARTBEAT, Fault, Faults
from testbed.simulator.situation import Host

# virt-handler's period, and how much longer than it a pause can get.
PERIOD, JITTER = 60.0, 1.2
# A heartbeat that is five minutes old makes virt-controller give the node up.
STALE = 600.0
BOOT_IDS = uuid.UUID("3f5a4e0c-7d0b-4b57-8a5e-8a0c2d6b1a77")


@dataclass(frozen=True)
class Surroundings:
    """A node, its virt-handler pods (none in a cluster without the DaemonSet), the faults and the time.

    `awaited`: the DaemonSet has yet to make the node's pod.
    """

    node: Node
    handlers: Sequence[Pod]
    faults: Faults
    now: float
    awaited: bool = False

    @property
    def outage(self) -> Fault | None:
        return self.faults.for_node(OUTAGES, self.node.name, self.now)

    @property
    def stale(self) -> bool:
        return self.faults.for_node((STALE_HEARTBEAT,), self.node.name, self.now) is not None

    @property
    def silent(self) -> bool:
        return self.faults.for_node((SILENT_HANDLER,), self.node.name, self.now) is not None

    @property
    def handler_ready(self) -> bool:
        if not self.handlers:
            return not self.awaited
        return any(pod.containers_ready for pod in self.handlers)

    @property
    def handler_starting(self) -> bool:
        """Whether its containers run, but are not ready: it has nothing to say yet."""
        return any(pod.started and pod.live and not pod.deleting for pod in self.handlers)

    @property
    def handler_started(self) -> float:
        return max((pod.started for pod in self.handlers), default=0.0)

    def host(self) -> Host:
        """What the rules for VMs need to know of the node."""
        outage = self.outage
        on = outage is None and not self.node.outage
        handled = on and bool(self.node.schedulable) and self.handler_ready and not (self.stale or self.silent)
        return Host(on, handled, self.node.address, outage.since if outage else 0.0)


def decide(around: Surroundings) -> Decision:
    """The next change to the node."""
    node, outage = around.node, around.outage
    if outage:
        return go_off(around, outage)
    if node.outage:
        return Decision(Boot(node.name, str(uuid.uuid5(BOOT_IDS, f"{node.name} after {node.boot_id}"))))
    if not node.schedulable:
        return NOTHING  # no node of KubeVirt's
    if around.silent:
        return NOTHING
    if around.stale:
        old = around.now - STALE
        return NOTHING if node.heartbeat <= old + PERIOD else heartbeat(node, old, None, "heartbeat gets stale")
    if not around.handler_ready:
        if around.handler_starting:
            return NOTHING
        stopped = heartbeat(node, around.now, "false", "virt-handler stopped")
        # A new node's virt-handler has not spoken yet; what the node says was put there with it.
        return stopped if node.schedulable == "true" and node.heartbeat else NOTHING
    if not node.ready:
        return NOTHING
    due = node.heartbeat + pause(node)
    if node.schedulable != "true" or around.now >= due or around.handler_started > node.heartbeat:
        return heartbeat(node, around.now, "true", "" if node.schedulable == "true" else "virt-handler is back")
    return Decision(wake=due)


def go_off(around: Surroundings, outage: Fault) -> Decision:
    node, reboot = around.node, outage.kind == NODE_REBOOT
    if not node.outage:
        if reboot and node.schedulable == "true":
            return heartbeat(node, around.now, "false", "virt-handler stopped for the reboot")
        return Decision(patch(node, {"metadata": {"labels": {OUTAGE_LABEL: outage.id}}}, f"off ({outage.kind})"))
    if reboot and node.ready:
        return Decision(not_ready(node, around.now))
    return NOTHING


def pause(node: Node) -> float:
    """Seconds from the node's last heartbeat to the next: upstream's jitter, but always the same for a heartbeat."""
    digest = hashlib.sha256(f"{node.name} {node.heartbeat}".encode()).digest()
    return PERIOD * (1 + JITTER * digest[0] / 256)


def heartbeat(node: Node, moment: float, schedulable: str | None, says: str) -> Decision:
    metadata: dict[str, Any] = {"annotations": {HEARTBEAT: timestamp(moment)}}
    if schedulable is not None and schedulable != node.schedulable:
        metadata["labels"] = {SCHEDULABLE: schedulable}
    return Decision(patch(node, {"metadata": metadata}, says, "virt-handler"))


def not_ready(node: Node, now: float) -> Patch:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "node is shutting down",
        "lastHeartbeatTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }
    return patch(node, {"status": {"conditions": [condition]}}, "NotReady for the reboot", subresource="/status")


def patch(node: Node, body: dict[str, Any], says: str, author: Any = "kubelet", subresource: str = "") -> Patch:
    path = f"/api/v1/nodes/{node.name}{subresource}"
    return Patch(path, node.version, author, body, f"node {node.name}: {says}" if says else "")

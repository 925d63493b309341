# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that cannot be migrated and is interrupted instead: what a drain remembers of it, and how it is told.

Who brings a VMI back decides how it is ended; follows syncRunStrategy in pkg/virt-controller/watch/vm/vm.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RESTART, STOP = "restart", "stop"
VM, REPLICA_SET = "VirtualMachine", "VirtualMachineInstanceReplicaSet"
# Outcomes, of which the first two are not final.
WAITING, ENDING = "waiting", "ending"
RESTARTED, STOPPED, FAILED = "restarted", "stopped", "failed"
WOULD = {RESTART: "would_restart", STOP: "would_stop"}
_UNFINISHED = frozenset({WAITING, ENDING})


@dataclass
class Interruption:
    """Everything in it is JSON, so that it survives from one round of a run to the next.

    action: restart or stop. owner_kind, owner, owner_uid: who brings the VMI back. node: which is drained.
    why: it is not migrated. known: VMIs of the owner that were there before, of which none is the successor.
    target_node: where the VM runs again, or is expected to. begun_at, ended_at: seconds since the epoch, 0 if not yet.
    reason: why it failed. message: why the successor has no node, in the scheduler's words.
    """

    namespace: str
    name: str
    uid: str
    node: str
    action: str
    owner_kind: str
    owner: str
    owner_uid: str
    wave: int = 1
    why: str = ""
    outcome: str = WAITING
    known: list[str] = field(default_factory=list)
    successor: str = ""
    target_node: str = ""
    reason: str = ""
    message: str = ""
    begun_at: float = 0.0
    ended_at: float = 0.0
    told: str = ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def unfinished(self) -> bool:
        return self.outcome in _UNFINISHED

    @property
    def seconds(self) -> int | None:
        return round(self.ended_at - self.begun_at) if self.ended_at else None

    def end(self, outcome: str, now: float, *, reason: str = "", node: str = "") -> None:
        self.outcome, self.ended_at, self.reason, self.target_node = outcome, now, reason, node
        self.message = ""

    def status(self) -> str:
        """Where it stands, in a few words."""
        if self.outcome == RESTARTED:
            name = "" if self.successor in ("", self.name) else f" as {self.successor}"
            return f"restarted{name} on {self.target_node} in {self.seconds} s"
        if self.outcome == STOPPED:
            return f"stopped in {self.seconds} s"
        if self.outcome == FAILED:
            return f"failed, {self.reason}"
        if self.outcome == ENDING:
            doing = "restarting" if self.action == RESTART else "stopping"
            return f"{doing}, no node fits: {self.message}" if self.message else doing
        return self.outcome.replace("_", " ")

    def news(self) -> str | None:
        """A line on it if it stands elsewhere than when this was last asked."""
        status = self.status()
        if status == self.told or self.outcome == WAITING:
            return None
        self.told = status
        return f"{self.title}: {status}"

    def result(self) -> dict[str, Any]:
        """What a module returns of it."""
        names = ("namespace", "name", "action", "outcome", "why", "owner_kind", "owner", "successor", "target_node")
        return {**{name: getattr(self, name) for name in names}, "seconds": self.seconds, "failure_reason": self.reason}

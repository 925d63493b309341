# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VMI on its way: what a run of migrations remembers of it, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import QUEUED, SCHEDULING, Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

# Outcomes, of which the first two are not final.
WAITING, MIGRATING = "waiting", "migrating"
ALREADY_THERE, MIGRATED, NOT_MIGRATED, PLANNED = "already_there", "migrated", "failed", "would_migrate"
UNFINISHED = frozenset({WAITING, MIGRATING})


@dataclass
class Move:
    """Everything in it is JSON, so that it survives from one round of a run to the next.

    destination: the node or labels that are wanted. node_selector: what pins the target pod. node: where the VM runs.
    migration, migration_uid, run: of the newest attempt. phases: its phases so far, with the time each was reached.
    wave: before its turn it is not started.
    """

    namespace: str
    name: str
    uid: str
    source_node: str
    target_node: str | None
    destination: str
    node_selector: dict[str, str]
    node: str
    outcome: str = WAITING
    migration: str = ""
    migration_uid: str = ""
    run: str = ""
    attempts: int = 0
    phases: list[dict[str, str]] = field(default_factory=list)
    failure_reason: str = ""
    scheduler_message: str = ""
    told: str = ""
    wave: int = 1

    @classmethod
    def begin(cls, prospect: Prospect) -> Move:
        wish, node = prospect.wish, prospect.source_node
        move = cls(
            namespace=wish.namespace,
            name=wish.name,
            uid=prospect.vmi["metadata"]["uid"] if prospect.vmi else "",
            source_node=node,
            target_node=wish.target_node,
            destination=wish.destination,
            node_selector=dict(prospect.node_selector),
            node=node,
        )
        if prospect.in_flight:
            move.observe(prospect.in_flight)
            move.attempts = 1
        elif prospect.fulfilled:
            move.outcome = ALREADY_THERE
        return move

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def unfinished(self) -> bool:
        return self.outcome in UNFINISHED

    @property
    def placing(self) -> bool:
        """Whether there is a target pod, which may still lack a node."""
        return self.outcome == MIGRATING and self.phase == SCHEDULING

    @property
    def queued(self) -> bool:
        """Whether KubeVirt holds the migration back, so that there is no target pod yet."""
        return self.outcome == MIGRATING and self.phase in QUEUED

    @property
    def phase(self) -> str:
        return self.phases[-1]["phase"] if self.phases else ""

    @property
    def seconds(self) -> int | None:
        """From the first phase of the newest attempt to the last so far."""
        times = [datetime.strptime(entry["reached_at"], "%Y-%m-%dT%H:%M:%S%z") for entry in self.phases]
        return round((times[-1] - times[0]).total_seconds()) if times else None

    def observe(self, migration: Migration) -> None:
        self.outcome = MIGRATING
        self.migration, self.migration_uid, self.run = migration.name, migration.uid, migration.run
        self.phases = [{"phase": phase, "reached_at": time} for phase, time in migration.phases]

    def end(self, outcome: str, *, node: str = "", reason: str = "") -> None:
        self.outcome, self.node, self.failure_reason = outcome, node or self.node, reason
        if outcome == MIGRATED:
            self.scheduler_message = ""

    def status(self) -> str:
        """Where it stands, in a few words."""
        if self.outcome == MIGRATED:
            return f"migrated to {self.node} in {self.seconds} s"
        if self.outcome == NOT_MIGRATED:
            return f"failed, {self.failure_reason}"
        if self.outcome != MIGRATING:
            return self.outcome.replace("_", " ")
        words = [self.phase or "Pending"]
        if self.attempts > 1:
            words.append(f"attempt {self.attempts} after the failure: {self.failure_reason.rstrip('.')}")
        if self.scheduler_message:
            words.append(f"no node fits: {self.scheduler_message}")
        return ", ".join(words)

    def news(self) -> str | None:
        """A line on it if it stands elsewhere than when this was last asked."""
        status = self.status()
        if status == self.told:
            return None
        self.told = status
        return f"{self.title}: {self.source_node} -> {self.destination}: {status}"

    def result(self) -> dict[str, Any]:
        """What a module returns of it."""
        names = ("namespace", "name", "outcome", "source_node", "target_node", "node_selector", "node", "migration")
        return {
            **{name: getattr(self, name) for name in names},
            "attempts": self.attempts,
            "phases": self.phases,
            "seconds": self.seconds,
            "failure_reason": self.failure_reason,
            "scheduler_message": self.scheduler_message,
        }

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that was stopped for a node and is started again, or a replica set that gets its VMIs back by itself.

What a run remembers of it, and how it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Outcomes, of which the first two are not final.
WAITING, STARTING = "waiting", "starting"
STARTED, WOULD_START, NOT_STARTED = "started", "would_start", "failed"


@dataclass
class Start:
    """Everything in it is JSON, so that it survives from one round of a run to the next.

    kind: of the API. node: where a VM runs. message: why it has no node, in the scheduler's words, or why it failed.
    begun_at, ended_at: seconds since the epoch, 0 if not yet.
    """

    kind: str
    namespace: str
    name: str
    outcome: str = WAITING
    node: str = ""
    message: str = ""
    begun_at: float = 0.0
    ended_at: float = 0.0
    told: str = ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def unfinished(self) -> bool:
        return self.outcome in (WAITING, STARTING)

    @property
    def seconds(self) -> int | None:
        return round(self.ended_at - self.begun_at) if self.ended_at else None

    def end(self, outcome: str, now: float, *, node: str = "", message: str = "") -> None:
        self.outcome, self.ended_at, self.node, self.message = outcome, now, node, message

    def status(self) -> str:
        """Where it stands, in a few words."""
        if self.outcome == STARTED:
            place = f" on {self.node}" if self.node else ""
            return f"started{place} in {self.seconds} s"
        return f"{self.outcome.replace('_', ' ')}{', ' if self.message else ''}{self.message}"

    def news(self) -> str | None:
        """A line on it if it stands elsewhere than when this was last asked."""
        status = self.status()
        if status == self.told or self.outcome == WAITING:
            return None
        self.told = status
        return f"{self.title}: {status}"

    def result(self) -> dict[str, Any]:
        """What a module returns of it."""
        names = ("kind", "namespace", "name", "outcome", "node", "message")
        return {**{name: getattr(self, name) for name in names}, "seconds": self.seconds}

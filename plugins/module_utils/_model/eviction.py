# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pod on its way out of a node: what a drain remembers of it, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Outcomes, of which the first two are not final.
WAITING, EVICTING = "waiting", "evicting"
EVICTED, WOULD_EVICT, NOT_EVICTED = "evicted", "would_evict", "failed"
_UNFINISHED = frozenset({WAITING, EVICTING})


@dataclass
class Eviction:
    """Everything in it is JSON, so that it survives from one round of a run to the next.

    expected_node: where its replacement will run, if that was foretold. refusal: why the server refused the last
    attempt. begun_at, asked_at, ended_at: seconds since the epoch, 0 if not yet.
    """

    namespace: str
    name: str
    uid: str
    wave: int = 1
    expected_node: str = ""
    outcome: str = WAITING
    refusal: str = ""
    begun_at: float = 0.0
    asked_at: float = 0.0
    ended_at: float = 0.0
    told: str = ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def unfinished(self) -> bool:
        return self.outcome in _UNFINISHED

    @property
    def held_back(self) -> bool:
        """Whether it waits for a disruption budget."""
        return self.outcome == WAITING and bool(self.refusal)

    @property
    def seconds(self) -> int | None:
        """From the first attempt to the end of the pod."""
        return round(self.ended_at - self.begun_at) if self.ended_at else None

    def end(self, outcome: str, now: float, reason: str = "") -> None:
        self.outcome, self.refusal, self.ended_at = outcome, reason, now

    def status(self) -> str:
        """Where it stands, in a few words."""
        if self.outcome == EVICTED:
            return f"evicted in {self.seconds} s"
        if self.held_back:
            return f"held back, {self.refusal}"
        if self.outcome == EVICTING:
            return "evicted, ending"
        return f"{self.outcome.replace('_', ' ')}{', ' if self.refusal else ''}{self.refusal}"

    def news(self) -> str | None:
        """A line on it if it stands elsewhere than when this was last asked."""
        status = self.status()
        if status == self.told or (self.outcome == WAITING and not self.refusal):
            return None
        self.told = status
        return f"pod {self.title}: {status}"

    def result(self) -> dict[str, Any]:
        """What a module returns of it."""
        names = ("namespace", "name", "outcome", "expected_node", "refusal")
        return {**{name: getattr(self, name) for name in names}, "seconds": self.seconds}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary pod on its way by eviction, tried again where a disruption budget forbids it for now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Evict
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    RETRY_AFTER,
    WAITING,
    Moment,
    Timed,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action

# Outcomes, of which WAITING and the first one are not final.
EVICTING = "evicting"
EVICTED, WOULD_EVICT, NOT_EVICTED = "evicted", "would_evict", "failed"
# It has ended without this action.
GONE = "gone"


@dataclass(frozen=True, slots=True)
class Evicting(Timed):
    """expected_node: where its replacement will run, if that was foretold. refusal: of the last attempt.

    has_acted: it was asked for, and not refused as far as is known. is_unsure: no answer tells whether that was carried
    out, nor a look as yet. is_missing: the server had no such pod at the last attempt. begun_at, asked_at, ended_at:
    seconds since the epoch, 0 if not yet.
    """

    action: str
    namespace: str
    name: str
    uid: str
    source_node: str
    expected_node: str = ""
    outcome: str = WAITING
    refusal: str = ""
    has_acted: bool = False
    is_unsure: bool = False
    is_missing: bool = False
    begun_at: float = 0.0
    asked_at: float = 0.0
    ended_at: float = 0.0

    @classmethod
    def begin(cls, action: Action) -> Evicting:
        reference = action.object
        return cls(action.id, reference.namespace, reference.name, reference.uid, action.node, action.target or "")

    def redirected(self, action: Action) -> Evicting:
        """After the plan has changed: where its replacement will run now."""
        return replace(self, expected_node=action.target or "")

    @property
    def unfinished(self) -> bool:
        return self.outcome in (WAITING, EVICTING)

    @property
    def has_failed(self) -> bool:
        return self.outcome == NOT_EVICTED

    @property
    def worth_telling(self) -> bool:
        return not self.unfinished or self.held_back

    @property
    def held_back(self) -> bool:
        """Whether it waits for a disruption budget."""
        return self.outcome == WAITING and bool(self.refusal)

    def questions(self) -> Questions:
        return Questions(pods=frozenset({self.title} if self.is_unsure and self.unfinished else ()))

    def step(self, moment: Moment) -> tuple[Evicting, Evict | None]:
        if not self.unfinished:
            return self, None
        pod = moment.look.pods.get(self.uid)
        if pod is None:
            begun = self.begun_at or moment.now
            outcome = EVICTED if self.has_acted else GONE
            return replace(self, outcome=outcome, refusal="", begun_at=begun, ended_at=moment.now), None
        if pod.ending:
            begun = self.begun_at or moment.now
            return replace(self, outcome=EVICTING, refusal="", is_unsure=False, begun_at=begun), None
        if self.asked_at and moment.now - self.asked_at < RETRY_AFTER:
            return self, None
        entry = replace(self, has_acted=False, is_unsure=False) if self.is_unsure else self
        if not moment.ready:
            return entry, None
        # The server took an eviction, and yet the pod is not ending: it is asked again.
        command = Evict(self.action, self.namespace, self.name, self.uid)
        return replace(entry, begun_at=self.begun_at or moment.now), command

    def answered(self, answer: Answer, now: float) -> Evicting:
        done = not (answer.lost or answer.refused or answer.needless)
        asked = replace(
            self,
            has_acted=self.has_acted or done or answer.lost,
            is_unsure=self._stays_unsure(done=done, lost=answer.lost),
            is_missing=answer.needless,
            asked_at=now,
        )
        if answer.lost and not answer.refused:
            return asked
        if answer.needless:
            return replace(asked, refusal="")  # the next look shows it
        if not answer.refused:
            return replace(asked, outcome=EVICTING, refusal="")
        asked = replace(asked, refusal=answer.refused)
        return asked if answer.passing else replace(asked, outcome=NOT_EVICTED, ended_at=now)

    def rehearsed(self) -> Evicting:
        return replace(self, outcome=GONE if self.is_missing else WOULD_EVICT)

    def status(self) -> str:
        if self.outcome == EVICTED:
            return f"evicted in {self.seconds} s"
        if self.outcome == GONE:
            return "gone already"
        if self.held_back:
            return f"held back, {self.refusal}"
        if self.outcome == EVICTING:
            return "evicted, ending" if self.has_acted else "ending"
        return f"{self.outcome.replace('_', ' ')}{', ' if self.refusal else ''}{self.refusal}"

    def result(self) -> JsonObject:
        names = ("namespace", "name", "outcome", "expected_node", "refusal")
        return {**{name: getattr(self, name) for name in names}, "seconds": self.seconds}

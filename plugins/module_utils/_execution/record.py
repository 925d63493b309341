# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of actions, beside which the cluster tells all the rest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action

# The outcome of what has not begun, as its first command is not given or not taken.
WAITING = "waiting"
# The outcome of what has left without this action, as by its end.
ENDED = "ended"
# Seconds after which a command that was refused for now, or that shows no effect, is given again.
RETRY_AFTER = 2.0


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """`uid`: of the migration, empty where the server refused to create it. `target`: where it was to go, if told."""

    uid: str
    reason: str
    target: str


@dataclass(frozen=True, slots=True)
class Moment:
    """What a step is taken on. `now`: seconds since the epoch that never run backwards while a task runs.

    run: label of the run on what it creates. epoch: what tells this execution from others of the same run, in names.
    ready: all that the action waits for has ended. begins: it may begin; else it is only asked whether it has. wanted:
    it is to leave, also if it is brought back, as its node is to be emptied, or others wait for that. slot: KubeVirt's
    caps leave room for a migration. retries: how often a failed migration is tried again as it is. binding: as in
    Execution. taken: uids of VMIs that are known for the successors of others. kept_since: since when one that starts
    before it keeps it waiting for nothing, 0 if none does.
    """

    look: Observation
    now: float
    run: str
    epoch: str
    ready: bool
    slot: bool
    begins: bool = True
    retries: int = 0
    binding: bool = False
    wanted: bool = True
    taken: frozenset[str] = frozenset()
    kept_since: float = 0.0

    def token(self, uid: str) -> str:
        """By which the names of what is created for an object tell the execution."""
        return hashlib.sha256(f"{self.run}\n{self.epoch}\n{uid}".encode()).hexdigest()[:8]


class Entry(Protocol):
    """One action that is carried out, immutable: each step makes another one.

    `outcome`: where it stands, in the word that a result has for it.
    """

    @property
    def action(self) -> str:
        """The action's id."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def source_node(self) -> str:
        """The node that it is to leave."""

    @property
    def outcome(self) -> str: ...

    @property
    def title(self) -> str:
        """namespace/name."""

    @property
    def unfinished(self) -> bool:
        """Whether it has not come to its end."""

    @property
    def has_failed(self) -> bool: ...

    @property
    def has_acted(self) -> bool:
        """Whether something in the cluster was changed by it, or may have been, as neither answer nor look tells."""

    @property
    def is_unsure(self) -> bool:
        """Whether no answer tells if its command was carried out, nor a look as yet."""

    @property
    def worth_telling(self) -> bool:
        """Whether its status is news for everybody, and not only a detail."""

    def redirected(self, action: Action) -> Entry:
        """The entry after the plan has changed; what is on its way goes on as it is."""

    def forgotten(self) -> Entry | None:
        """The entry after the plan has dropped it; None where nothing is under way and nothing is to be remembered."""

    def questions(self) -> Questions:
        """What has to be looked at for its next step."""

    def step(self, moment: Moment) -> tuple[Entry, Command | None]:
        """The entry after a look, and what is to be done then."""

    def answered(self, answer: Answer, now: float) -> Entry:
        """The entry after a command."""

    def rehearsed(self) -> Entry:
        """The entry after its command was put to the server without being carried out."""

    def status(self) -> str:
        """Where it stands, in a few words; empty where nothing is worth a word."""

    def result(self) -> JsonObject:
        """What a module returns of it."""


_Timed = TypeVar("_Timed", bound="Timed")


class Timed:
    """What entries have in common whose way leads from WAITING through one attempt to an end."""

    __slots__ = ()
    namespace: str
    name: str
    outcome: str
    has_acted: bool
    is_unsure: bool
    begun_at: float
    ended_at: float

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def seconds(self) -> int | None:
        """From the first command to the end."""
        return round(self.ended_at - self.begun_at) if self.ended_at else None

    def _stays_unsure(self, *, done: bool, lost: bool) -> bool:
        """Whether after an answer only answers that were lost speak for its having acted."""
        return not done and (self.is_unsure or (lost and not self.has_acted))

    def forgotten(self: _Timed) -> _Timed | None:
        return None if self.outcome == WAITING and not self.is_unsure else self

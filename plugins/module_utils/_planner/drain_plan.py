# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain would do, as values: which VM goes where and when, which cannot, and what becomes of the other pods.

Waves number from 1. What is in a wave may start together, in any order, once everything in earlier waves has ended.
Where the scheduler chooses a node, it is foretold for the order in which they are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fate import Fate
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


class Policy(Enum):
    """What is to happen to a VM that cannot be migrated."""

    FAIL = "fail"
    RESTART = "restart"
    STOP = "stop"


class Outcome(Enum):
    """What becomes of a VM that cannot be migrated.

    STAYS: it stays, and the drain fails. WAITS: what keeps it goes away by itself, so a later plan lets it migrate,
    whatever its policy. RESTARTS: it starts elsewhere. STOPS: it is off.
    """

    STAYS = "stays"
    WAITS = "waits"
    RESTARTS = "restarts"
    STOPS = "stops"


class PodOutcome(Enum):
    """What becomes of a pod without a VM.

    STAYS: a drain leaves it where it is. MOVES: its replacement lands elsewhere. WAITS: its replacement fits nowhere.
    ENDS: nothing replaces it. RETURNS: its replacement would come back to a drained node. REFUSED: no eviction of it
    is ever allowed. KEPT: nobody has allowed what its eviction needs.
    """

    STAYS = "stays"
    MOVES = "moves"
    WAITS = "waits"
    ENDS = "ends"
    RETURNS = "returns"
    REFUSED = "refused"
    KEPT = "kept"


# Of pods that have to leave, and do not.
PREVENTED = frozenset({PodOutcome.REFUSED, PodOutcome.RETURNS, PodOutcome.KEPT})


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A live migration, pinned by `node_selector`; legal when its wave comes.

    `score`: of the target among the nodes that fit, by the profile asked for. `why`: a clause on the choice.
    `unevaluated`: phrases for what its pod may need besides and was not looked at. `migration_policy`: the one by which
    it goes, empty for none. `seconds`: until its `ending`, if the guest is idle.
    """

    namespace: str
    name: str
    source_node: str
    target_node: str
    node_selector: Mapping[str, str]
    wave: int
    score: int
    why: str
    unevaluated: tuple[str, ...]
    migration_policy: str
    seconds: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class StuckMachine:
    """A VM that cannot be migrated once all moves of the plan are done.

    `reasons`: for each node, kube-scheduler's; `message`: its message for the target pod of its migration, which is
    pinned only if a target was asked for. Both are empty where `blockers` say that there would be no such pod. `wave`:
    of a restart or a stop, None if it stays or waits. `target_node`: where it starts again, the first of `choices`
    where these are equally good for the scheduler; None if it does not. `why`: what its policy makes of it, a sentence.
    """

    namespace: str
    name: str
    node: str
    policy: Policy
    outcome: Outcome
    wave: int | None
    target_node: str | None
    choices: tuple[str, ...]
    message: str
    reasons: Mapping[str, tuple[str, ...]]
    blockers: tuple[Blocker, ...]
    why: str


@dataclass(frozen=True, slots=True)
class PodFate:
    """An ordinary pod of a drained node.

    `target_node`: where its replacement will land, the first of `choices` where these are equally good for the
    scheduler. `message`: the scheduler's, if it fits nowhere. `needs`: what has to be allowed for its eviction, by
    the names that kubectl has for it (`force`, `delete_emptydir_data`). `budgets`: names of the disruption budgets
    that allow no eviction of it now.
    """

    namespace: str
    name: str
    node: str
    outcome: PodOutcome
    wave: int | None
    target_node: str | None
    choices: tuple[str, ...]
    message: str
    needs: tuple[str, ...]
    budgets: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class MachineFates:
    """What becomes of a VM by events that nobody has planned: a drain, an eviction, the loss of its node."""

    namespace: str
    name: str
    node: str
    drain: Fate
    eviction: Fate
    node_failure: Fate


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """`feasible`: all VMs and pods leave, or follow their policy. `message`: the plan in a sentence or two.

    `passing`: it is not feasible now, and all that stands against it goes away by itself. `moves`, `stuck` and `pods`
    are in the order of their waves, and the last two as planned within a wave. `seconds`: what the moves take with idle
    guests, beside the migrations in the `queue`; None if KubeVirt's caps let one never start. `queue`: namespace/name
    of VMIs that are migrated already, `running` and `waiting`. `fates`: what becomes of the VMs without the plan.
    """

    nodes: tuple[str, ...]
    feasible: bool
    passing: bool
    message: str
    moves: tuple[PlannedMove, ...]
    stuck: tuple[StuckMachine, ...]
    pods: tuple[PodFate, ...]
    seconds: int | None
    queue: Mapping[str, tuple[str, ...]]
    fates: tuple[MachineFates, ...]

    @property
    def refused(self) -> frozenset[str]:
        """Pods of which no eviction is ever allowed, as namespace/name."""
        return frozenset(f"{pod.namespace}/{pod.name}" for pod in self.pods if pod.outcome is PodOutcome.REFUSED)

    def to_json(self) -> JsonObject:
        """Plain data: lists, dictionaries, texts, numbers."""
        plain: JsonObject = _plain(self)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, (Blocker, Fate)):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value

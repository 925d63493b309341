# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan: which actions empty nodes, maintain them and bring everything back, and what each has to wait for.

An action may begin when all that it names in `after` have ended. Nothing else orders actions: neither their place in
the plan nor KubeVirt's caps, which whoever carries the plan out has to keep. For another START a START has ended when
its VM has a node, or does not get one, for whatever reason or within half a minute, so that nobody stays off for
another's sake. It waits for those of its own node alone, as another one may not be back.

Among those who leave `after` has the fewest for which an action is legal whatever the others do meanwhile, without what
these wait for themselves. There are three exceptions. Harm comes last: who is stopped, restarted, or evicted without a
node for what replaces it waits for all that leave unharmed. Who is spread or needs company depends on where others are,
of which not more than a few are looked at in all their moments; of the others it waits for some that it need not. And
there is room for a VM even if all evicted pods come to its node that may.

All the rest is named even where it follows from others: the cordons by who leaves, what leaves a node by MAINTAIN, and
by START what leaves the other ones; by CORDON of a later batch all that gives back the nodes of the one before. An
action drops out of a plan when it is over or not needed any more, as when a VM has gone by itself, and what was only
waited for by way of it would not be waited for any more. What leaves is not kept so, as a plan is mended then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import REFUSED

if TYPE_CHECKING:  # what a snapshot imports is spared whoever has only a plan
    from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Header

# In the names and uids of what a plan foretells; no object's has it.
FORETOLD = "/"
# What the API server adds to the name that a replica set gives to its VMIs, as in SimpleNameGenerator of
# k8s.io/apiserver/pkg/storage/names/generate.go; the letters are those of k8s.io/apimachinery/pkg/util/rand.
_MADE_UP = re.compile(r"(?<=.)[bcdfghjklmnpqrstvwxz2456789]{5}\Z")

# Parts, in the sentence on a restart or stop, what happens from why there is no migration.
CAUSE = " Why: "
# Parts, in the sentence on a migration of a mended plan, why this node from why it is not the one that was planned.
_ANEW = " Planned anew instead of {}, as "
# Of an obstacle: the id of the one that only room would clear, and the option that has rules for VMs.
NO_ROOM, POLICIES = "no-node", "policies"
# The id of the one of a VM that is to restart as soon as others have made, or give back, room for it.
RESTARTS_LATER = "room-to-restart"
# The id of the one that keeps nodes from being taken at all, as too little would be left in reserve.
NO_RESERVE = "no-reserve"
# What is known of the number of migrations: it is the least, or nothing is proved.
PROOFS = ("optimal", "none")


class ActionKind(Enum):
    """What is done to an object.

    MIGRATE: a VMI goes to `target` by live migration. EVICT: an ordinary pod goes; `target` is where its replacement
    will land. RESTART: a VMI is ended and starts again on `target`. STOP: a VMI is ended until START, when its node is
    back. CORDON, MAINTAIN, UNCORDON: of a node; what MAINTAIN means is the user's.
    """

    CORDON = "cordon"
    MIGRATE = "migrate"
    EVICT = "evict"
    RESTART = "restart"
    STOP = "stop"
    MAINTAIN = "maintain"
    UNCORDON = "uncordon"
    START = "start"


class Verdict(Enum):
    """FEASIBLE: nothing lasting stands against the plan. PARTIAL: some of its batches can be done. INFEASIBLE: none."""

    FEASIBLE = "feasible"
    PARTIAL = "partial"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """An object of the cluster. `namespace`: empty for a node. `uid`: empty for what the plan itself brings about."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def title(self) -> str:
        """namespace/name, or the name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Action:
    """One step. `id`: the same for the same step in every plan of a run; a task that does what it is told has its own.

    batch: its number, from 1. node: the one that is maintained by it, or in a plan without batches left. source,
    target: `from` and `to` in the document, None for nowhere or not known; who makes room for others leaves another
    node than that. selector: the labels by which a migration is pinned to its target. after: ids of actions that have
    to end before. seconds: expected, None if nothing tells. why: a sentence. assumed: phrases for what was taken for
    granted.
    """

    id: str
    kind: ActionKind
    batch: int
    node: str
    object: ObjectReference
    source: str | None = None
    target: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    seconds: int | None = None
    why: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def makes_room(self) -> bool:
        """Whether it is a migration for the sake of others, which need the place on a node that stays in service."""
        return self.kind is ActionKind.MIGRATE and self.source != self.node

    @property
    def cause(self) -> str:
        """Why something is restarted or stopped and not migrated, a clause."""
        return self.why.rpartition(CAUSE)[2].rstrip(".")

    def instead_of(self, node: str, objection: str) -> Action:
        """The same of a mended plan, as it was to go to a node. objection: a clause."""
        return replace(self, why=f"{self.why}{_ANEW.format(node)}{objection.rstrip('.')}.")

    def objection_to(self, node: str) -> str:
        """Why it does not go to a node to which it was to go, a clause; empty if nobody has told."""
        return self.why.partition(_ANEW.format(node))[2].rstrip(".")

    @property
    def is_refused(self) -> bool:
        """Whether it is restarted or stopped because KubeVirt itself says that it cannot be migrated."""
        return self.cause.startswith(REFUSED)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What many may have in common that cannot leave.

    id: stable, of lower-case words. problem, advice: clauses that name none of them; the advice may be empty.
    cleared_by: the options of a plan that would let it go, of `policies`, `force` and `delete_emptydir_data`.
    """

    id: str = ""
    problem: str = ""
    advice: str = ""
    cleared_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """What should leave a node and cannot, with the reasons. `passing`: that changes by itself; wait for it.

    A node itself, if it cannot be out of service.
    """

    object: ObjectReference
    node: str
    reasons: tuple[str, ...]
    passing: bool = False
    obstacle: Obstacle = field(default_factory=Obstacle)


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The cluster that a plan is for: `uid` of its namespace kube-system, empty if not known, and its versions."""

    uid: str
    kubernetes: str
    kubevirt: str

    @classmethod
    def of(cls, header: Header | None) -> PlannedCluster:
        """Of a snapshot, which has no header if it is of the plain form."""
        if header is None:
            return cls("", "", "")
        return cls(header.cluster.uid, header.cluster.kubernetes_version, header.cluster.kubevirt_version)


@dataclass(frozen=True, slots=True)
class PlannedFrom:
    """The snapshot that a plan was made from: the hash of its content, and when it was taken (RFC 3339).

    Of what a task does of itself, a snapshot of what it is about.
    """

    sha256: str
    taken: str

    @classmethod
    def of(cls, header: Header | None) -> PlannedFrom:
        """Of a snapshot, which has no header if it is of the plain form."""
        return cls("", "") if header is None else cls(header.sha256, header.taken_at)


@dataclass(frozen=True, slots=True)
class Totals:
    """`seconds`: of all migrations under KubeVirt's caps, with idle guests; None if they never start, or nothing tells.

    batch_seconds: the same of each batch, empty if nobody has reckoned them one by one. batch_reserves: bytes of memory
    that are free while a batch is away and the node with most to take over has failed, too, or the zone, with its VMs
    running elsewhere; negative if they do not all, None if no node is left. lower_bound: of migrations,
    which no plan can go below; None if none is known. proof: one of `PROOFS`; `optimal` if the plan reaches it.
    """

    migrations: int = 0
    evictions: int = 0
    stops: int = 0
    restarts: int = 0
    seconds: int | None = 0
    batch_seconds: tuple[int | None, ...] = ()
    batch_reserves: tuple[int | None, ...] = ()
    lower_bound: int | None = None
    proof: str = "none"


@dataclass(frozen=True, slots=True)
class Plan:
    """`run`: its name, empty outside a run. `batches`: nodes that are out of service together, in their order.

    Without batches no node is maintained: things move, or start, and their actions are of batch 1.
    options: what the plan was asked for, JSON, so that it can be made again.
    """

    run: str
    cluster: PlannedCluster
    snapshot: PlannedFrom
    options: Mapping[str, Any]
    verdict: Verdict
    batches: tuple[tuple[str, ...], ...]
    actions: tuple[Action, ...]
    blocked: tuple[Blocked, ...] = ()
    totals: Totals = field(default_factory=Totals)

    def of_node(self, name: str) -> tuple[Action, ...]:
        """The actions by which a node is maintained."""
        return tuple(action for action in self.actions if action.node == name)

    def batch_of(self, node: str) -> int | None:
        """The number of a node's batch, from 1; None if the plan does not maintain it."""
        return next((number for number, nodes in enumerate(self.batches, start=1) if node in nodes), None)


def plan_of(actions: Iterable[Action]) -> Plan:
    """What a task does of itself: in no run, and no batch; what it was made from is for others to say."""
    found = tuple(actions)
    kinds = Counter(action.kind for action in found)
    return Plan(
        run="",
        cluster=PlannedCluster.of(None),
        snapshot=PlannedFrom.of(None),
        options={},
        verdict=Verdict.FEASIBLE,
        batches=(),
        actions=found,
        totals=Totals(
            migrations=kinds[ActionKind.MIGRATE],
            evictions=kinds[ActionKind.EVICT],
            stops=kinds[ActionKind.STOP],
            restarts=kinds[ActionKind.RESTART],
            seconds=None if kinds[ActionKind.MIGRATE] else 0,
        ),
    )


def action_id(batch: int, kind: ActionKind, reference: ObjectReference) -> str:
    """As in `2.migrate.shop/web-1`. Within a batch nothing is done twice to an object in the same way."""
    return f"{batch}.{kind.value}.{reference.title}"


def is_foretold(action: Action) -> bool:
    """Whether it is about a pod or VMI that the plan itself brings about, of which only the kin is sure.

    A VMI has its predecessor's name in the plan, and also in the cluster if a VM owns it.
    """
    reference = action.object
    pod = action.kind is ActionKind.EVICT and FORETOLD in reference.name
    return not reference.uid and (pod or reference.kind == "VirtualMachineInstance")


def kin(reference: ObjectReference) -> str:
    """What those of one owner have in common in their names; of a foretold one, the name of its predecessor tells.

    A VMI whose name does not end as a replica set's do has the name of its VM, which no other one shares. A VM may have
    a name that ends so: who knows the owner, or has found one of that very name, has to go by that first.
    """
    if reference.kind == "VirtualMachineInstance":
        # Of a replica set's VMIs it is no name that a VM could have.
        return _MADE_UP.sub(FORETOLD, reference.name)
    return reference.name.split(FORETOLD, maxsplit=1)[0].rpartition("-")[0]

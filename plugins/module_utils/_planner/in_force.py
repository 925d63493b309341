# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan that a run goes by: kept as a document from one start to the next, mended on the way, and gone on by."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import KEPT, find_mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import OPTIONS_IN_WORDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import (
    PlanError,
    from_json,
    sha256,
    to_json,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import has_left, left
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import closed, followed, in_order
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run, totals, verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

# Under this name a run remembers it.
PLAN_DOCUMENT = "plan"
IN_FORCE_SCHEMA = "virtops.kubevirt/plan-in-force/1"


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """`origin`: the hash of the plan as it was made or approved; `plan` may have been mended since."""

    plan: Plan
    origin: str

    @classmethod
    def new(cls, plan: Plan) -> PlanInForce:
        return cls(plan, sha256(plan))

    @classmethod
    def decoded(cls, content: bytes) -> PlanInForce:
        """Raises PlanError."""
        try:
            given = json.loads(content)
            schema, origin, plan = (given[name] for name in ("schema", "origin", "plan"))
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise PlanError(f"This is no plan in force ({error!r}).") from error
        if schema != IN_FORCE_SCHEMA:
            raise PlanError(
                f"The plan in force has schema {schema!r}, but this release reads {IN_FORCE_SCHEMA!r} only."
            )
        found = from_json(plan)
        try:
            PlanOptions.of(found.options)
        except InvalidRequest as error:
            raise PlanError(str(error)) from error
        return cls(found, str(origin))

    def encoded(self) -> bytes:
        document = {"schema": IN_FORCE_SCHEMA, "origin": self.origin, "plan": to_json(self.plan)}
        return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is wanted for. `batches`: of nodes that are not done, one node in each if the options cut them."""

    batches: Sequence[Sequence[str]]
    options: PlanOptions
    cluster: str

    def made(self, snapshot: Snapshot, run: str) -> Plan:
        """A new plan. Nodes that the run has taken come first. Raises as `plan_run` does."""
        if self.options.batching is None:
            return plan_run(snapshot, run, self.batches, self.options)
        nodes = _flat(self.batches)
        return plan_whole_run(snapshot, run, nodes, self.options, begun=_taken(run, nodes, snapshot))

    def differs(self, plan: Plan, snapshot: Snapshot, done: Collection[str]) -> str:
        """Why a plan is not one for the same, a clause; empty if it is. done: nodes that are maintained."""
        if plan.cluster.uid != self.cluster or not self.cluster:
            return "it is for another cluster"
        rest = [nodes for batch in plan.batches if (nodes := [name for name in batch if name not in done])]
        batching, names = self.options.batching, _flat(self.batches)
        if sorted(_flat(rest)) != sorted(names):
            return "it is for other nodes"
        # Taken ones come first in a plan that was made since.
        begun = {*done, *_taken(plan.run, names, snapshot)}
        if (batching is None or not batching.reorders) and not _follows(plan.batches, names, begun):
            return "its nodes are in another order"
        if batching is None and rest != [list(batch) for batch in self.batches]:
            return "its batches are others"
        was, wanted = PlanOptions.of(plan.options).to_json(), self.options.to_json()
        if batching is None:
            was["batching"] = None  # they are the same, however they came about
        other = [OPTIONS_IN_WORDS.get(name, name) for name in wanted if was[name] != wanted[name]]
        return f"it was asked for with other {', '.join(other)}" if other else ""


def has_begun(plan: Plan, snapshot: Snapshot, done: Collection[str]) -> bool:
    """Whether its run has done something by it: a node is done, or was taken."""
    nodes = _flat(plan.batches)
    return any(name in done for name in nodes) or bool(_taken(plan.run, nodes, snapshot))


def what_is_left(plan: Plan, snapshot: Snapshot, done: Collection[str]) -> Plan:
    """The plan without what has left by it already, in the batch that it is at, and others that it has begun.

    A run whose nodes may fail begins a batch while one before is not done. Of what is stopped or restarted it stays, as
    nothing tells it from a VM that somebody else has ended.
    """
    places = _places(snapshot)
    taken = set(_taken(plan.run, _flat(plan.batches), snapshot))
    unfinished = [number for number, batch in enumerate(plan.batches, 1) if not set(batch) <= set(done)]
    begun = {number for number in unfinished if not taken.isdisjoint(plan.batches[number - 1])} | {*unfinished[:1]}
    gone, staying = set[str](), set[str]()
    for action in plan.actions:
        if action.kind in (ActionKind.MIGRATE, ActionKind.EVICT) and (uid := action.object.uid):
            if action.batch in begun and uid not in staying and has_left(action, places):
                gone.add(action.id)
            elif action.batch in unfinished and action.node not in done:
                staying.add(uid)  # who is yet to come to a node has not left that one
    return left(plan, frozenset(gone))


def with_node(plan: Plan, mended: Plan, node: str) -> Plan:
    """The plan, with what is about one node taken from another that a drain of that node has mended.

    Several drains of a batch may mend at the same time. Should their actions wait for each other, it stays as it is.
    """
    number = plan.batch_of(node)
    if number is None or plan.batches != mended.batches:
        return plan
    before = [action for action in plan.actions if action.batch == number]
    both = _by_id(action for action in before if action.node != node) | _by_id(mended.of_node(node))
    actions = list(in_order(closed(both, [node]), [action.id for action in before]))
    if len(actions) < len(both):
        return plan
    earlier = [action for action in plan.actions if action.batch < number]
    later = [action for action in plan.actions if action.batch > number]
    everything = (*earlier, *actions, *followed(later, before, actions))
    # What stands against the node now may be gone when somebody goes on; that is looked at anew then.
    blocked = tuple(entry for entry in plan.blocked if entry.node != node)
    return replace(
        plan,
        actions=everything,
        blocked=blocked,
        verdict=verdict(plan.batches, blocked),
        totals=replace(
            totals(everything, plan.totals.batch_seconds, plan.totals.batch_reserves), seconds=plan.totals.seconds
        ),
    )


def mended(content: bytes | None, plan: Plan, node: str) -> bytes | None:
    """The document of the plan in force, as it is kept, with what is about a node taken from another plan.

    None if there is none, or nothing that can be read.
    """
    try:
        kept = PlanInForce.decoded(content) if content is not None else None
    except PlanError:
        return None
    return replace(kept, plan=with_node(kept.plan, plan, node)).encoded() if kept else None


def _places(snapshot: Snapshot) -> dict[str, str]:
    """The node of each VMI and pod, by uid."""
    vmis = ((vmi["metadata"], (vmi.get("status") or {}).get("nodeName")) for vmi in snapshot.lists["vmis"])
    pods = ((pod["metadata"], pod["spec"].get("nodeName")) for pod in snapshot.lists["pods"])
    return {str(metadata.get("uid")): str(node or "") for metadata, node in (*vmis, *pods)}


def _taken(run: str, names: Collection[str], snapshot: Snapshot) -> list[str]:
    """Those of the nodes that carry the mark of a run, also where somebody else had cordoned them before."""
    there = ((name, snapshot.nodes[name]) for name in names if name in snapshot.nodes)
    marks = {name: (find_mark(node), find_mark(node, KEPT)) for name, node in there}
    return [name for name, both in marks.items() if any(mark and mark.owner == run for mark in both)]


def _follows(batches: Sequence[Sequence[str]], names: Sequence[str], begun: Collection[str]) -> bool:
    """Whether each batch of which no node has begun begins with the first node that is left then.

    Of its others nothing is asked, as who may not join a batch comes later.
    """
    gone, position = set(begun), 0
    for batch in batches:
        if gone.isdisjoint(batch):
            while names[position] in gone:
                position += 1
            if batch[0] != names[position]:
                return False
        gone.update(batch)
    return True


def _by_id(actions: Iterable[Action]) -> dict[str, Action]:
    return {action.id: action for action in actions}


def _flat(batches: Sequence[Sequence[str]]) -> list[str]:
    return [name for batch in batches for name in batch]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan by which node_drain empties a node: its own, or the one that was given, mended where it is not right.

Planning needs numpy and the whole scheduler, which a drain that goes as planned is not to pay for: this file is
imported only when something has to be planned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_cordoned, nodes_done
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import tolerates_cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    ActionKind,
    Plan,
    is_foretold,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import (
    for_node,
    leaving,
    left,
    of_batch,
    passed_over,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.foretold import identified
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

_PAGE_SIZE = 500
DRIFTED = "PlanDrifted"


def own_plan(client: Client, params: Mapping[str, Any]) -> Plan:
    """A plan for this node alone. Raises Failure, InvalidRequest."""
    snapshot, name = fresh_snapshot(client), params["name"]
    with explained(f"plan the drain of node {name}"):
        options = PlanOptions(
            policies=drain_arguments.policies(params),
            avoid=tuple(params["avoid"]),
            allowed=drain_arguments.allowed(params),
        )
        return of_batch(plan_run(snapshot, "", [[name]], options), name)


def held_against(
    client: Client, given: Plan, name: str, snapshot: Snapshot, *, may_differ: bool
) -> tuple[Plan, list[str]]:
    """The batch of a node in a plan as it is right now, and what differs for the node. Raises Failure, InvalidRequest.

    The whole batch is mended, so that tasks of several of its nodes come to the same from the same snapshot, and if
    nothing may differ all of it has to be right. Its nodes that the run is done with are in use again, and nothing more
    happens to them.
    """
    done = nodes_done(snapshot.lists["nodes"], given.run) - {name}
    batch = of_batch(given, name)
    ended = _of_nodes(batch, done)
    with explained(f"plan the drain of node {name}"):
        mended = of_batch(repair(batch, snapshot, ended=ended), name)
    # Who has come from a node that is done to one that is not leaves that by an action of the same id.
    mended = left(mended, _of_nodes(mended, done))
    before = _but_evicted(left(batch, ended), mended, nodes_cordoned(snapshot.lists["nodes"]))
    if not may_differ:
        _require_same(client, name, differences(before, mended))
    return mended, differences(leaving(before, name), leaving(mended, name))


def _of_nodes(plan: Plan, nodes: Collection[str]) -> frozenset[str]:
    """Ids of actions."""
    return frozenset(action.id for action in plan.actions if action.node in nodes)


def missed(given: Plan, name: str, snapshot: Snapshot) -> frozenset[str]:
    """Ids of the evictions for a node's sake whose pods were not there when it was taken.

    Others ended them, or no replacement came to the node. None once the node is cordoned, as since then a drain may
    have evicted them, also one of another node of the batch.
    """
    number = given.batch_of(name)
    if number is None or name not in snapshot.nodes or name in nodes_cordoned(snapshot.lists["nodes"]):
        return frozenset()
    here = snapshot.pods_by_node.get(name, ())
    uids = {pod["metadata"]["uid"] for pod in here}
    # Who was only foretold and is found has its own id then.
    actions = identified(given, number, here, ()).of_node(name)
    return frozenset(
        action.id for action in actions if action.kind is ActionKind.EVICT and action.object.uid not in uids
    )


def _but_evicted(before: Plan, after: Plan, cordoned: Collection[str]) -> Plan:
    """The first plan without evictions that have come about: their pods left after their nodes had been cordoned."""
    there = {action.id for action in after.actions}
    evicted = (
        action.id
        for action in before.actions
        if action.kind is ActionKind.EVICT
        and action.node in cordoned
        and action.id not in there
        and not is_foretold(action)
    )
    return passed_over(before, frozenset(evicted))


def mended_plan(
    snapshot: Snapshot,
    plan: Plan,
    name: str,
    failures: Mapping[str, Sequence[str]],
    hopeless: Collection[str],
    ended: Collection[str],
    replaced: Collection[str],
    first: Collection[str] | None,
) -> Plan:
    """What is left of a plan, mended by a fresh look at the whole cluster. Raises InvalidRequest.

    first: uids of the pods that the drain has found on the node at first. One that has come since, as it tolerates the
    cordon, stays, also if it may not be evicted: it would come again each time. None if it has not looked: none does.
    """
    with explained(f"plan the drain of node {name}"):
        mended = repair(plan, snapshot, node=name, failures=failures, hopeless=hopeless, ended=ended, replaced=replaced)
    pods = snapshot.pods_by_node.get(name, ()) if first is not None else ()
    new = {pod["metadata"]["uid"] for pod in pods if tolerates_cordon(pod)}.difference(first or ())
    staying = [action.id for action in mended.of_node(name) if action.object.uid in new]
    found = passed_over(of_batch(mended, name), staying)
    return replace(found, blocked=tuple(entry for entry in found.blocked if entry.object.uid not in new))


def require_as_planned(client: Client, before: Plan, after: Plan, name: str) -> None:
    """See that a plan of which a drain has begun is still the same for its node, and for all that this waits for.

    Raises Failure.
    """
    now, nodes = for_node(after, name), {action.node for action in for_node(before, name).actions}
    was = for_node(_but_evicted(before, after, nodes), name)
    _require_same(client, name, differences(was, now))


def _require_same(client: Client, name: str, changes: Sequence[str]) -> None:
    """Raises Failure for changes to a plan that must not have any."""
    if changes:
        raise Failure(
            f"drain node {name} by the plan",
            client.server,
            f"the cluster has changed since it was made: {listed(changes)}",
            "Plan and approve anew, or set drift to repair.",
            reason=DRIFTED,
            details={"problems": list(changes)},
        )


def fresh_snapshot(client: Client) -> Snapshot:
    """Raises Failure."""
    document = take(client, _PAGE_SIZE)
    return document.decoded(*document.lists)

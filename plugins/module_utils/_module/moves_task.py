# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan by which things only move, and tell what came of it."""

from __future__ import annotations

from collections import defaultdict

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.landings import closed_nodes
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import read_prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import MovesRun, request_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import require_cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import Landings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import EVICTED, GONE, Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (
    eviction_task,
    migration_results,
    migration_task,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect, connect_for
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan

# The option that a plan of rebalance_plan has. Who evicts pods by a plan of his own has his reasons.
_MAX_MOVES = "max_moves"
_MOVED_BEFORE = "What had moved before stays where it is, and what waits for these was not started: plan anew."


def connect_to_move(module: Module, plan: Plan) -> Client:
    """As long as all of it may take: `wait_timeout` for each end, of which an eviction has two. Raises Failure."""
    if module.check_mode:
        return connect(module)
    return connect_for(module, 2.0 * len(plan.actions) * module.params["wait_timeout"])


def carry_out(module: Module, client: Client, plan: Plan, may: May) -> JsonObject:
    """Raises Failure, InvalidRequest, and Incomplete unless all has come about, or would.

    may: asked before anything is moved.
    """
    if plan.cluster.uid:
        require_cluster(client, plan.cluster.uid)
    requests = [request_of(action) for action in plan.actions if action.kind is ActionKind.MIGRATE]
    # Before anything moves, also of what comes last.
    prospects = read_prospects(client, requests)
    migration_rules.check(prospects)
    patience = module.params["wait_timeout"]
    spares_last = _MAX_MOVES in plan.options
    going = migration_task.begin(module, client, plan.actions, prospects, may, patience, spares_last=spares_last)
    going.carry_out(patience, dry_run=module.check_mode)
    values = _result(module, client, plan, going)
    if error := _error(module, going, is_changed=values["changed"]):
        if isinstance(error, InvalidRequest) and not values["changed"]:
            raise error
        raise Incomplete(error, values)
    return values


def _error(module: Module, going: MovesRun, *, is_changed: bool) -> Failure | InvalidRequest | None:
    """All that has gone wrong; None if nothing has."""
    # In check mode others would have moved.
    is_changed = is_changed and not module.check_mode
    found = [eviction_task.failed(module, going), migration_results.failed(module, going)]
    failures = [failure for failure in found if failure is not None]
    if going.trouble is not None and not (failures or going.is_over):
        failures = [going.trouble]
    anew = _MOVED_BEFORE if is_changed else "Nothing was moved: plan anew."
    if going.refused and not failures:
        return InvalidRequest("carry out the plan", going.refused, anew)
    if not going.refused and len(failures) < 2:
        return next(iter(failures), None)
    first, remedies = failures[0], [failure.remedy for failure in failures]
    told = [failure.details.get("problems", [failure.message]) for failure in failures]
    return Failure(
        "carry out the plan",
        going.means.verbs.server,
        "; ".join([*(failure.message.rstrip(".") for failure in failures), *filter(None, [listed(going.refused)])]),
        " ".join(dict.fromkeys([*remedies, anew] if going.refused else remedies)),
        status=first.status,
        reason=first.reason,
        details={"problems": [*(problem for problems in told for problem in problems), *going.refused]},
    )


def _result(module: Module, client: Client, plan: Plan, going: MovesRun) -> JsonObject:
    evicted, migrated = eviction_task.evicted(module, going), migration_results.migrated(module, going)
    values = {**migrated, **evicted, "changed": evicted["changed"] or migrated["changed"]}
    values["deviations"] = _astray(client, going)
    if module._diff:
        values["diff"] = {when: evicted["diff"][when] + migrated["diff"][when] for when in ("before", "after")}
    if module.params["document"]:
        values["document"] = to_json(plan)
    return values


def _astray(client: Client, going: MovesRun) -> list[JsonObject]:
    """Of the pods that have gone, those in whose place none has come up where that was foretold."""
    gone = {entry.action: entry.uid for entry in going.of(Evicting) if entry.outcome in (EVICTED, GONE)}
    gone |= {name: name for name in going.gone if name in going.instead}
    evicted = [(action, gone[action.id]) for action in going.moves.actions if action.id in gone and action.target]
    controllers = {gone[name]: item.controller for name, item in going.instead.items() if name in gone}
    came = defaultdict[str, list[str]](list)  # those of a controller may have had several turns
    for item in going.replacements:
        came[item.controller] += [pod["node"] for pod in item.pods]
    unmet = {action.target or "" for action, _uid in evicted}.difference(*came.values())
    found = Landings(controllers, came, closed_nodes(client, unmet)).astray(evicted)
    return [deviation.to_json() for _action, deviation in found]

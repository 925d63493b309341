# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrate VMIs to where a task wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import (
    read_prospects,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import now, read_header
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import Moves, MovesRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard, migration_results
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, PlannedCluster, PlannedFrom
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.requests import action_of, plan_requests


def migrate(
    module: Module, client: Client, deadline: Deadline, requests: Iterable[MigrationRequest], may: May
) -> JsonObject:
    """Raises Failure, InvalidRequest, and Incomplete unless all that was waited for has arrived.

    may: asked before anything is moved.
    """
    taken, prospects = now(), read_prospects(client, requests)
    migration_rules.check(prospects)
    vmis = [prospect.vmi for prospect in prospects if prospect.vmi is not None]
    # Read before anything moves, as what has been done is told even if nothing can be read any more.
    source = read_header(client, {"vmis": vmis}, taken) if module.params["document"] else None
    going = begin(module, client, list(map(action_of, prospects)), prospects, may)
    going.carry_out(deadline.left if module.params["wait"] else None, dry_run=module.check_mode)
    values = migration_results.migrated(module, going)
    if source is not None:
        plan = replace(going.plan, cluster=PlannedCluster.of(source), snapshot=PlannedFrom.of(source))
        values["document"] = guard.document(plan, module.params)
    if failure := migration_results.failed(module, going):
        raise Incomplete(failure, values)
    return values


def begin(
    module: Module,
    client: Client,
    actions: Sequence[Action],
    prospects: Sequence[Prospect],
    may: May,
    patience: float | None = None,
    *,
    spares_last: bool = False,
) -> MovesRun:
    """Nothing has moved yet. Raises Failure, InvalidRequest.

    prospects: of all VMIs among the actions, which can be migrated. patience, spares_last: as of Moves.
    """
    params, name = module.params, plan_requests(prospects).run
    # What is a run's carries its name, so that whoever gives the run up finds it. Attempts are named by the plan's.
    settings = VerbSettings(
        run=params["run"] or name,
        unschedulable_timeout=params["unschedulable_timeout"],
        dry_run=module.check_mode,
    )
    moves = Moves(actions, migration_rules.check, name, params["retries"], patience, spares_last)
    return MovesRun.begin(client, moves, prospects, settings, Progress.of(params), may)

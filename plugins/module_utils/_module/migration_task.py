# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrate VMIs to where a task wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import (
    MigrationLooks,
    read_prospects,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import (
    Deadline,
    Means,
    PlanRun,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import (
    Verbs,
    VerbSettings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import ALREADY_THERE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import migration_results
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.requests import action_of, plan_requests


def migrate(
    module: Module, client: Client, deadline: Deadline, requests: Iterable[MigrationRequest], may: May
) -> dict[str, Any]:
    """Raises Failure, InvalidRequest, and Incomplete unless all that was waited for has arrived.

    may: asked before anything is moved.
    """
    prospects = read_prospects(client, requests)
    migration_rules.check(prospects)
    going = _going(module, client, prospects, may)
    if module.check_mode:
        going.rehearse()
        return migration_results.migrated(module, going, prospects)
    try:
        if module.params["wait"]:
            going.run(deadline.left)
        else:
            going.start()
    except Failure as error:
        if not going.record.has_acted:
            raise
        going.trouble = error
    return migration_results.migrated(module, going, prospects)


def _going(module: Module, client: Client, prospects: Sequence[Prospect], may: May) -> PlanRun:
    params, plan = module.params, plan_requests(prospects)
    timeout = params["unschedulable_timeout"]
    # What is a run's carries its name, so that whoever gives the run up finds it. Attempts are named by the plan's.
    label = params["run"] or plan.run
    settings = VerbSettings(run=label, unschedulable_timeout=timeout, dry_run=module.check_mode)
    moving = [prospect for prospect in prospects if prospect.is_moving]
    means = Means(
        looks=MigrationLooks(client, label, moving or prospects, timeout),
        verbs=Verbs(client, settings),
        guard=lambda _nodes: may(),
        teller=Progress.of(params),
    )
    execution = Execution(node="", run=plan.run, retries=params["retries"], binding=True)
    return PlanRun(means, execution, plan, Record({entry.action: entry for entry in map(_entry, prospects)}))


def _entry(prospect: Prospect) -> Migrating:
    """Where a VMI stands before anything is done."""
    entry = Migrating.begin(action_of(prospect))
    if prospect.in_flight is not None:
        return entry.following(prospect.in_flight)
    return replace(entry, outcome=ALREADY_THERE) if prospect.fulfilled else entry

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that was made and approved before, and whether it is one for this run and cluster."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import plan_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_done
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.plan_request import ATTEMPT, options_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import (
    NEEDS,
    BatchRules,
    PlanOptions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import some

_ANEW = "Make a plan anew and have it approved."


def approved_plan(
    params: Mapping[str, Any], given: Collection[str], snapshot: Snapshot, away: Collection[str] = ()
) -> Plan:
    """The plan of a file, if it is for this run and cluster, and agrees with all else that is asked for.

    given: names of the options that are given, also as by default. away: nodes that it may maintain though the cluster
    does not have them. Raises InvalidRequest, PlanError, Failure.
    """
    path = Path(params["plan"])
    plan = plan_file.load_plan(path)
    if params["sha256"]:
        plan_file.require_same(path, plan, params["sha256"])
    problems = list(_mismatches(plan, params["run"], snapshot, away))
    if problems:
        raise InvalidRequest(f"carry out the plan {path}", problems, _ANEW)
    _require_agreement(params, given, plan, nodes_done(snapshot.lists["nodes"], plan.run))
    return plan


def _require_agreement(params: Mapping[str, Any], given: Collection[str], plan: Plan, done: Collection[str]) -> None:
    """See that options that say what a plan is asked for say what this one has. Raises InvalidRequest.

    Nodes that are named beside it have to be its own. An option that is given counts with all of its suboptions.
    done: nodes of the run that are maintained, of which the plan may have been made without some.
    """
    with explained(ATTEMPT):
        nodes = len({*done, *chain.from_iterable(plan.batches)})
        asked, has = _named(options_of(params, nodes)), _named(PlanOptions.of(plan.options))
    problems = [
        f"{params['option_prefix']}{name} is {_brief(value)}, and the plan has {_brief(has[name])}"
        for name, value in asked.items()
        if name.partition(".")[0] in given and value != has[name]
    ]
    if params["nodes"] is not None:
        problems += _other_nodes(f"{params['option_prefix']}nodes", params["nodes"], plan)
    if problems:
        remedy = "Leave them out, as the plan has its own, or make a plan anew and have it approved."
        raise InvalidRequest(f"carry out the plan {params['plan']}", problems, remedy)


def _named(options: PlanOptions) -> JsonObject:
    """By the names that the options of a task have. Batches that were given themselves have no size, and no rules."""
    found = options.to_json()
    allowed, batching = (
        found.pop("allowed"),
        found.pop("batching") or {**BatchRules(free=False).to_json(), "size": None},
    )
    found |= {need: need in allowed for need in NEEDS}
    found |= {"batch": batching["size"], "order": batching["order"]}
    return found | {f"batch_constraints.{name}": batching[name] for name in ("apart", "together", "first", "last")}


def _other_nodes(option: str, named: Collection[str], plan: Plan) -> Iterator[str]:
    """What differs, whatever the order. The option of a role has hosts, and groups of them, for its nodes."""
    planned = list(chain.from_iterable(plan.batches))
    if strangers := sorted({*named}.difference(planned)):
        yield f"{option} stands for {some(strangers)}, which the plan does not maintain"
    if missing := [name for name in planned if name not in named]:
        yield f"{option} does not stand for {some(missing)}, which the plan maintains"


def _brief(value: object) -> str:
    return "batches that were given" if value is None else brief(json.dumps(value))


def _mismatches(plan: Plan, run: str, snapshot: Snapshot, away: Collection[str]) -> Iterator[str]:
    if not plan.batches:
        yield "it maintains no node, as by it things only move; vmi_migration carries it out"
    if plan.run != run:
        yield f"it is for run {plan.run!r}, and this is run {run!r}"
    uid = snapshot.header.cluster.uid if snapshot.header else ""
    if not plan.cluster.uid:
        yield "it does not say for which cluster it is"
    elif plan.cluster.uid != uid:
        yield f"it is for the cluster {plan.cluster.uid}, and this is {uid or 'an unknown one'}"
    else:
        known = snapshot.nodes.keys() | away
        gone = [name for batch in plan.batches for name in batch if name not in known]
        yield from (f"node {name} is no longer there" for name in gone)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan in force of a run: kept in the cluster by maintenance_plan, and gone on by at the next start of the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import require_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import (
    BROKEN,
    RunStore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import run_problem
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import PlanError, sha256
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import (
    DOCUMENT,
    PlanInForce,
    PlanRequest,
    has_begun,
    renewed,
    what_is_left,
)


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """`lines`: what is said of how it was chosen. resumed: whether it is the one that was in force."""

    in_force: PlanInForce
    lines: list[str] = field(default_factory=list)
    resumed: bool = False


def spec() -> dict[str, Any]:
    return {
        "resume": {"type": "bool", "default": False},
        "invocation": {"type": "str"},
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
    }


def problems(params: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the options, a clause each."""
    wanted = [name for name in ("resume", "invocation") if params[name]]
    if wanted and not params["run"]:
        yield f"{wanted[0]} is given, but no run"
    elif params["run"] and (problem := run_problem(params["run"])):
        yield f"run {problem}"
    yield from name_problems(params, "lease_namespace")


def find(client: Client, params: Mapping[str, Any]) -> tuple[PlanInForce | None, list[str]]:
    """What the cluster keeps, and what is said if that is no plan. Raises Failure."""
    try:
        found = RunStore(client, params["run"], params["lease_namespace"]).get(DOCUMENT)
        return (PlanInForce.decoded(found.content) if found else None), []
    except PlanError as error:
        why = str(error)
    except Failure as error:
        if error.reason != BROKEN:
            raise
        why = error.message
    return None, [f"What the cluster keeps as the plan of run {params['run']} is passed over: {why.rstrip('.')}."]


def keep(client: Client, params: Mapping[str, Any], in_force: PlanInForce) -> None:
    """Raises Failure, with reason RunLost unless the invocation holds the run."""
    require_run(client, params["run"], params["invocation"], params["lease_namespace"])
    RunStore(client, params["run"], params["lease_namespace"]).put(DOCUMENT, in_force.encoded())


def choose(
    kept: PlanInForce | None,
    request: PlanRequest,
    snapshot: Snapshot,
    done: Collection[str],
    make: Callable[[], Plan],
) -> ChosenPlan:
    """The plan in force, mended, if it is one for the same and can be carried out, else a new one. Raises as `make`."""
    if kept is None or not has_begun(kept.plan, snapshot, done):
        return ChosenPlan(PlanInForce.new(make()))
    if why := request.differs(kept.plan, done):
        return ChosenPlan(PlanInForce.new(make()), [_anew(kept.plan, why)])
    rest = what_is_left(kept.plan, snapshot, done)
    plan = renewed(rest, snapshot, done)
    if any(not entry.passing for entry in plan.blocked if entry.node not in done):
        new = make()
        if new.verdict is Verdict.FEASIBLE:
            return ChosenPlan(PlanInForce.new(new), [_anew(kept.plan, "something stands against it by now")])
    changes = [f"Mended: {line}" for line in differences(rest, plan)]
    return ChosenPlan(replace(kept, plan=plan), [_goes_on(kept.plan), *changes], resumed=True)


def choose_approved(kept: PlanInForce | None, approved: Plan, snapshot: Snapshot, done: Collection[str]) -> ChosenPlan:
    """What is left of an approved plan, as drains have mended it, or the plan itself if the run goes by another."""
    if kept is None or not has_begun(kept.plan, snapshot, done):
        return ChosenPlan(PlanInForce.new(approved))
    if kept.origin != sha256(approved):
        return ChosenPlan(PlanInForce.new(approved), [_anew(kept.plan, "another one was approved")])
    return ChosenPlan(kept, [_goes_on(kept.plan)], resumed=True)


def _goes_on(plan: Plan) -> str:
    return f"Run {plan.run} goes on by the plan of {plan.snapshot.taken}."


def _anew(plan: Plan, why: str) -> str:
    return f"Run {plan.run} does not go on by the plan of {plan.snapshot.taken}, as {why}. This is another one."

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
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import run_problem
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import PlanError
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import (
    PLAN_DOCUMENT,
    PlanInForce,
    PlanRequest,
    has_begun,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.review import (
    Review,
    lasting_changes,
    review,
)


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """`lines`: what is said of how it was chosen. resumed: whether it is the one that was in force.

    changes: what was mended of it, a line each.
    """

    in_force: PlanInForce
    lines: list[str] = field(default_factory=list)
    resumed: bool = False
    changes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Drift:
    """What happens to a plan that is not right any more: whether it is mended, and the option that says so."""

    mends: bool
    option: str

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Drift:
        return cls(params["drift"] == "repair", f"{params['option_prefix']}drift")


def spec() -> ArgumentSpec:
    return {
        "resume": {"type": "bool", "default": False},
        "invocation": {"type": "str"},
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
        "drift": {"type": "str", "choices": ["repair", "fail"], "default": "repair"},
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
        found = RunStore(client, params["run"], params["lease_namespace"]).get(PLAN_DOCUMENT)
        return (PlanInForce.decoded(found.content) if found else None), []
    except PlanError as error:
        why = str(error)
    except Failure as error:
        if error.reason != BROKEN:
            raise
        why = error.message
    return None, [f"What the cluster keeps as the plan of run {params['run']} is passed over: {why.rstrip('.')}."]


def keep(client: Client, params: Mapping[str, Any], in_force: PlanInForce) -> None:
    """Raises Failure, with reason RunLost unless the invocation holds the run, up to the last try."""
    hold = require_run(client, params["run"], params["invocation"], params["lease_namespace"])
    RunStore(client, params["run"], params["lease_namespace"]).guarded(hold.require).put(
        PLAN_DOCUMENT, in_force.encoded()
    )


def choose(
    kept: PlanInForce | None,
    request: PlanRequest,
    snapshot: Snapshot,
    done: Collection[str],
    make: Callable[[], Plan],
    drift: Drift,
) -> ChosenPlan:
    """The plan in force, mended, if it is one for the same and can be carried out, else a new one.

    Raises as `make`, and InvalidRequest if it is not right any more and that is refused.
    """
    if kept is None or not has_begun(kept.plan, snapshot, done):
        return ChosenPlan(PlanInForce.new(make()))
    if why := request.differs(kept.plan, snapshot, done):
        return ChosenPlan(PlanInForce.new(make()), [_anew(kept.plan, why)])
    found, notes = _held(kept.plan, snapshot, done, drift)
    if any(not entry.passing for entry in found.plan.blocked if entry.node not in done):
        new = make()
        if new.verdict is Verdict.FEASIBLE:
            return ChosenPlan(PlanInForce.new(new), [_anew(kept.plan, "something stands against it by now")])
    in_force = replace(kept, plan=found.plan)
    return ChosenPlan(in_force, [_goes_on(kept.plan), *notes], resumed=True, changes=found.changes)


def choose_approved(
    kept: PlanInForce | None, approved: Plan, snapshot: Snapshot, done: Collection[str], drift: Drift
) -> ChosenPlan:
    """What is left of an approved plan, as drains have mended it, or the plan itself if the run goes by another.

    Both are mended if they are not right any more. Raises InvalidRequest if that is refused, and as `review` does.
    """
    chosen = ChosenPlan(PlanInForce.new(approved))
    if kept is not None and has_begun(kept.plan, snapshot, done):
        if kept.origin == chosen.in_force.origin:
            chosen = ChosenPlan(kept, [_goes_on(kept.plan)], resumed=True)
        else:
            chosen = replace(chosen, lines=[_anew(kept.plan, "another one was approved")])
    found, notes = _held(chosen.in_force.plan, snapshot, done, drift)
    in_force = replace(chosen.in_force, plan=found.plan)
    return replace(chosen, in_force=in_force, lines=[*chosen.lines, *notes], changes=found.changes)


def _held(plan: Plan, snapshot: Snapshot, done: Collection[str], drift: Drift) -> tuple[Review, list[str]]:
    """A plan held against the cluster, as it is gone by, and what is said of that.

    Raises InvalidRequest if it is not right any more and that is refused, and as `review` does.
    """
    found, named = review(plan, snapshot, done), f"The plan of {plan.snapshot.taken}"
    if not found.changes:
        return found, [f"{named} is right for the cluster as it is now."]
    if drift.mends:
        told = f"{named} is not right for the cluster as it is now, so that a mended one is in force:"
        return found, [told, *(f"Mended: {line}" for line in found.changes)]
    if lasting := lasting_changes(plan, snapshot, done, found):
        remedy = f"Plan and approve anew, or set {drift.option} to repair; nothing was touched."
        raise InvalidRequest(f"go by the plan of {plan.snapshot.taken}, as the cluster has changed", lasting, remedy)
    told = f"{named} is right for the cluster as it is now, but for what passes by itself:"
    return Review(found.before, found.before, []), [told, *(f"For now: {line}" for line in found.changes)]


def _goes_on(plan: Plan) -> str:
    return f"Run {plan.run} goes on by the plan of {plan.snapshot.taken}."


def _anew(plan: Plan, why: str) -> str:
    return f"Run {plan.run} does not go on by the plan of {plan.snapshot.taken}, as {why}. This is another one."

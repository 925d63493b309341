# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What maintenance_plan is asked for, and the plan that it answers with: a new one, or one that was approved before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import plan_file, snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_done
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import unpinned_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (
    arguments,
    plan_approval,
    plan_keeping,
    plan_request,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec, require_positive
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.plan_keeping import ChosenPlan, Drift
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import (
    PlanError,
    same_meaning,
    sha256,
    to_json,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Blocked, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import undone
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce, PlanRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import NEEDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, idle
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import kept, obstacle_text
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import judgement, told
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import blocked_text, plan_text

_PAGE_SIZE = 500
_MOST_BLOCKED = 100
# Of which clusters and nodes are known.
_NAMED = ("namespaces", "nodes")


def spec() -> ArgumentSpec:
    return {
        **arguments.connection(),
        "snapshot": {"type": "raw"},
        "run": {"type": "str", "default": ""},
        "batches": {"type": "list", "elements": "list"},
        "nodes": {"type": "list", "elements": "str"},
        "batch": {"type": "str", "default": "1"},
        "order": {"type": "str", "choices": ["free", "given"], "default": "given"},
        "batch_constraints": {
            "type": "dict",
            "options": {
                "apart": {"type": "list", "elements": "str", "default": []},
                "together": {"type": "str"},
                "first": {"type": "list", "elements": "str", "default": []},
                "last": {"type": "list", "elements": "str", "default": []},
            },
        },
        "room": {"type": "int", "default": 0},
        "reserve": {"type": "str", "choices": ["none", "largest_node", "zone"], "default": "none"},
        "policies": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "selector": {"type": "dict"},
                "expression": {"type": "str"},
                "policy": {"type": "str", "choices": ["fail", "restart", "stop"], "required": True},
            },
        },
        "avoid": {"type": "list", "elements": "str", "default": []},
        "targets": {"type": "dict", "default": {}},
        "delete_emptydir_data": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "profile": {
            "type": "str",
            "choices": ["LowNodeUtilization", "HighNodeUtilization", "NoScoring"],
            "default": "LowNodeUtilization",
        },
        "option_prefix": {"type": "str", "default": ""},
        "document": {"type": "bool", "default": False},
        "only_check": {"type": "bool", "default": False},
        "path": {"type": "path"},
        "compare": {"type": "path"},
        "plan": {"type": "path"},
        "sha256": {"type": "str"},
        **plan_keeping.spec(),
    }


def rules() -> ArgumentSpec:
    """What of the options goes together."""
    return {
        "mutually_exclusive": [
            ("batches", "nodes"),
            ("batches", "plan"),
            ("compare", "plan"),
            ("batches", "batch_constraints"),
        ],
        "required_one_of": [("batches", "nodes", "plan"), ("path", "plan")],
        "required_by": {"sha256": ("plan",)},
    }


def make_or_take(module: Module) -> JsonObject:
    """The work of maintenance_plan. Raises InvalidRequest, Failure, ExpectedError."""
    _check(module.params)
    if module.params["only_check"]:
        return _see_to(module)
    return _take(module) if module.params["plan"] else _make(module)


def _see_to(module: Module) -> JsonObject:
    """See that what is asked for can be meant, by no more of the cluster than what it names.

    A run that goes on may find a node away that its maintenance makes anew. What was stopped for others is not to wait
    for that: whoever plans says so, once the run is held and they have been seen to.
    """
    params = module.params
    if params["path"]:
        plan_file.check_writable(Path(params["path"]))
    snapshot = _read_cluster(module, [*_NAMED, *["vmis"] * bool(params["targets"])])
    kept, _notes = _in_force(module)
    known = frozenset(chain.from_iterable(kept.plan.batches)) if kept else frozenset()
    if params["plan"]:
        plan_approval.approved_plan(params, module.given, snapshot, known)
    else:
        plan_request.wanted(params, snapshot, nodes_done(snapshot.lists["nodes"], params["run"]), known)
    return {"changed": False}


def _make(module: Module) -> JsonObject:
    """Plan, unless the run goes on by its plan in force, and write the plan unless the file says the same already."""
    params = module.params
    path = Path(params["path"])
    plan_file.check_writable(path)
    there = plan_file.find_plan(path)
    earlier = _compared(module) if params["compare"] else there
    snapshot = _read_cluster(module)
    done = nodes_done(snapshot.lists["nodes"], params["run"])
    request = plan_request.wanted(params, snapshot, done)
    _warn_of_idle_rules(module, request.options.rules, snapshot)
    _warn_of_unknown_labels(module, request, snapshot)
    kept, notes = _in_force(module)
    with explained(plan_request.ATTEMPT):
        chosen = plan_keeping.choose(
            kept,
            request,
            snapshot,
            done,
            lambda: request.made(snapshot, params["run"]),
            Drift.of(params),
        )
    in_force, plan = chosen.in_force, chosen.in_force.plan
    if there is not None and same_meaning(plan, there):
        plan = there
        # So that who gives the file is known for going on by it.
        in_force = in_force if chosen.resumed else PlanInForce.new(plan)
    _keep(module, in_force)
    changed = _write(module, path, plan, there)
    # Who goes on with a run need not name those any more that are done, and stand in its plan.
    of_run = done.intersection([*plan_request.named_nodes(params), *chain.from_iterable(plan.batches)])
    result = _result(params, path, plan, snapshot, of_run, [*notes, *chosen.lines], text_of=path)
    if module._diff:
        before = plan_text(earlier, done) if earlier else []
        result["diff"] = {"before": _joined(before), "after": _joined(plan_text(plan, of_run))}
    changes = differences(undone(earlier, done), undone(plan, done), whole=True) if earlier else []
    return {"changed": changed, **result, "differences": changes, **_origin(replace(chosen, in_force=in_force))}


def _compared(module: Module) -> Plan | None:
    """The plan to compare with. One that cannot be told ends no run that goes on. Raises as load_plan."""
    try:
        return plan_file.load_plan(Path(module.params["compare"]))
    except PlanError as error:
        if not module.params["resume"]:
            raise
        module.warn(f"Nothing is compared: {error}")
        return None


def _take(module: Module) -> JsonObject:
    """Check a plan that was made before, and tell it; or what drains have left of it, if the run goes on by that."""
    source = Path(module.params["plan"])
    if module.params["path"]:
        plan_file.check_writable(Path(module.params["path"]))
    snapshot = _read_cluster(module)
    approved = plan_approval.approved_plan(module.params, module.given, snapshot)
    everybody = frozenset(name for nodes in approved.batches for name in nodes)
    done = everybody & nodes_done(snapshot.lists["nodes"], approved.run)
    kept, notes = _in_force(module)
    with explained(plan_request.ATTEMPT):
        chosen = plan_keeping.choose_approved(kept, approved, snapshot, done, Drift.of(module.params))
    plan, path, changed = chosen.in_force.plan, source, False
    # Without a file for what is mended or left of it, the plan itself is what can be carried out.
    is_rest = plan != approved and bool(module.params["path"])
    _keep(module, chosen.in_force)
    if is_rest:
        path = Path(module.params["path"])
        changed = _write(module, path, plan, plan_file.find_plan(path))
    text_of = path if is_rest else _text_of_approved(module, source, plan)
    result = _result(module.params, path, plan, snapshot, done, [*notes, *chosen.lines], text_of=text_of)
    if not is_rest:
        result["sha256"] = sha256(approved)
    return {"changed": changed, **result, "differences": chosen.changes, **_origin(chosen)}


def _text_of_approved(module: Module, source: Path, plan: Plan) -> Path | None:
    """Where a run writes what people read of an approved plan: nowhere, if that has come with it."""
    own = module.params["path"]
    if not own or plan_file.find_text(source, plan, plan_text(plan)):
        return None
    if not module.check_mode:
        plan_file.write_text(Path(own), plan, plan_text(plan))
    return Path(own)


def _origin(chosen: ChosenPlan) -> JsonObject:
    return {"resumed": chosen.resumed, "origin": chosen.in_force.origin}


def _check(params: Mapping[str, Any]) -> None:
    """Raises InvalidRequest."""
    require_positive(params, "request_timeout")
    problems = [*_empty(params), *plan_keeping.problems(params)]
    if params["plan"] and params["path"] and not params["resume"]:
        problems.append("path is given with plan, but without resume nothing is written")
    if params["plan"] and params["resume"] and not params["path"]:
        problems.append("resume is given with plan, but no path for what may be left of it")
    if plan_file.is_same_file(params["path"], params["plan"]):
        problems.append("path is the file of plan, which stays as it was approved")
    snapshot = snapshot_file.find_path(params["snapshot"])
    if plan_file.is_same_file(params["path"], snapshot):
        problems.append("path is the file of snapshot, which would be lost")
    text = plan_file.text_beside(Path(params["path"])) if params["path"] else None
    for name, path in (("plan", params["plan"]), ("snapshot", snapshot), ("compare", params["compare"])):
        if plan_file.is_same_file(text, path):
            problems.append(f"{text}, which is written beside path for people, is the file of {name}")
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Nothing was written.")


def _empty(params: Mapping[str, Any]) -> Iterator[str]:
    """Options that are there to say something: what an empty one was to say, or to forbid, nobody can tell."""
    for name in ("path", "plan", "compare", "sha256"):
        if params[name] is not None and not params[name].strip():
            yield f"{name} is empty; leave it out, or say what it is to be"


def _write(module: Module, path: Path, plan: Plan, there: Plan | None) -> bool:
    """Whether the file was, or would be, changed."""
    changed = plan != there or not private_file.has_mode(path)
    if changed and not module.check_mode:
        plan_file.write(path, plan)
    if not module.check_mode:
        plan_file.write_text(path, plan, plan_text(plan))
    return changed


def _in_force(module: Module) -> tuple[PlanInForce | None, list[str]]:
    """The plan that the cluster keeps, if it is asked for, and what is said of it. Raises Failure."""
    if not module.params["resume"]:
        return None, []
    return plan_keeping.find(connect(module), module.params)


def _keep(module: Module, in_force: PlanInForce) -> None:
    """Raises Failure."""
    if module.params["invocation"] and not module.check_mode:
        plan_keeping.keep(connect(module), module.params, in_force)


def _result(
    params: Mapping[str, Any],
    path: Path,
    plan: Plan,
    snapshot: Snapshot,
    done: frozenset[str],
    notes: Sequence[str],
    *,
    text_of: Path | None,
) -> JsonObject:
    """path: of the plan. text_of: a path beside which this task writes what people read of it in whole, if it does."""
    left = [[name for name in nodes if name not in done] for nodes in plan.batches]
    with explained(plan_request.ATTEMPT):
        possible = plan_request.possible(params, plan, snapshot, done)
    blocked = sorted((entry for entry in plan.blocked if entry.node not in done), key=lambda entry: entry.passing)
    allowed = plan.options.get("allowed", ())
    prefix, found = params["option_prefix"], plan_file.find_text(text_of or path, plan, plan_text(plan))
    # Nobody is sent to a file that was not written, or in which somebody has changed something.
    there = str(found.absolute()) if found else ""
    document = to_json(plan)
    return {
        "path": str(path.absolute()),
        "plan_path": str(path.absolute()),
        "text_path": str(plan_file.text_beside(text_of).absolute()) if text_of else there,
        "sha256": document["sha256"],
        "message": judgement(plan, done, possible),
        "verdict": _verdict_of_rest(plan, done).value,
        "batches": [nodes for nodes in left if nodes],
        "possible": possible,
        "done": sorted(done),
        "totals": document["totals"],
        "obstacles": [
            {"message": obstacle_text(group, plan, prefix), "passing": group.passing, "count": len(group.blocked)}
            for group in kept(plan, done)
        ],
        "blocked": [_blocked(entry) for entry in blocked[:_MOST_BLOCKED]],
        "lines": [*notes, *told(plan, done, prefix=prefix, text=there)],
        "options": {"policies": plan.options.get("policies", []), **{need: need in allowed for need in NEEDS}},
        **({"document": document} if params["document"] else {}),
    }


def _blocked(entry: Blocked) -> JsonObject:
    return {
        "kind": entry.object.kind,
        "namespace": entry.object.namespace,
        "name": entry.object.name,
        "node": entry.node,
        "passing": entry.passing,
        "message": blocked_text(entry),
    }


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _read_cluster(module: Module, names: Iterable[str] = BY_NAME) -> Snapshot:
    """From the snapshot that is given, else these lists from the cluster.

    One in which nothing of a plan could come true, as its KubeVirt is too old, is refused. Raises SnapshotError,
    Failure, InvalidRequest.
    """
    if module.params["snapshot"]:
        snapshot = snapshot_file.load(module.params["snapshot"])
    else:
        document = take(connect(module), _PAGE_SIZE, [BY_NAME[name] for name in names])
        snapshot = document.decoded(*document.lists)
    if why := unpinned_by(snapshot.header.cluster.kubevirt_version if snapshot.header else ""):
        raise InvalidRequest(plan_request.ATTEMPT, [why], "Upgrade KubeVirt first; nothing was touched.")
    return snapshot


def _warn_of_idle_rules(module: Module, rules: Iterable[Rule], snapshot: Snapshot) -> None:
    """A misspelt label would leave a virtual machine without its policy."""
    vmis = snapshot.lists["vmis"]
    for rule in idle(rules, vmis) if vmis else ():
        module.warn(f"{rule.source} matches no virtual machine of the cluster: correct it, or leave it out.")


def _warn_of_unknown_labels(module: Module, request: PlanRequest, snapshot: Snapshot) -> None:
    """A misspelt one would let nodes be out of service together that are to be kept apart."""
    for name, key in plan_request.unknown_labels(request, snapshot):
        option = f"{module.params['option_prefix']}batch_constraints.{name}"
        module.warn(f"{option} has label {key}, which no node of the run has: correct it, or leave it out.")


def _verdict_of_rest(plan: Plan, done: Collection[str]) -> Verdict:
    """On what is left of a plan: neither nodes that are done count any more, nor what stood against them."""
    batches = [nodes for batch in plan.batches if (nodes := frozenset(batch).difference(done))]
    return verdict(batches, [entry for entry in plan.blocked if entry.node not in done])

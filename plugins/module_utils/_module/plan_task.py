# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What maintenance_plan is asked for, and the plan that it answers with: a new one, or one that was approved before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import plan_file, snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import MAINTAINED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, plan_keeping
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.limits import require_positive, size_of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import differences
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import sha256, to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Blocked, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.batch_rules import BatchRules
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import (
    PlanInForce,
    PlanRequest,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import NEEDS, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, idle
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import kept, obstacle_text
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import told
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import blocked_text, plan_text

_PAGE_SIZE = 500
_ATTEMPT = "plan the maintenance"
_MOST_BLOCKED = 100
# Looking for a name that is meant costs time in proportion to all there are.
_MOST_GUESSES = 10
_ANEW = "Make a plan anew and have it approved."


def spec() -> dict[str, Any]:
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
        "path": {"type": "path"},
        "compare": {"type": "path"},
        "plan": {"type": "path"},
        "sha256": {"type": "str"},
        **plan_keeping.spec(),
    }


def rules() -> dict[str, Any]:
    """What of the options goes together."""
    return {
        "mutually_exclusive": [("batches", "nodes", "plan"), ("compare", "plan"), ("batches", "batch_constraints")],
        "required_one_of": [("batches", "nodes", "plan"), ("path", "plan")],
        "required_by": {"sha256": ("plan",)},
    }


def make_or_take(module: Module) -> dict[str, Any]:
    """The work of maintenance_plan. Raises InvalidRequest, Failure, ExpectedError."""
    _check(module.params)
    return _take(module) if module.params["plan"] else _make(module)


def _make(module: Module) -> dict[str, Any]:
    """Plan, unless the run goes on by its plan in force, and write the plan unless the file says the same already."""
    params = module.params
    path = Path(params["path"])
    plan_file.check_writable(path)
    there = plan_file.find_plan(path)
    earlier = plan_file.load_plan(Path(params["compare"])) if params["compare"] else there
    snapshot = _read_cluster(module)
    done = nodes_done(snapshot, params["run"])
    request = _request(params, snapshot, done)
    _warn_of_idle_rules(module, request.options.rules, snapshot)
    kept, notes = _in_force(module)
    with explained(_ATTEMPT):
        chosen = plan_keeping.choose(
            kept,
            request,
            snapshot,
            done,
            lambda: request.made(snapshot, params["run"]),
        )
    in_force, plan = chosen.in_force, chosen.in_force.plan
    if there is not None and _same_meaning(plan, there):
        plan = there
        # So that who gives the file is known for going on by it.
        in_force = in_force if chosen.resumed else PlanInForce.new(plan)
    changed = _write(module, path, plan, there)
    _keep(module, in_force)
    done = done.intersection(_named(params))
    text = plan_file.text_beside(path)
    result = _result(params, path, text, plan, done, [*notes, *chosen.lines])
    if module._diff:
        before = plan_text(earlier, done) if earlier else []
        result["diff"] = {"before": _joined(before), "after": _joined(plan_text(plan, done))}
    changes = differences(earlier, plan) if earlier else []
    return {"changed": changed, **result, "differences": changes, "resumed": chosen.resumed}


def _take(module: Module) -> dict[str, Any]:
    """Check a plan that was made before, and tell it; or what drains have left of it, if the run goes on by that."""
    source = Path(module.params["plan"])
    snapshot = _read_cluster(module)
    approved = _approved_plan(module.params, snapshot)
    everybody = frozenset(name for nodes in approved.batches for name in nodes)
    done = everybody & nodes_done(snapshot, approved.run)
    kept, notes = _in_force(module)
    chosen = plan_keeping.choose_approved(kept, approved, snapshot, done)
    path, plan, changed = source, chosen.in_force.plan, False
    text = plan_file.find_text(path, plan)
    if plan != approved:
        path = Path(module.params["path"])
        changed = _write(module, path, plan, plan_file.find_plan(path))
        text = plan_file.text_beside(path)
    _keep(module, chosen.in_force)
    result = _result(module.params, path, text, plan, done, [*notes, *chosen.lines])
    return {"changed": changed, **result, "differences": [], "resumed": chosen.resumed}


def _check(params: Mapping[str, Any]) -> None:
    """Raises InvalidRequest."""
    require_positive(params, "request_timeout")
    problems = list(plan_keeping.problems(params))
    if params["plan"] and params["path"] and not params["resume"]:
        problems.append("path is given with plan, but without resume nothing is written")
    if params["plan"] and params["resume"] and not params["path"]:
        problems.append("resume is given with plan, but no path for what may be left of it")
    if params["plan"] and params["path"] and Path(params["path"]).resolve() == Path(params["plan"]).resolve():
        problems.append("path is the file of plan, which stays as it was approved")
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Nothing was written.")


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
    params: Mapping[str, Any], path: Path, text: Path | None, plan: Plan, done: frozenset[str], notes: Sequence[str]
) -> dict[str, Any]:
    """path: of the plan. text: of what people read of it in whole; in check mode where that would be."""
    left = [[name for name in nodes if name not in done] for nodes in plan.batches]
    blocked = sorted((entry for entry in plan.blocked if entry.node not in done), key=lambda entry: entry.passing)
    allowed = plan.options.get("allowed", ())
    prefix, beside = params["option_prefix"], str(text.absolute()) if text else ""
    # Nobody is sent to a file that was not written.
    there = beside if plan_file.find_text(path, plan) else ""
    return {
        "plan_path": str(path.absolute()),
        "text_path": beside,
        "sha256": sha256(plan),
        "verdict": _verdict_of_rest(plan, done).value,
        "batches": [nodes for nodes in left if nodes],
        "done": sorted(done),
        "totals": to_json(plan)["totals"],
        "obstacles": [
            {"message": obstacle_text(group, plan, prefix), "passing": group.passing, "count": len(group.blocked)}
            for group in kept(plan, done)
        ],
        "blocked": [_blocked(entry) for entry in blocked[:_MOST_BLOCKED]],
        "lines": [*notes, *told(plan, done, prefix=prefix, text=there)],
        "options": {"policies": plan.options.get("policies", []), **{need: need in allowed for need in NEEDS}},
    }


def _blocked(entry: Blocked) -> dict[str, Any]:
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


def _read_cluster(module: Module) -> Snapshot:
    """From the snapshot that is given, else from the cluster. Raises SnapshotError, Failure."""
    if module.params["snapshot"]:
        return snapshot_file.load(module.params["snapshot"])
    document = take(connect(module), _PAGE_SIZE)
    return document.decoded(*document.lists)


def _warn_of_idle_rules(module: Module, rules: Iterable[Rule], snapshot: Snapshot) -> None:
    """A misspelt label would leave a virtual machine without its policy."""
    vmis = snapshot.lists["vmis"]
    for rule in idle(rules, vmis) if vmis else ():
        module.warn(f"{rule.source} matches no virtual machine of the cluster: correct it, or leave it out.")


def nodes_done(snapshot: Snapshot, run: str) -> frozenset[str]:
    """Names of the nodes that a run is done with."""
    nodes = (node["metadata"] for node in snapshot.lists["nodes"])
    return frozenset(node["name"] for node in nodes if run and (node.get("labels") or {}).get(MAINTAINED) == run)


def _request(params: Mapping[str, Any], snapshot: Snapshot, done: Collection[str]) -> PlanRequest:
    """For all nodes but those that are done. Raises InvalidRequest."""
    given = params["batches"] if params["batches"] is not None else [[name] for name in params["nodes"]]
    problems = list(_problems(params, given, snapshot))
    if problems:
        raise InvalidRequest(_ATTEMPT, problems, "Correct the names, or take a new snapshot.")
    left = [[name for name in batch if name not in done] for batch in given]
    with explained(_ATTEMPT):
        options = _options(params)
    uid = snapshot.header.cluster.uid if snapshot.header else ""
    return PlanRequest([batch for batch in left if batch], options, uid)


def _approved_plan(params: Mapping[str, Any], snapshot: Snapshot) -> Plan:
    """The plan of a file, if it is for this run and cluster. Raises InvalidRequest, PlanError, Failure."""
    path = Path(params["plan"])
    plan = plan_file.load_plan(path)
    if params["sha256"]:
        plan_file.require_same(path, plan, params["sha256"])
    problems = list(_mismatches(plan, params["run"], snapshot))
    if problems:
        raise InvalidRequest(f"carry out the plan {path}", problems, _ANEW)
    return plan


def _same_meaning(plan: Plan, other: Plan) -> bool:
    """Whether two plans say the same, whichever snapshots they were made from."""
    return sha256(replace(plan, snapshot=other.snapshot)) == sha256(other)


def _verdict_of_rest(plan: Plan, done: Collection[str]) -> Verdict:
    """The plan's verdict; what stood against nodes that are done does not count any more."""
    lasting = any(not entry.passing for entry in plan.blocked if entry.node not in done)
    return plan.verdict if lasting else Verdict.FEASIBLE


def _named(params: Mapping[str, Any]) -> list[str]:
    """The nodes of the task."""
    return params["nodes"] or [name for batch in params["batches"] or () for name in batch]


def _options(params: Mapping[str, Any]) -> PlanOptions:
    """Raises InvalidRequest."""
    policies = [{key: value for key, value in rule.items() if value is not None} for rule in params["policies"]]
    allowed = [need for need in NEEDS if params[need]]
    named = {name: params[name] for name in ("avoid", "targets", "profile", "room")}
    batching = _batching(params).to_json() if params["batches"] is None else None
    return PlanOptions.of({**named, "policies": policies, "allowed": allowed, "batching": batching})


def _batching(params: Mapping[str, Any]) -> BatchRules:
    """Raises InvalidRequest."""
    wanted = params["batch_constraints"] or {}
    return BatchRules(
        size=size_of_batch(params["batch"], len(params["nodes"])),
        free=params["order"] == "free",
        apart=tuple(wanted.get("apart") or ()),
        together=wanted.get("together") or "",
        first=tuple(wanted.get("first") or ()),
        last=tuple(wanted.get("last") or ()),
    )


def _problems(params: Mapping[str, Any], batches: Sequence[Sequence[Any]], snapshot: Snapshot) -> Iterator[str]:
    """All that is wrong with the names in the task, in its order."""
    nodes = {node["metadata"]["name"] for node in snapshot.lists["nodes"]}
    vmis = {
        f"{vmi['metadata'].get('namespace') or 'default'}/{vmi['metadata']['name']}" for vmi in snapshot.lists["vmis"]
    }
    seen: set[str] = set()
    unknown: dict[tuple[str, str], None] = {}
    for number, batch in enumerate(batches, start=1):
        if not batch:
            yield f"batch {number} names no node"
        for name in batch:
            if not isinstance(name, str):
                yield f"batch {number} has {name!r}, which is no name"
            elif name in seen:
                yield f"node {name} is named twice"
            else:
                seen.add(name)
                if name not in nodes:
                    unknown["node", name] = None
    targets = {str(vmi): str(node) for vmi, node in params["targets"].items()}
    wanted = params["batch_constraints"] or {}
    for name in (*params["avoid"], *targets.values(), *wanted.get("first", ()), *wanted.get("last", ())):
        if name not in nodes:
            unknown["node", name] = None
    unknown |= dict.fromkeys(("VirtualMachineInstance", name) for name in targets if name not in vmis)
    known = {"node": nodes, "VirtualMachineInstance": vmis}
    for index, (kind, name) in enumerate(unknown):
        near = get_close_matches(name, sorted(known[kind]), n=1) if index < _MOST_GUESSES else []
        yield f"there is no {kind} {name}" + (f" (do you mean {near[0]}?)" if near else "")


def _mismatches(plan: Plan, run: str, snapshot: Snapshot) -> Iterator[str]:
    if plan.run != run:
        yield f"it is for run {plan.run!r}, and this is run {run!r}"
    uid = snapshot.header.cluster.uid if snapshot.header else ""
    if not plan.cluster.uid:
        yield "it does not say for which cluster it is"
    elif plan.cluster.uid != uid:
        yield f"it is for the cluster {plan.cluster.uid}, and this is {uid or 'an unknown one'}"
    else:
        nodes = {node["metadata"]["name"] for node in snapshot.lists["nodes"]}
        gone = [name for batch in plan.batches for name in batch if name not in nodes]
        yield from (f"node {name} is no longer there" for name in gone)

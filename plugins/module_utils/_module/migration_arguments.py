# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of vmi_migration, and the requests they express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.plan_file import load_plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problem, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import SelectorError, label_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan

_WHERE_TO: ArgumentSpec = {
    "namespace": {"type": "str"},
    "target_node": {"type": "str"},
    "added_node_selector": {"type": "dict"},
}
CONSTRAINTS: ArgumentSpec = {
    "mutually_exclusive": [
        ("name", "vmis", "plan"),
        ("target_node", "added_node_selector", "plan"),
        ("namespace", "plan"),
    ],
    "required_one_of": [("name", "vmis", "plan")],
}
_MOVING = (ActionKind.MIGRATE, ActionKind.EVICT)


def spec() -> ArgumentSpec:
    vmi = {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str", "required": True}, **_WHERE_TO},
        "mutually_exclusive": [("target_node", "added_node_selector")],
    }
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str"},
        **_WHERE_TO,
        "vmis": vmi,
        "plan": {"type": "raw"},
        "document": {"type": "bool", "default": False},
        **guard.spec(),
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 900},
        "unschedulable_timeout": {"type": "int", "default": 60},
        "retries": {"type": "int", "default": 2},
    }


def read_requests(params: Mapping[str, Any]) -> list[MigrationRequest]:
    """In the order of the task. Raises InvalidRequest if they contradict each other or say too little."""
    requests = [
        _request(entry, params) for entry in params["vmis"] or [{"name": params["name"]}] if entry["name"] is not None
    ]
    found = [*_missing(requests, params), *_misnamed(requests), *_repeated(requests), *_illegal(requests)]
    if found:
        raise InvalidRequest("read the options of the task", found, "Nothing was changed.")
    return requests


def read_plan(params: Mapping[str, Any]) -> Plan:
    """The plan of the task. Raises PlanError, Failure, and InvalidRequest if it is none of moves, or contradicted."""
    plan = load_plan(params["plan"])
    problems = [*_limits(params), *_unfit(plan, params)]
    if problems:
        raise InvalidRequest("carry out the plan", problems, "Nothing was changed.")
    return plan


def _unfit(plan: Plan, params: Mapping[str, Any]) -> Iterator[str]:
    if plan.batches:
        yield f"the plan maintains {', '.join(name for batch in plan.batches for name in batch)}; give it to node_drain"
    elif other := next((action for action in plan.actions if action.kind not in _MOVING), None):
        yield f"the plan is to {other.kind.value} {other.object.title}; only what migrates or is evicted is moved here"
    if plan.run and params["run"] and plan.run != params["run"]:
        yield f"the plan is of run {plan.run}, and run is {params['run']}"
    if params["state"] == "absent":
        yield "state is absent, and plan is given; name the VMIs whose migrations are to be cancelled"
    if not params["wait"]:
        yield "wait is false, and plan is given; what it lets wait for others has to be waited for"


def _request(entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> MigrationRequest:
    namespace = entry.get("namespace") or defaults["namespace"] or ""
    # A destination of its own, of either kind, replaces the task's.
    where_to = entry if entry.get("target_node") or entry.get("added_node_selector") else defaults
    selector = where_to.get("added_node_selector") or {}
    labels = {str(key): str(value) for key, value in selector.items()}
    return MigrationRequest(namespace, entry["name"], where_to.get("target_node") or None, labels)


def _missing(requests: list[MigrationRequest], params: Mapping[str, Any]) -> Iterator[str]:
    if not requests:
        yield "no VMI is named; give name or vmis"
    yield from _limits(params)
    for request in requests:
        if not request.namespace:
            yield f"{request.name} has no namespace; give namespace"
        if params["state"] == "present" and not request.destination:
            yield f"{request.title} has no destination; give target_node or added_node_selector"


def _limits(params: Mapping[str, Any]) -> Iterator[str]:
    yield from guard.problems(params)
    yield from name_problems(params, "lease_namespace")
    negatives = [name for name in ("wait_timeout", "unschedulable_timeout") if params[name] < 1]
    yield from (f"{name} is {params[name]}; give a second at least" for name in negatives)
    if params["retries"] < 0:
        yield f"retries is {params['retries']}; give 0 to try once"


def _misnamed(requests: list[MigrationRequest]) -> Iterator[str]:
    for request in requests:
        names = {"name": request.name, "namespace": request.namespace or None, "target_node": request.target_node}
        for option, name in names.items():
            problem = None if name is None else name_problem(name)
            if problem:
                yield f"{request.title}: {option} {problem}; correct it"


def _repeated(requests: list[MigrationRequest]) -> Iterator[str]:
    titles = [request.title for request in requests]
    for title in sorted({title for title in titles if titles.count(title) > 1}):
        yield f"{title} is named more than once; name it once"


def _illegal(requests: list[MigrationRequest]) -> Iterator[str]:
    for request in requests:
        try:
            label_selector({"matchLabels": request.added_node_selector})
        except SelectorError as error:
            yield f"{request.title}: {error}; correct added_node_selector"

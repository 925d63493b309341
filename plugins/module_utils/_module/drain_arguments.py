# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of node_drain, and what they ask for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.maintenance import Request
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import DELETE_EMPTYDIR_DATA, FORCE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

_REQUIRED: ArgumentSpec = {"type": "str", "required": True}
_NEEDS = (DELETE_EMPTYDIR_DATA, FORCE)


def spec() -> ArgumentSpec:
    return {
        "name": _REQUIRED,
        "owner": _REQUIRED,
        "state": {"type": "str", "choices": ["drained", "verified", "restored"], "default": "drained"},
        "plan": {"type": "raw"},
        "drift": {"type": "str", "choices": ["repair", "fail"], "default": "repair"},
        "snapshot": {"type": "raw"},
        **guard.spec(),
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
        "delete_emptydir_data": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "option_prefix": {"type": "str", "default": ""},
        "terminate_grace_period": {"type": "int"},
        "cordon": {"type": "bool", "default": False},
        "reason": {"type": "str"},
        "foreign_cordon": {"type": "str", "choices": ["fail", "keep"], "default": "fail"},
        "evacuations": {"type": "str", "choices": ["wait", "take_over"], "default": "wait"},
        "lease_duration": {"type": "int", "default": 3600},
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
        "wait_timeout": {"type": "int", "default": 1800},
        "unschedulable_timeout": {"type": "int", "default": 60},
        "retries": {"type": "int", "default": 2},
        "max_failed_vms": {"type": "int"},
        "document": {"type": "bool", "default": False},
    }


def check(params: Mapping[str, Any]) -> None:
    """Raises InvalidRequest for what the argument spec cannot tell."""
    problems = list(_problems(params))
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Nothing was changed.")


def require_agreement(params: Mapping[str, Any], given: Collection[str], plan: Plan) -> None:
    """See that options which say what a plan is asked for say what this one has. Raises InvalidRequest.

    given: names of the options that are given, also as by default. What the plan has is taken as it stands there, as
    the planner, which knows what it means, is not imported for a drain that goes as planned.
    """
    has = {"policies": [], "avoid": [], "allowed": [], **plan.options}
    has |= {need: need in has["allowed"] for need in _NEEDS}
    asked = {**{name: params[name] for name in ("avoid", *_NEEDS)}, "policies": policies(params)}
    problems = [
        f"{params['option_prefix']}{name} is {_shown(asked[name])}, and the plan has {_shown(has[name])}"
        for name in ("policies", "avoid", *_NEEDS)
        if name in given and _meant(asked[name]) != _meant(has[name])
    ]
    if problems:
        remedy = "Leave them out, as the plan has its own, or plan with them; nothing was changed."
        raise InvalidRequest(f"drain node {params['name']} by the plan", problems, remedy)


def _meant(value: Any) -> Any:
    """Of names of nodes the order means nothing; of rules the first that fits counts."""
    is_names = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return sorted(set(value)) if is_names else value


def policies(params: Mapping[str, Any]) -> list[JsonObject]:
    """The rules, without what they do not say."""
    return [{key: value for key, value in rule.items() if value is not None} for rule in params["policies"]]


def allowed(params: Mapping[str, Any]) -> frozenset[str]:
    """What pods may be evicted in spite of."""
    return frozenset(name for name in _NEEDS if params[name])


def request(params: Mapping[str, Any], *, dry_run: bool) -> Request:
    """The node, as node_maintenance takes it."""
    return Request(
        node=params["name"],
        owner=params["owner"],
        reason=params["reason"],
        keep_foreign=params["foreign_cordon"] == "keep",
        lease_namespace=params["lease_namespace"],
        lease_seconds=params["lease_duration"],
        dry_run=dry_run,
        run=params["run"] or "",
        invocation=params["invocation"] or "",
    )


def _problems(params: Mapping[str, Any]) -> Iterator[str]:
    yield from name_problems(params, "name", "lease_namespace")
    yield from guard.problems(params)
    if not params["owner"].strip():
        yield "owner is empty"
    if params["plan"] is not None and not params["plan"]:
        yield "plan is empty; leave it out to have one made for this node alone"
    for name in ("wait_timeout", "unschedulable_timeout", "lease_duration"):
        if params[name] < 1:
            yield f"{name} is {params[name]}; give a second at least"
    for name in ("retries", "max_failed_vms", "terminate_grace_period"):
        if params[name] is not None and params[name] < 0:
            yield f"{name} is {params[name]}; give 0 at least"


def _shown(value: object) -> str:
    return brief(json.dumps(value))

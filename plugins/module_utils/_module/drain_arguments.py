# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of node_drain, and what they ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.maintenance import Request
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard

_REQUIRED: dict[str, Any] = {"type": "str", "required": True}


def spec() -> dict[str, Any]:
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
        "delete_emptydir_data": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
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


def check(params: Mapping[str, Any], given: Collection[str]) -> None:
    """Raises InvalidRequest for what the argument spec cannot tell. given: names of the options that are given."""
    problems = list(_problems(params, given))
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Nothing was changed.")


def allowed(params: Mapping[str, Any]) -> frozenset[str]:
    """What pods may be evicted in spite of."""
    return frozenset(name for name in ("force", "delete_emptydir_data") if params[name])


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


def _problems(params: Mapping[str, Any], given: Collection[str]) -> Iterator[str]:
    yield from name_problems(params, "name", "lease_namespace")
    yield from guard.problems(params)
    if not params["owner"].strip():
        yield "owner is empty"
    if params["plan"] is not None and not params["plan"]:
        yield "plan is empty; leave it out to have one made for this node alone"
    if params["plan"]:
        own = (name for name in ("policies", "delete_emptydir_data", "force") if name in given)
        yield from (f"{name} is given with plan, which has its own; leave it out, or plan with it" for name in own)
    for name in ("wait_timeout", "unschedulable_timeout", "lease_duration"):
        if params[name] < 1:
            yield f"{name} is {params[name]}; give a second at least"
    for name in ("retries", "max_failed_vms", "terminate_grace_period"):
        if params[name] is not None and params[name] < 0:
            yield f"{name} is {params[name]}; give 0 at least"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of vmi_replicaset, and what they ask for.

Those of placement are documented in doc_fragments/_placement.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec, require_positive
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.replica_set import ReplicaSetRequest

_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"]
_EVICTION_STRATEGIES = ["LiveMigrate", "LiveMigrateIfPossible", "External", "None"]


def spec() -> ArgumentSpec:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "replicas": {"type": "int"},
        "paused": {"type": "bool"},
        "selector": {"type": "dict"},
        "template": {"type": "dict"},
        "placement": placement(),
        "eviction_strategy": {"type": "str", "choices": _EVICTION_STRATEGIES, "default": "LiveMigrate"},
        "masquerade": {"type": "bool", "default": True},
        "unplaceable": {"type": "str", "choices": ["warn", "fail", "ignore"], "default": "warn"},
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 600},
    }


def placement() -> ArgumentSpec:
    per: ArgumentSpec = {"per": {"type": "str", "required": True}}
    weight: ArgumentSpec = {"weight": {"type": "int"}}
    pods: ArgumentSpec = {"labels": {"type": "dict"}, "expressions": _list(_requirement(_OPERATORS))}
    others: ArgumentSpec = {**per, **pods, "namespaces": {"type": "list", "elements": "str", "default": []}, **weight}
    vms: ArgumentSpec = {"vms": {"type": "list", "elements": "str", "default": []}}
    options = {
        "node_labels": _list({**_requirement([*_OPERATORS, "Gt", "Lt"]), **weight}),
        "keep_apart": _list({**others, **vms, "ignore_own_pod": {"type": "bool", "default": True}}),
        "keep_together": _list({**others, **vms}),
        "spread": _list({**per, **pods, **_spread()}),
        "tolerations": _list(_toleration()),
        "scheduler_name": {"type": "str"},
        "affinity": {"type": "dict"},
    }
    return {"type": "dict", "options": options}


def read_request(params: Mapping[str, Any]) -> ReplicaSetRequest:
    """Raises InvalidRequest."""
    require_positive(params, "wait_timeout")
    if problems := list(name_problems(params, "name", "namespace")):
        raise InvalidRequest("read the options of the task", problems, "Correct the task; nothing was written.")
    names = ("namespace", "name", "replicas", "paused", "selector", "template", "placement")
    return ReplicaSetRequest(
        **{name: params[name] for name in names},
        eviction_strategy=params["eviction_strategy"],
        masquerade=params["masquerade"],
    )


def _list(options: ArgumentSpec) -> ArgumentSpec:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


def _requirement(operators: list[str]) -> ArgumentSpec:
    return {
        # Not no_log: these are keys of labels.
        "key": {"type": "str", "required": True, "no_log": False},
        "operator": {"type": "str", "choices": operators},
        "values": {"type": "list", "elements": "raw"},
    }


def _spread() -> ArgumentSpec:
    policy: ArgumentSpec = {"type": "str", "choices": ["Honor", "Ignore"]}
    when_unsatisfiable: ArgumentSpec = {
        "type": "str",
        "choices": ["DoNotSchedule", "ScheduleAnyway"],
        "default": "DoNotSchedule",
    }
    return {
        "max_skew": {"type": "int", "default": 1},
        "when_unsatisfiable": when_unsatisfiable,
        "min_domains": {"type": "int"},
        "node_affinity_policy": policy,
        "node_taints_policy": policy,
    }


def _toleration() -> ArgumentSpec:
    return {
        "key": {"type": "str", "no_log": False},
        "operator": {"type": "str", "choices": ["Equal", "Exists"]},
        "value": {"type": "str"},
        "effect": {"type": "str", "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        "toleration_seconds": {"type": "int"},
    }

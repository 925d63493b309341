# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pod_eviction takes from its task, and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.eviction_run import EvictionRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import WOULD_EVICT
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.object_name import name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference

_REMEDY = "Remove the cause and run the task again; pods that are gone stay gone."


def spec() -> JsonObject:
    pod = {"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}}
    return {
        "pods": {"type": "list", "elements": "dict", "required": True, "options": pod},
        "terminate_grace_period": {"type": "int"},
        **guard.spec(),
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
        "wait_timeout": {"type": "int", "default": 600},
    }


def wanted(params: Mapping[str, Any]) -> list[ObjectReference]:
    """In the order of the task, whichever pods have the names. Raises InvalidRequest."""
    pods = [(entry["namespace"].strip(), entry["name"].strip()) for entry in params["pods"]]
    if problems := list(_problems(params, pods)):
        raise InvalidRequest("evict the pods", problems, "Correct the task; nothing was evicted.")
    return [ObjectReference("Pod", namespace, name, "") for namespace, name in pods]


def evict(module: Module, run: EvictionRun, seconds: float) -> JsonObject:
    """Raises Failure if nothing was evicted, and Incomplete unless all are gone and replaced, or would be."""
    if module.check_mode:
        run.rehearse()
        return _result(module, run)
    try:
        run.run(seconds)
    except Failure as error:
        if not run.record.has_acted:
            raise
        run.trouble = error
    return _result(module, run)


def _result(module: Module, run: EvictionRun) -> JsonObject:
    """Raises Incomplete."""
    entries = run.record.entries.values()
    # In check mode a pod that is ending is not even asked for.
    evictions = [item.rehearsed() if module.check_mode and item.unfinished else item for item in entries]
    values: JsonObject = {
        "changed": any(item.has_acted or item.outcome == WOULD_EVICT for item in evictions),
        "evicted": [item.result() for item in evictions],
        "gone": run.gone,
        "replacements": [{"controller": item.title, "kind": item.kind, "pods": item.pods} for item in run.replacements],
    }
    if module._diff:
        values["diff"] = {"before": "".join(f"pod {item.title}\n" for item in evictions), "after": ""}
    is_left = not (run.is_over or module.check_mode)
    if run.record.failed or is_left:
        raise Incomplete(_failure(module, run, is_left=is_left), values)
    return values


def _failure(module: Module, run: EvictionRun, *, is_left: bool) -> Failure:
    number, trouble = len(run.record.entries) + len(run.gone), run.trouble
    lasting = trouble if trouble is not None and not trouble.passing else None
    late = is_left and lasting is None
    prefix = f"after {module.params['wait_timeout']} s " if late else ""
    problems = list(_left(run, is_left=is_left))
    return Failure(
        f"evict {number} pod{'' if number == 1 else 's'}",
        run.means.verbs.server,
        prefix + "; ".join(problems),
        lasting.remedy if lasting else _REMEDY,
        status=lasting.status if lasting else None,
        reason=lasting.reason if lasting else "DeadlineExceeded" if late else "EvictionFailed",
        details={"problems": problems},
    )


def _left(run: EvictionRun, *, is_left: bool) -> Iterator[str]:
    """A clause each."""
    for item in run.record.failed:
        yield f"pod {item.title}: {item.result()['refusal']}"
    if is_left:
        yield from (f"pod {item.title}: {item.status()}" for item in run.record.unfinished)
        waiting = () if run.record.unfinished else run.replacements
        yield from (item.status() for item in waiting if not item.done)
        if run.trouble:
            yield run.trouble.at_the_end


def _problems(params: Mapping[str, Any], pods: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not pods:
        yield "pods is empty"
    yield from guard.problems(params)
    yield from name_problems(params, "lease_namespace")
    for namespace, name in pods:
        if not namespace or not name:
            yield f"a pod needs a namespace and a name, got {namespace!r} and {name!r}"
        else:
            yield from name_problems({"namespace": namespace, "name": name}, "namespace", "name")
    for namespace, name in sorted({pod for pod in pods if pods.count(pod) > 1}):
        yield f"pod {namespace}/{name} is named more than once"
    if params["wait_timeout"] < 1:
        yield f"wait_timeout is {params['wait_timeout']}, but at least 1 second is needed"
    grace_period = params["terminate_grace_period"]
    if grace_period is not None and grace_period < 0:
        yield f"terminate_grace_period is {grace_period}, but 0 is the least"

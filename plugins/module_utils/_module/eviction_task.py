# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pod_eviction takes from its task, and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import Moves, MovesRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import WOULD_EVICT, Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    action_id,
)

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


def wanted(params: Mapping[str, Any]) -> list[Action]:
    """In the order of the task, of whichever pods have the names. Raises InvalidRequest."""
    pods = [(entry["namespace"].strip(), entry["name"].strip()) for entry in params["pods"]]
    if problems := list(_problems(params, pods)):
        raise InvalidRequest("evict the pods", problems, "Correct the task; nothing was evicted.")
    return [_action(ObjectReference("Pod", namespace, name, "")) for namespace, name in pods]


def evict(module: Module, client: Client, deadline: Deadline, pods: Sequence[Action], may: May) -> JsonObject:
    """Raises Failure if nothing was evicted, InvalidRequest, and Incomplete unless all are gone and replaced, or would.

    pods: as of `wanted`. may: asked before anything is evicted.
    """
    params, moves = module.params, Moves(pods, migration_rules.check)
    settings = VerbSettings(grace_period=params["terminate_grace_period"], dry_run=module.check_mode)
    run = MovesRun.begin(client, moves, (), settings, Progress.of(params), may)
    run.carry_out(deadline.left, dry_run=module.check_mode)
    values = evicted(module, run)
    if failure := failed(module, run) or (None if run.is_over else run.trouble):
        raise Incomplete(failure, values)
    return values


def evicted(module: Module, run: MovesRun) -> JsonObject:
    """What is returned of the pods."""
    entries = run.of(Evicting)
    acted = [item for item in entries if item.has_acted or item.outcome == WOULD_EVICT]
    values: JsonObject = {
        "changed": bool(acted),
        "evicted": [item.result() for item in entries],
        "gone": [action.object.title for action in run.moves.actions if action.id in run.gone],
        "replacements": [{"controller": item.title, "kind": item.kind, "pods": item.pods} for item in run.replacements],
    }
    if module._diff:
        values["diff"] = {"before": "".join(f"pod {item.title}\n" for item in acted), "after": ""}
    return values


def failed(module: Module, run: MovesRun) -> Failure | None:
    """Why not all pods are gone and replaced, or would be; None if they are."""
    entries = run.of(Evicting)
    is_left = not module.check_mode and (bool(run.awaited) or any(item.unfinished for item in entries))
    if not (is_left or any(item.has_failed for item in entries)):
        return None
    number, trouble = len(entries) + len(run.gone), run.trouble
    lasting = trouble if trouble is not None and not trouble.passing else None
    late = is_left and lasting is None
    prefix = f"after {module.params['wait_timeout']} s " if late else ""
    problems, more = list(_left(run, entries, is_left=is_left)), [trouble.at_the_end] if is_left and trouble else []
    return Failure(
        f"evict {number} pod{'' if number == 1 else 's'}",
        run.means.verbs.server,
        prefix + listed(problems, then=more),
        lasting.remedy if lasting else _REMEDY,
        status=lasting.status if lasting else None,
        reason=lasting.reason if lasting else "DeadlineExceeded" if late else "EvictionFailed",
        details={"problems": [*problems, *more]},
    )


def _left(run: MovesRun, entries: Sequence[Evicting], *, is_left: bool) -> Iterator[str]:
    """A clause each."""
    for item in entries:
        if item.has_failed:
            yield f"pod {item.title}: {item.refusal}"
    if is_left:
        unfinished = [item for item in entries if item.unfinished]
        yield from (f"pod {item.title}: {item.status()}" for item in unfinished)
        yield from () if unfinished else (item.status() for item in run.awaited)


def _action(pod: ObjectReference) -> Action:
    return Action(action_id(1, ActionKind.EVICT, pod), ActionKind.EVICT, 1, "", pod)


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

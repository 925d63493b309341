# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What vmi_replicaset returns: results, diffs, and failures that name each replica and its trouble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.replicas import Replicas
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.replica_sets import (
    ReplicaSet,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.canonical import complete, in_words_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import (
    Outlook,
    Place,
    Replica,
    replica,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.secrets import secrets, without_secrets

# Shorter ones would be struck out of words that have nothing to do with them.
_SHORTEST_SECRET = 8
# Replicas that a sentence names.
_MOST = 10


def conceal(module: Module, template: Object | None) -> None:
    """Let Ansible strike the guests' secrets out of all it prints, such as the options of the task."""
    found = {secret for secret in secrets(template or {}) if len(secret) >= _SHORTEST_SECRET}
    module._module.no_log_values.update(found)


def result_of(module: Module, before: Object | None, after: Object | None, *, changed: bool) -> JsonObject:
    """before, after: the replica set, None where there is none."""
    shown: Object = after or before or {}
    result: JsonObject = {"changed": changed, "result": without_secrets(_tidy(shown))}
    if module._diff:
        old, new = _spec(before), _spec(after)
        worded = in_words_of(old, new)
        result["diff"] = {"before": without_secrets(old), "after": without_secrets(worded, old)}
    return result


def replicas_of(view: Outlook) -> JsonObject:
    """Where the replicas are or would go, and which are outdated."""
    return {
        "replicas": [_entry(one, place) for one, place in view.replicas()],
        "outdated": None if view.outdated is None else list(_outdated(view)),
    }


def unplaceable(server: str, title: str, problems: Sequence[str], result: JsonObject) -> Incomplete:
    failure = Failure(
        f"write replica set {title}",
        server,
        "; ".join(problems),
        "Nothing was written; correct the placement, make room, or set unplaceable=warn.",
        reason="Unplaceable",
    )
    return Incomplete(failure, {**_short(result), "changed": False})


def not_ready(
    module: Module, server: str, replica_set: ReplicaSet, replicas: Replicas, wanted: int, result: JsonObject
) -> Incomplete:
    """The time is over, and the replicas are not as wanted."""
    found = [replica(vmi) for vmi in replicas.vmis]
    ready = sum(one.ready for one in found)
    troubles = [f"{one.name}: {one.message.rstrip('.')}" for one in found if not one.ready]
    troubles = [*_failures(replica_set.stored or {}), *troubles]
    return _late(
        module,
        f"wait for the VMIs of replica set {replica_set.title}",
        server,
        replicas,
        f"{ready} of {wanted} are ready",
        troubles,
        result,
    )


def _failures(stored: Object) -> Iterator[str]:
    """Why virt-controller cannot create or delete VMIs, such as a quota."""
    for condition in (stored.get("status") or {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            yield str(condition.get("message") or condition.get("reason") or "").rstrip(".")


def not_gone(module: Module, server: str, title: str, replicas: Replicas, result: JsonObject) -> Incomplete:
    """The time is over, and VMIs of a deleted replica set are still there."""
    names = [str(vmi["metadata"]["name"]) for vmi in replicas.vmis]
    attempted = f"wait for the end of the VMIs of replica set {title}"
    return _late(module, attempted, server, replicas, f"{len(names)} are still there", names, result)


def _late(
    module: Module,
    attempted: str,
    server: str,
    replicas: Replicas,
    state: str,
    details: list[str],
    result: JsonObject,
) -> Incomplete:
    more = [f"and {len(details) - _MOST} more"] if len(details) > _MOST else []
    away = [replicas.trouble.at_the_end] if replicas.trouble else []
    message = "; ".join([f"after {module.params['wait_timeout']} s {state}", *details[:_MOST], *more, *away])
    remedy = "Remove the cause or raise wait_timeout; KubeVirt goes on by itself, and a second run goes on waiting."
    return Incomplete(Failure(attempted, server, message, remedy, reason="DeadlineExceeded"), _short(result))


def _short(result: JsonObject) -> JsonObject:
    """Without the replica set, behind which the error would be lost on a screen."""
    return {name: part for name, part in result.items() if name != "result"}


def _entry(one: Replica, place: Place | None) -> JsonObject:
    nowhere = place is not None and not place.node
    return {
        "name": one.name,
        "node": one.node or (place.node if place else ""),
        "foretold": bool(place and place.node),
        "ready": one.ready,
        "message": place.message if place and nowhere else one.message,
    }


def _outdated(view: Outlook) -> Iterator[JsonObject]:
    successors = iter(view.successors)
    for vmi in view.outdated or ():
        one, place = replica(vmi), next(successors, None)
        yield {
            "name": one.name,
            "node": one.node,
            "successor_node": place.node if place else "",
            "successor_message": place.message if place else "",
        }


def _spec(item: Object | None) -> Any:
    return complete(item["spec"]) if item else {}


def _tidy(item: Object) -> Object:
    """Without the notes on who wrote which field, which fill screens."""
    metadata = {key: part for key, part in (item.get("metadata") or {}).items() if key != "managedFields"}
    return {**item, "metadata": metadata} if item else {}

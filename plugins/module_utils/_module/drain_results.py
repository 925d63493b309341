# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_drain returns, and the sentences by which it fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.maintenance import NOT_CORDONED
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import fidelity
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import WOULD_EVICT, Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import WOULD, Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import WOULD_MIGRATE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Blocked, Plan

# In the sentence for people; the result has all.
_REMEDIES = {
    "vm": "Remove the cause, or give these VMs a policy.",
    "pod": "Allow these pods to go, or delete them yourself.",
    "node": "Plan smaller batches, or without a reserve.",
}
_KINDS = {"Pod": "pod", "Node": "node"}
# Outcomes that only check mode has.
_WOULD = {WOULD_MIGRATE, WOULD_EVICT, *WOULD.values()}
_FAILED_REMEDY = "Remove the cause and run the task again; it goes on with what is left."
_REFUSED_REMEDY = "Remove the cause. Nothing was changed."
_DEADLINE_REMEDY = "Run the task again to go on, with a longer wait_timeout if it only takes longer."


def lasting(plan: Plan) -> list[Blocked]:
    """What stands against a plan, on any node of the batch, and does not go away by itself."""
    return [entry for entry in plan.blocked if not entry.passing]


def blocked(server: str, node: str, stuck: Sequence[Blocked]) -> Incomplete:
    """The failure before anything is done: VMs that cannot leave, and pods that may not."""
    left = [_of_blocked(entry) for entry in stuck]
    problems = _problems(left)
    remedies = [remedy for kind, remedy in _REMEDIES.items() if any(entry["kind"] == kind for entry in left)]
    failure = Failure(
        f"drain node {node}",
        server,
        listed(problems),
        " ".join(["Nothing was changed.", *remedies]),
        reason="NotDrainable",
        details={"problems": problems},
    )
    return Incomplete(failure, {"changed": False, "moves": [], "evicted": [], "interrupted": [], "left": left})


def not_begun(error: Failure) -> Incomplete:
    """The failure when a node was taken, and nothing has left it yet."""
    return Incomplete(error, {"changed": True, "moves": [], "evicted": [], "interrupted": []})


def result(module: Module, going: NodeDrain, *, changed: bool) -> JsonObject:
    """changed: whether the node was taken for it. Raises Incomplete unless the node is, or would be, empty."""
    is_done = _would_be_done(going) if module.check_mode else going.is_done
    left = [] if is_done else _left(going, tried=not module.check_mode)
    values = _values(module, going, left, changed=changed)
    if not is_done:
        raise Incomplete(_failure(module, going, left), values)
    return values


def _would_be_done(going: NodeDrain) -> bool:
    kept = [entry for entry in lasting(going.plan) if entry.node == going.execution.node]
    leaving = _leaving(going)
    return not kept and all(entry.uid in leaving for entry in going.record.failed)


def broken_off(module: Module, going: NodeDrain, error: Failure | InvalidRequest, *, changed: bool) -> Incomplete:
    """The failure when something went wrong in the middle that trying again does not mend."""
    if isinstance(error, Failure) and error.reason == NOT_CORDONED:
        error = _uncordoned(going, error)
    left = _left(going, tried=not module.check_mode)
    return Incomplete(error, _values(module, going, left, changed=changed))


def _uncordoned(going: NodeDrain, error: Failure) -> Failure:
    """With when that was, as far as looks tell, and what has come to the node.

    Who it was the API server does not know: a field that is taken away stands in nobody's managedFields.
    """
    try:
        newcomers = going.newcomers()
    except Failure:  # that the cordon is gone is what has to be told
        newcomers = ()
    still = f"; it was still cordoned at {_time(going.last_ours)}" if going.last_ours is not None else ""
    come = f"; on it is by now, not there at first: {listed(list(newcomers))}" if newcomers else ""
    return error.replaced(message=error.message + still + come, details={"newcomers": list(newcomers)})


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def verified(server: str, node: str, look: Observation) -> JsonObject:
    """Raises Incomplete unless the node is empty by a look."""
    here = draining.remaining(node, look, None)
    left = [_entry("vm", item.namespace, item.name, "it is on the node", node) for item in here.vmis]
    left += [_entry("pod", item.namespace, item.name, "it is on the node", node) for item in here.launchers]
    left += [
        _entry("pod", item.namespace, item.name, "it is on the node", node) for item in here.pods if not item.tolerates
    ]
    if left:
        problems = _problems(left)
        failure = Failure(
            f"maintain node {node}",
            server,
            f"it is not empty any more: {listed(problems)}",
            "Drain it again; nothing was changed.",
            reason="NotEmpty",
            details={"problems": problems},
        )
        raise Incomplete(failure, {"changed": False, "left": left})
    return {"changed": False, "left": []}


def _values(module: Module, going: NodeDrain, left: list[JsonObject], *, changed: bool) -> JsonObject:
    entries = going.record.entries.values()
    sakes = draining.sakes(going.record, going.planned, going.plan)
    results = [(entry, {**entry.result(), "for_node": sakes[name]}) for name, entry in going.record.entries.items()]
    would = any(entry.outcome in _WOULD for entry in entries)
    node = going.execution.node
    came_true = fidelity(going.planned, node, going.record, going.missed, going.landings, mended=going.plan)
    values: JsonObject = {
        "changed": changed or going.record.has_acted or would,
        "moves": [told for entry, told in results if isinstance(entry, Migrating)],
        "evicted": [told for entry, told in results if isinstance(entry, Evicting)],
        "interrupted": [
            {**told, **_why_not_migrated(going, entry)} for entry, told in results if isinstance(entry, Interrupting)
        ],
        "left": left,
        "as_planned": came_true.as_planned,
        "deviations": [entry.to_json() for entry in came_true.deviations],
    }
    if module.params["document"]:
        values["document"] = to_json(going.plan)
    if module._diff:
        after = [entry["kind"] + " " + entry["namespace"] + "/" + entry["name"] for entry in left]
        values["diff"] = {"before": _lines(going.before), "after": _lines(after)}
    return values


def _why_not_migrated(going: NodeDrain, entry: Interrupting) -> JsonObject:
    """Why its migration failed, where it was tried: the plan only knows that it has."""
    migrating = (other for other in going.record.entries.values() if isinstance(other, Migrating))
    tried = [other for other in migrating if other.uid == entry.uid and other.has_failed]
    words = [f"its migration failed, {other.failure_reason.rstrip('.')}" for other in tried if other.failure_reason]
    return {"why": words[-1]} if words else {}


def _failure(module: Module, going: NodeDrain, left: list[JsonObject]) -> Failure:
    problems = _problems(left)
    late = not (going.is_over or module.check_mode)
    prefix = f"after {module.params['wait_timeout']} s there is left " if late else ""
    if going.failed:
        many = f"more VMs than max_failed_vms have failed for good ({going.failed}), so nothing more was begun"
        prefix = f"{many}; {prefix or 'there is left '}"
    trouble = going.trouble
    more = [trouble.at_the_end] if trouble else []
    return Failure(
        f"drain node {going.execution.node}",
        going.means.verbs.server,
        prefix + (listed(problems, then=more) or "a pod of a VM that is ending"),
        _DEADLINE_REMEDY if late else _REFUSED_REMEDY if module.check_mode else _FAILED_REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late else "DrainFailed",
        details={"problems": [*problems, *more]},
    )


def _left(going: NodeDrain, *, tried: bool) -> list[JsonObject]:
    """VMs first, then pods, each by name. tried: else everything is still there."""
    return sorted(
        _found_left(going, tried=tried), key=lambda entry: (entry["kind"] != "vm", entry["namespace"], entry["name"])
    )


def _found_left(going: NodeDrain, *, tried: bool) -> Iterator[JsonObject]:
    """What is told of an action counts for more than what the plan says."""
    told = set[tuple[str, str]]()
    sakes = draining.sakes(going.record, going.planned, going.plan)
    here = {item.uid for item in going.here.all}
    leaving = _leaving(going)
    for action, entry in going.record.entries.items():
        if entry.has_failed and entry.uid in leaving:
            continue  # in another way by now
        if entry.unfinished or (entry.has_failed and (entry.uid in here or not isinstance(entry, Migrating))):
            told.add((_kind(entry), entry.title))
            yield _entry(_kind(entry), entry.namespace, entry.name, entry.status(), sakes[action])
    for held in draining.hindrances(going.plan, going.here):
        kind = _KINDS.get(held.object.kind, "vm")
        if (kind, held.object.title) not in told:
            told.add((kind, held.object.title))
            yield _of_blocked(held)
    for kind, item, why in draining.present(going.record, going.here) if tried else ():
        if (kind, item.title) not in told:
            yield _entry(kind, item.namespace, item.name, why, going.execution.node)


def _leaving(going: NodeDrain) -> set[str]:
    """Uids of what leaves, or would."""
    entries = going.record.entries.values()
    return {entry.uid for entry in entries if entry.unfinished or entry.outcome in _WOULD}


def _kind(entry: Entry) -> str:
    return "pod" if isinstance(entry, Evicting) else "vm"


def _of_blocked(entry: Blocked) -> JsonObject:
    kind = _KINDS.get(entry.object.kind, "vm")
    return _entry(kind, entry.object.namespace, entry.object.name, "; ".join(entry.reasons), entry.node)


def _entry(kind: str, namespace: str, name: str, why: str, node: str) -> JsonObject:
    """node: for whose maintenance it was to leave."""
    return {"kind": kind, "namespace": namespace, "name": name, "why": why.rstrip("."), "for_node": node}


def _problems(left: Iterable[JsonObject]) -> list[str]:
    return [f"{entry['kind']} {_title(entry)}: {entry['why']}" for entry in left]


def _title(entry: JsonObject) -> str:
    return f"{entry['namespace']}/{entry['name']}" if entry["namespace"] else str(entry["name"])


def _lines(titles: Iterable[str]) -> str:
    return "".join(f"{title}\n" for title in titles)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_drain returns: what has left and how, what is left and why, and the failure that says it in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain_run import DrainRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Leaver, Stuck
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import WOULD_EVICT, Eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import WOULD, Interruption
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.move import PLANNED
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module

if TYPE_CHECKING:
    from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_task import DrainTask

Result = dict[str, Any]

_PLANNED = frozenset({PLANNED, WOULD_EVICT, *WOULD.values()})
_FAILED = "failed"  # of whatever leaves
# In the sentence for people; the result has all.
_MOST = 10
_REMEDIES = {
    "vm": "Remove the cause, or give these VMs a policy.",
    "pod": "Allow these pods to go, or delete them yourself.",
}
_FAILED_REMEDY = "Remove the cause and run the task again; it goes on with what is left."
_REFUSED_REMEDY = "Remove the cause. Nothing was changed."
_DEADLINE_REMEDY = "Run the task again to go on, with a longer wait_timeout if it only takes longer."


@dataclass
class History:
    """Attempts that are over.

    before: titles of all that was to leave at first. pods: uids of the pods among it. The others: results by title.
    """

    before: list[str]
    pods: list[str]
    moves: dict[str, Result] = field(default_factory=dict)
    evicted: dict[str, Result] = field(default_factory=dict)
    interrupted: dict[str, Result] = field(default_factory=dict)
    changed: bool = False

    def keep(self, run: DrainRun) -> None:
        """What an attempt came to; a later attempt with the same VM or pod takes its place."""
        self.moves |= {move.title: move.result() for move in run.migrations.moves}
        self.evicted |= {item.title: item.result() for item in run.evictions.evictions}
        self.interrupted |= {item.title: item.result() for item in run.interruptions.interruptions}
        self.changed = self.changed or _has_changed(run)

    def to_json(self) -> Result:
        return asdict(self)


def result(module: Module, task: DrainTask) -> Result:
    """Raises Incomplete unless the node is, or would be, empty."""
    is_empty = not _refused(task.run) if module.check_mode else task.is_over
    left = [] if is_empty else list(_left(task.run, task.leaving))
    values = _values(module, task, left)
    if not is_empty:
        raise Incomplete(_failure(module, task, left), values)
    return values


def broken_off(module: Module, task: DrainTask, error: Failure | Mistake) -> Incomplete:
    """The failure when something went wrong in the middle that trying again does not mend."""
    left = list(_left(task.run, task.leaving))
    return Incomplete(error, _values(module, task, left))


def _values(module: Module, task: DrainTask, left: list[Result]) -> Result:
    history = task.history
    history.keep(task.run)
    values: Result = {
        "changed": history.changed,
        "moves": list(history.moves.values()),
        "evicted": list(history.evicted.values()),
        "interrupted": list(history.interrupted.values()),
        "left": left,
    }
    if module._diff:
        after = [entry["kind"] + " " + entry["namespace"] + "/" + entry["name"] for entry in left]
        values["diff"] = {"before": _lines(history.before), "after": _lines(after)}
    return values


def blocked(server: str, node: str, stuck: Sequence[Stuck]) -> Incomplete:
    """The failure before anything is done: VMs that cannot leave, and pods that may not."""
    left = [_entry(item.kind, item.namespace, item.name, item.why) for item in stuck]
    problems = list(map(str, stuck))
    remedies = [remedy for kind, remedy in _REMEDIES.items() if any(item.kind == kind for item in stuck)]
    failure = Failure(
        f"drain node {node}",
        server,
        _listed(problems),
        " ".join(["Nothing was changed.", *remedies]),
        reason="NotDrainable",
        details={"problems": problems},
    )
    return Incomplete(failure, {"changed": False, "moves": [], "evicted": [], "interrupted": [], "left": left})


def _failure(module: Module, task: DrainTask, left: list[Result]) -> Failure:
    problems = [f"{entry['kind']} {entry['namespace']}/{entry['name']}: {entry['why']}" for entry in left]
    late = not (task.has_failed or module.check_mode)
    prefix = f"after {module.params['wait_timeout']} s there is left " if late else ""
    trouble = task.run.trouble
    if trouble:
        problems.append(trouble.message)
    return Failure(
        f"drain node {task.settings.node}",
        task.client.server,
        prefix + (_listed(problems) or "a pod of a VM that is ending"),
        _DEADLINE_REMEDY if late else _REFUSED_REMEDY if module.check_mode else _FAILED_REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late else "DrainFailed",
        details={"problems": problems},
    )


def _refused(run: DrainRun) -> bool:
    return any(item.outcome == _FAILED for item in run.leavers)


def _left(run: DrainRun, leaving: Departures) -> Iterator[Result]:
    for item in run.leavers:
        if item.unfinished or item.outcome == _FAILED:
            yield _entry(_kind(item), item.namespace, item.name, item.status())
    for stuck in leaving.stuck:
        yield _entry(stuck.kind, stuck.namespace, stuck.name, stuck.why)
    for title, why in leaving.waiting.items():
        namespace, _slash, name = title.partition("/")
        yield _entry("vm", namespace, name, why)


def _kind(item: Leaver) -> str:
    return "pod" if isinstance(item, Eviction) else "vm"


def _entry(kind: str, namespace: str, name: str, why: str) -> Result:
    return {"kind": kind, "namespace": namespace, "name": name, "why": why.rstrip(".")}


def _has_changed(run: DrainRun) -> bool:
    return run.migrations.has_created or any(item.outcome in _PLANNED or _was_asked_for(item) for item in run.leavers)


def _was_asked_for(item: Leaver) -> bool:
    """Whether a pod or VM ends because of this task; a refused eviction changes nothing."""
    if isinstance(item, Eviction):
        return bool(item.asked_at) and not item.held_back and item.outcome != _FAILED
    return isinstance(item, Interruption) and bool(item.begun_at)


def _listed(problems: list[str]) -> str:
    more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
    return "; ".join(problems[:_MOST]) + more


def _lines(titles: Iterable[str]) -> str:
    return "".join(f"{title}\n" for title in titles)

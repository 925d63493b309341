# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the VMs again that were stopped for a node, and see that they run; replica sets are only waited for.

One that the node notes and that bears no mark is not started, as nothing tells with what: it is seen to run, or named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import now, read_header
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun, Teller
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import Verbs
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.machines import forget
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import (
    StoppedNote,
    find_marks,
    find_notes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    Plan,
    PlannedCluster,
    PlannedFrom,
    plan_of,
)

# The names of lists in a snapshot.
_LISTS = {VM: "vms", VMI_REPLICA_SET: "vmireplicasets"}


def start_run(
    client: Client,
    node: str,
    owner: str,
    guard: Callable[[Collection[str]], None],
    teller: Teller,
    planned: Callable[[], Plan | None] | None = None,
    *,
    dry_run: bool = False,
    tells_source: bool = False,
) -> PlanRun:
    """What starts all again that the owner has stopped for a node, with none of it done yet. Raises Failure.

    What the node notes of VMs that are gone, or were stopped for another node since, is forgotten. planned: reads the
    plan that the run goes by, if there is one; asked only where there may be an order. tells_source: whether the plan
    says what it was made from, which takes three more requests.
    """
    taken, lists = now(), _found(client, node, owner)
    marked = [_reference(kind, item) for kind in objects.RESOURCES for item in lists[_LISTS[kind]]]
    known = {reference.uid for reference in marked}
    notes = [note for item in lists["nodes"] for note in find_notes(item)]
    unmarked = [note for note in notes if note.owner == owner and note.uid not in known]
    noted = [_noted(client, node, note) for note in unmarked]
    for note, vm in zip(unmarked, noted, strict=True):
        if vm is None:
            # A dry run holds no run.
            ours = client if dry_run else client.guarded(lambda: guard(()))
            forget(ours, node, note.uid, dry_run=dry_run)
    lost = [vm for vm in noted if vm is not None]
    references = [*marked, *(_reference(VM, vm) for vm in lost)]
    plan = planned() if planned is not None and len(references) > 1 else None
    starts = plan_of(_in_turn(references, node, plan))
    if tells_source:
        header = read_header(client, {**lists, _LISTS[VM]: [*lists[_LISTS[VM]], *lost]}, taken)
        starts = replace(starts, cluster=PlannedCluster.of(header), snapshot=PlannedFrom.of(header))
    return PlanRun(
        Means(StartLooks(client), Verbs(client, VerbSettings(dry_run=dry_run)), guard, teller),
        Execution(node="", run="", kinds=frozenset({ActionKind.START})),
        starts,
    )


class StartLooks:
    """Looks at each VM or replica set by itself, and at its VMI, as nothing of them may be watched."""

    def __init__(self, client: Client) -> None:
        self._inquiries = Inquiries(client, unschedulable_timeout=0)
        self._is_due = True

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """What was stopped for a node is on none."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        """After some seconds, at once the first time. Raises Failure."""
        wait = min(seconds, self._inquiries.ask_scheduler(questions))
        if not self._is_due:
            time.sleep(max(0.0, wait))
        found = self._inquiries.observe(questions, (), ())
        self._is_due = False
        return found

    def forget(self) -> None:
        """Let the next look not wait."""
        self._is_due = True


def _found(client: Client, node: str, owner: str) -> dict[str, list[JsonObject]]:
    """What tells whom the owner has stopped for a node, by the lists of a snapshot: who is marked, and the node."""
    found = {_LISTS[kind]: list(_marked(client, kind, node, owner)) for kind in objects.RESOURCES}
    noted = objects.find(client, object_path("v1", None, "nodes", node), f"read node {node}")
    return {**found, "nodes": [noted] if noted else []}


def _marked(client: Client, kind: str, node: str, owner: str) -> Iterator[JsonObject]:
    for item in objects.stopped(client, kind):
        mark = find_marks(item).get(node)
        if mark and mark.owner == owner:
            yield item


def _reference(kind: str, item: JsonObject) -> ObjectReference:
    metadata = item["metadata"]
    return ObjectReference(kind, metadata["namespace"], metadata["name"], metadata["uid"])


def _noted(client: Client, node: str, note: StoppedNote) -> JsonObject | None:
    """Its VM, if that is there, and not another one of its name, and its own marks say nothing else."""
    vm = objects.find_owner(client, VM, note.namespace, note.name)
    marks = find_marks(vm) if vm else {}
    says_so = not marks or (node in marks and marks[node].owner == note.owner)
    return vm if vm is not None and vm["metadata"]["uid"] == note.uid and says_so else None


def _in_turn(references: Sequence[ObjectReference], node: str, plan: Plan | None) -> Iterator[Action]:
    """Each VM waits for those of the node that the plan starts before it, and goes where the plan has it.

    It waits for none of another node, as that may stay away.
    """
    ids = {reference.title: _id(reference) for reference in references if reference.kind == VM}
    planned = [action for action in plan.of_node(node) if action.kind is ActionKind.START] if plan else []
    titles = {action.id: action.object.title for action in planned}
    before = {
        action.object.title: [ids[title] for title in map(titles.get, action.after) if title in ids]
        for action in planned
    }
    targets = {action.object.title: action.target for action in planned}
    turns = {title: number for number, title in enumerate(before)}
    for reference in sorted(references, key=lambda each: turns.get(each.title, len(turns))):
        title = reference.title if reference.kind == VM else ""
        yield Action(
            id=_id(reference),
            kind=ActionKind.START,
            batch=1,
            node=node,
            object=reference,
            target=targets.get(title),
            after=tuple(before.get(title, ())),
            why="It was stopped until its node is back.",
        )


def _id(reference: ObjectReference) -> str:
    """A replica set may have the name of a VM."""
    return f"start.{reference.kind}.{reference.title}"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the actions of a plan began and ended, by the API server's own count of its writes, and whether that was right.

All that a testbed has is kept in one etcd, so that of any two writes the one with the higher resource version is later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import SUCCEEDED, is_finished

from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS
from integration.journeys import Way, way
from testbed.api import Object, resource_path
from testbed.watches import Watches

NODE, POD, MIGRATION = "Node", "Pod", "VirtualMachineInstanceMigration"
VM, VMI = "VirtualMachine", "VirtualMachineInstance"
# Which the maintenance of a node gives it, with the run's name.
MARK = "tests.virtops.kubevirt/maintained-by"


@dataclass(frozen=True)
class Event:
    """An object as it was written; `deleted`: for the last time."""

    kind: str
    item: Object
    deleted: bool = False

    @property
    def version(self) -> int:
        return int(self.item["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.item["metadata"]["uid"])

    @property
    def title(self) -> str:
        metadata = self.item["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])

    @property
    def annotations(self) -> Object:
        return self.item["metadata"].get("annotations") or {}

    @property
    def status(self) -> Object:
        return self.item.get("status") or {}

    @property
    def node(self) -> str:
        """Of a pod or VMI; empty if it has none yet."""
        found = self.item["spec"].get("nodeName") if self.kind == POD else self.status.get("nodeName")
        return str(found or "")

    @property
    def is_over(self) -> bool:
        return self.deleted or is_finished(self.status.get("phase"))

    @property
    def is_ending(self) -> bool:
        return self.is_over or "deletionTimestamp" in self.item["metadata"]

    @property
    def owners(self) -> dict[str, str]:
        """Their kinds, by uid."""
        return {owner["uid"]: owner["kind"] for owner in self.item["metadata"].get("ownerReferences", ())}


class Chronicle(Watches):
    """Watches nodes, pods, VMIs and migrations, or some of them. `events`: of each kind in their order."""

    def __init__(self, kubeconfig: Path, kinds: Collection[str] = (NODE, POD, VMI, MIGRATION)) -> None:
        self.events: list[Event] = []
        paths = {
            NODE: resource_path("v1", "nodes"),
            POD: resource_path("v1", "pods"),
            VMI: resource_path(KUBEVIRT, VMIS),
            MIGRATION: resource_path(KUBEVIRT, MIGRATIONS),
        }
        super().__init__(kubeconfig, {kind: paths[kind] for kind in kinds})

    def see(self, name: str, event: Object) -> None:
        self.events.append(Event(name, event["object"], deleted=event["type"] == "DELETED"))


@dataclass(frozen=True)
class Span:
    """Versions of the writes with which an action began, at the latest, and ended, at the earliest."""

    begun: int
    ended: int


def disorder(actions: Iterable[Object], spans: Mapping[str, Span]) -> Iterator[str]:
    """For each action of a plan's document that did not wait for one of its `after`, a sentence.

    spans: by ids of actions; who has none is not judged.
    """
    for action in actions:
        for name in action["after"]:
            own, other = spans.get(action["id"]), spans.get(name)
            if own and other and not other.ended < own.begun:
                yield f"{action['id']} began with write {own.begun}, and {name} ended with {other.ended}"


def find_spans(
    actions: Sequence[Object], events: Iterable[Event], run: str, departed: Mapping[str, str]
) -> dict[str, Span]:
    """By the ids of those actions of a plan's document of which the events tell both ends.

    departed: the uid of what left by each eviction, stop and restart, by their ids. A migration is told from others of
    its VM by where it went. Nobody starts a VMI of a replica set, which makes one as soon as it lacks one.
    """
    book = _Book(events, run, departed)
    found = ((action["id"], _READERS[action["kind"]](book, action)) for action in actions)
    return {name: Span(begun, ended) for name, (begun, ended) in found if begun is not None and ended is not None}


_Ends = tuple[int | None, int | None]
# All that was written of one object, in its order.
_Life = Sequence[Event]


class _Book:
    """`lives`: by uid."""

    def __init__(self, events: Iterable[Event], run: str, departed: Mapping[str, str]) -> None:
        self.lives: dict[str, list[Event]] = {}
        for event in sorted(events, key=lambda event: event.version):
            self.lives.setdefault(event.uid, []).append(event)
        self.run = run
        self.departed = departed

    def cordoned(self, action: Object) -> _Ends:
        return _at_once(_when(self._node(action), _is_cordoned))

    def maintained(self, action: Object) -> _Ends:
        return _at_once(_when(self._node(action), lambda event: event.annotations.get(MARK) == self.run))

    def uncordoned(self, action: Object) -> _Ends:
        life = self._node(action)
        cordoned = _when(life, _is_cordoned)
        return _at_once(cordoned and _when(life, lambda event: event.version > cordoned and not _is_cordoned(event)))

    def left(self, action: Object) -> _Ends:
        """Of a pod, or of a VMI and its pod."""
        uid = self.departed.get(action["id"], "")
        life = self.lives.get(uid, ())
        return _when(life, lambda event: event.is_ending), _last(_over(life), *self._pods(uid, action["from"]))

    def migrated(self, action: Object) -> _Ends:
        """It is over when the VMI is there, or its migration says so, and the pod that it came from has ended."""
        wanted = way(action)
        journey = next((life for life in self._of(MIGRATION) if self._went(life, wanted)), None)
        if journey is None:
            return None, None
        begun = journey[0].version
        for life in self._of(VMI, wanted.vm):
            there = _when(life, lambda event: event.version > begun and event.node == wanted.target)
            if there is not None:
                arrived = min(version for version in (there, _over(journey)) if version is not None)
                return begun, _last(arrived, *self._pods(life[0].uid, wanted.source, begun))
        return begun, None

    def started(self, action: Object) -> _Ends:
        """As the next VMI with the name of the one that was stopped."""
        title = f"{action['object']['namespace']}/{action['object']['name']}"
        stopped = [self.lives.get(self.departed.get(name, ""), ()) for name in action["after"]]
        gone = next((_over(life) for life in stopped if life and life[0].title == title), None)
        lives = [life for life in self._of(VMI, title) if gone is not None and life[0].version > gone]
        if not lives or VM not in lives[0][0].owners.values():
            return None, None
        return lives[0][0].version, _when(lives[0], lambda event: event.status.get("phase") == "Running")

    def _node(self, action: Object) -> _Life:
        return next(self._of(NODE, action["object"]["name"]), ())

    def _of(self, kind: str, title: str | None = None) -> Iterator[_Life]:
        lives = (life for life in self.lives.values() if life[0].kind == kind)
        return (life for life in lives if title in (None, life[0].title))

    def _went(self, life: _Life, wanted: Way) -> bool:
        """Whether it is the migration of the run that went this way."""
        last = life[-1]
        state = last.status.get("migrationState") or {}
        vm = f"{last.item['metadata']['namespace']}/{last.item['spec']['vmiName']}"
        found = Way(vm, state.get("sourceNode", ""), state.get("targetNode", ""))
        labels = last.item["metadata"].get("labels", {})
        return labels.get(RUN_LABEL) == self.run and last.status.get("phase") == SUCCEEDED and found == wanted

    def _pods(self, vmi: str, node: str, before: int | None = None) -> Iterator[int | None]:
        """When the pods of a VMI ended on a node. before: those that were made before this write."""
        for life in self._of(POD):
            is_early = before is None or life[0].version < before
            if is_early and vmi in life[0].owners and any(event.node == node for event in life):
                yield _over(life)


def _when(life: _Life, fits: Callable[[Event], bool]) -> int | None:
    return next((event.version for event in life if fits(event)), None)


def _over(life: _Life) -> int | None:
    return _when(life, lambda event: event.is_over)


def _at_once(version: int | None) -> _Ends:
    return version, version


def _last(*versions: int | None) -> int | None:
    """None if one of them is not known."""
    known = [version for version in versions if version is not None]
    return max(known) if len(known) == len(versions) else None


def _is_cordoned(event: Event) -> bool:
    return bool(event.item["spec"].get("unschedulable"))


_READERS: Mapping[str, Callable[[_Book, Object], _Ends]] = {
    "cordon": _Book.cordoned,
    "migrate": _Book.migrated,
    "evict": _Book.left,
    "stop": _Book.left,
    "restart": _Book.left,
    "maintain": _Book.maintained,
    "uncordon": _Book.uncordoned,
    "start": _Book.started,
}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What left its node for good, as the API server told it: pods and VMIs that were deleted, and where they were."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference, kin

from integration.clusters import KUBEVIRT, VMIS
from testbed.api import Api, Object, resource_path

POD, VMI = "Pod", "VirtualMachineInstance"
# Owners of pods that drains leave alone, or that come and go with a VM.
_OTHERS = frozenset({"DaemonSet", "Node", VMI, POD})
# How long one watch lasts before the next goes on from its last event, and so how long the end may take.
_SECONDS = 2.0


@dataclass(frozen=True, order=True)
class Departure:
    """`node`: the last one that it was seen on."""

    kind: str
    namespace: str
    name: str
    uid: str
    node: str

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


class Departures:
    """Watches all pods and VMIs within a `with` statement. A watch that broke off is an error: something was missed."""

    def __init__(self, kubeconfig: Path) -> None:
        self.found: list[Departure] = []
        self._paths = {POD: resource_path("v1", "pods"), VMI: resource_path(KUBEVIRT, VMIS)}
        self._apis = {kind: Api(kubeconfig) for kind in self._paths}
        self._first = {kind: self._apis[kind].get(path) for kind, path in self._paths.items()}
        self._nodes: dict[str, str] = {}
        self._watches: dict[str, Future[None]] = {}
        self._over = threading.Event()

    def __enter__(self) -> Self:
        pool = ThreadPoolExecutor(len(self._paths))
        self._watches = {kind: pool.submit(self._watch, kind) for kind in self._paths}
        pool.shutdown(wait=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        gaps = [f"{kind}: {watch.exception()!r}" for kind, watch in self._watches.items() if watch.exception()]
        for api in self._apis.values():
            api.close()
        if gaps and error is None:
            raise AssertionError(f"The history has a gap: {'; '.join(gaps)}.")

    def _watch(self, kind: str) -> None:
        for item in self._first[kind]["items"]:
            self._see(kind, {"type": "ADDED", "object": item})
        version = self._first[kind]["metadata"]["resourceVersion"]
        last = False
        while not last:
            # One more watch after the end was called tells what came before it.
            last = self._over.is_set()
            for event in self._apis[kind].changes(self._paths[kind], version, _SECONDS):
                if event["type"] == "ERROR":
                    raise RuntimeError(event["object"].get("message"))
                self._see(kind, event)
                version = event["object"]["metadata"]["resourceVersion"]

    def _see(self, kind: str, event: Object) -> None:
        item = event["object"]
        metadata = item["metadata"]
        owners = {owner["kind"] for owner in metadata.get("ownerReferences", ())}
        if kind == POD and owners & _OTHERS:
            return
        node = item["spec"].get("nodeName") if kind == POD else (item.get("status") or {}).get("nodeName")
        if node:
            self._nodes[metadata["uid"]] = node
        if event["type"] == "DELETED":
            here = self._nodes.get(metadata["uid"], "")
            self.found.append(Departure(kind, metadata["namespace"], metadata["name"], metadata["uid"], here))


def otherwise(actions: Sequence[Object], found: Iterable[Departure]) -> Iterator[tuple[str, str]]:
    """The title of each pod or VMI that left otherwise than the actions of a plan's document say, and what is wrong.

    Of evictions, stops and restarts. What a plan only foretold, without a uid, has become one of its kin.
    """
    left = {departure.uid: departure for departure in found if departure.node}
    leaving = [action for action in actions if action["kind"] in ("evict", "stop", "restart")]
    for action in sorted(leaving, key=lambda action: not action["object"]["uid"]):
        departure = left.get(action["object"]["uid"]) or _of_kin(action, left.values())
        title = f"{action['object']['namespace']}/{action['object']['name']}"
        if departure is None:
            yield title, f"{action['id']} has not come about"
        else:
            del left[departure.uid]
            if departure.node != action["from"]:
                yield title, f"{action['id']} was on {departure.node}, not on {action['from']}"
    nodes = {action["node"] for action in actions}
    for departure in sorted(left.values()):
        if departure.node in nodes:
            yield departure.title, f"nobody planned that {departure.kind} {departure.title} leaves {departure.node}"


def _of_kin(action: Object, found: Iterable[Departure]) -> Departure | None:
    """One that the plan foretold, from the node that it foretold."""
    reference = ObjectReference(*(action["object"][key] for key in ("kind", "namespace", "name", "uid")))
    if reference.uid:
        return None
    for departure in sorted(found):
        own = ObjectReference(departure.kind, departure.namespace, departure.name, "")
        same = departure.name == reference.name or kin(own) == kin(reference)
        if same and (departure.kind, departure.namespace) == (reference.kind, reference.namespace):
            return departure
    return None

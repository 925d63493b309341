# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What left its node for good, as the API server told it: pods and VMIs that were deleted, and where they were.

And where all came up that it has shown: what the scheduler has placed in their stead is among it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference, kin

from integration.clusters import KUBEVIRT, VMIS
from testbed.api import Object, resource_path
from testbed.watches import Watches

POD, VMI = "Pod", "VirtualMachineInstance"
# Owners of pods that drains leave alone, or that come and go with a VM.
_OTHERS = frozenset({"DaemonSet", "Node", VMI, POD})
# Kinds of actions by which something ends.
LEAVING = ("evict", "stop", "restart")


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


class Departures(Watches):
    """Watches all pods and VMIs. `found`: in their order. `arrived`: all of them, by uid, with their first nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self.found: list[Departure] = []
        self.arrived: dict[str, Departure] = {}
        self._nodes: dict[str, str] = {}
        super().__init__(kubeconfig, {POD: resource_path("v1", "pods"), VMI: resource_path(KUBEVIRT, VMIS)})

    def see(self, name: str, event: Object) -> None:
        item = event["object"]
        metadata = item["metadata"]
        owners = {owner["kind"] for owner in metadata.get("ownerReferences", ())}
        if name == POD and owners & _OTHERS:
            return
        node = item["spec"].get("nodeName") if name == POD else (item.get("status") or {}).get("nodeName")
        if node:
            self._nodes[metadata["uid"]] = node
            seen = Departure(name, metadata["namespace"], metadata["name"], metadata["uid"], node)
            self.arrived.setdefault(metadata["uid"], seen)
        if event["type"] == "DELETED":
            here = self._nodes.get(metadata["uid"], "")
            self.found.append(Departure(name, metadata["namespace"], metadata["name"], metadata["uid"], here))


def paired(actions: Iterable[Object], found: Iterable[Departure]) -> dict[str, Departure]:
    """Who left by each eviction, stop and restart of a plan's document, by the ids of these actions.

    What a plan only foretold, without a uid, has become one of its kin, and of these rather one that was on the node
    that was foretold.
    """
    left = sorted(departure for departure in found if departure.node)
    leaving = [action for action in actions if action["kind"] in LEAVING]
    pairs: dict[str, Departure] = {}
    for fits in (_is_itself, _is_foretold, _is_of_its_kin):
        for action in leaving:
            departure = next((departure for departure in left if fits(action, departure)), None)
            if action["id"] not in pairs and departure is not None:
                pairs[action["id"]] = departure
                left.remove(departure)
    return pairs


@dataclass(frozen=True)
class Stray:
    """Who left otherwise than planned, or did not, and how. uid: as in the plan, or of who left unplanned.

    kind, why: of its action; empty if there is none.
    """

    title: str
    uid: str
    what: str
    kind: str = ""
    why: str = ""


def otherwise(actions: Sequence[Object], found: Collection[Departure]) -> Iterator[Stray]:
    """Of pods and VMIs that a plan's document has leave by eviction, stop or restart, and of who left its nodes so."""
    pairs = paired(actions, found)
    for action in actions:
        title, uid = f"{action['object']['namespace']}/{action['object']['name']}", action["object"]["uid"]
        departure = pairs.get(action["id"])
        if action["kind"] in LEAVING and departure is None:
            yield Stray(title, uid, f"{action['id']} has not come about", action["kind"], action["why"])
        elif departure is not None and departure.node != action["from"]:
            what = f"{action['id']} was on {departure.node}, not on {action['from']}"
            yield Stray(title, uid, what, action["kind"], action["why"])
    nodes, known = {action["node"] for action in actions}, set(pairs.values())
    for departure in found:
        if departure.node in nodes and departure not in known:
            what = f"nobody planned that {departure.kind} {departure.title} leaves {departure.node}"
            yield Stray(departure.title, departure.uid, what)


def come_elsewhere(actions: Sequence[Object], arrived: Iterable[Departure]) -> Iterator[tuple[str, str]]:
    """The title of each pod or VMI in whose place nothing has come to the node that a plan's document tells.

    Of evictions, restarts and starts of which nothing is assumed.
    """
    seen = [*arrived]
    for action in actions:
        if action["kind"] in ("evict", "restart", "start") and action["to"] and not action["assumed"]:
            wanted = ObjectReference(*(action["object"][key] for key in ("kind", "namespace", "name", "uid")))
            kind = POD if action["kind"] == "evict" else VMI
            nodes = {entry.node for entry in seen if _comes_for(wanted, entry, kind)}
            if action["to"] not in nodes:
                where = ", ".join(sorted(nodes)) or "no node"
                yield wanted.title, f"{action['id']} comes to {where}, not to {action['to']}"


def _comes_for(wanted: ObjectReference, entry: Departure, kind: str) -> bool:
    """Whether it is another one of the same owner."""
    own = ObjectReference(kind, entry.namespace, entry.name, "")
    another = entry.uid != wanted.uid and (entry.kind, entry.namespace) == (kind, wanted.namespace)
    return another and (own.name == wanted.name or kin(own) == kin(replace(wanted, kind=kind)))


def _is_itself(action: Object, departure: Departure) -> bool:
    return bool(action["object"]["uid"] == departure.uid)


def _is_foretold(action: Object, departure: Departure) -> bool:
    return departure.node == action["from"] and _is_of_its_kin(action, departure)


def _is_of_its_kin(action: Object, departure: Departure) -> bool:
    wanted = ObjectReference(*(action["object"][key] for key in ("kind", "namespace", "name", "uid")))
    own = ObjectReference(departure.kind, departure.namespace, departure.name, "")
    if wanted.uid or (own.kind, own.namespace) != (wanted.kind, wanted.namespace):
        return False
    return own.name == wanted.name or kin(own) == kin(wanted)

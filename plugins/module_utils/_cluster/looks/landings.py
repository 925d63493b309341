# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at where pods come up again that are evicted, and VMs that were stopped.

Of pods that takes a list of each namespace before, and some at the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    API_VERSION,
    VMIS,
    node_of,
    read_node,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import collection_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import Landings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
    JsonObject,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference

_PAUSE = 0.5


class LandingLook:
    """What controllers make from now on, and have made for pods that are gone. Raises Failure when it is made."""

    def __init__(self, client: Client, pods: Iterable[ObjectReference], clock: Clock | None = None) -> None:
        """pods: that are to be evicted, or were."""
        self._client, self._clock = client, clock or Clock()
        wanted = {pod.uid: pod for pod in pods if pod.uid}
        self._namespaces = sorted({pod.namespace for pod in wanted.values()})
        before = self._pods()
        self._known = {pod["metadata"]["uid"] for pod in before}
        self._controllers = {pod["metadata"]["uid"]: owner["uid"] for pod in before if (owner := controller(pod))}
        gone = [pod for uid, pod in wanted.items() if uid not in self._known]
        for pod in gone:
            beside = [other for other in before if other["metadata"]["namespace"] == pod.namespace]
            names = [other.name for other in gone if other.namespace == pod.namespace]
            if (found := Replacement.of_gone(pod.name, names, beside, ready=True)) is not None:
                own = {uid for uid, owner in self._controllers.items() if owner == found.controller}
                self._known -= own.difference(found.known)
                self._controllers[pod.uid] = found.controller

    def landings(self, evicted: Collection[str], targets: Collection[str], seconds: float) -> Landings:
        """What has come instead, waiting so long until everything has a node. Nothing is raised.

        evicted: uids of pods. targets: where they are expected.
        """
        wanted = Counter(self._controllers[uid] for uid in evicted if uid in self._controllers)
        ends_at = self._clock.steady() + seconds
        try:
            came = self._came()
            while any(sum(map(bool, came[name])) < count for name, count in wanted.items()):
                left = ends_at - self._clock.steady()
                if left <= 0:
                    break
                self._clock.sleep(min(left, _PAUSE))
                came = self._came()
            unmet = set(targets).difference(*came.values())
            return Landings(self._controllers, came, closed_nodes(self._client, unmet))
        except Failure as error:
            return Landings(self._controllers, {}, trouble=str(error).rstrip("."))

    def _came(self) -> defaultdict[str, list[str]]:
        """By controller, the nodes of the pods that were not there before."""
        came: defaultdict[str, list[str]] = defaultdict(list)
        for pod in self._pods():
            owner = controller(pod)
            if owner and pod["metadata"]["uid"] not in self._known:
                came[owner["uid"]].append(str(pod["spec"].get("nodeName") or ""))
        return came

    def _pods(self) -> list[JsonObject]:
        found: list[JsonObject] = []
        for name in self._namespaces:
            found += self._client.get(collection_path("v1", name, "pods"), f"list pods in namespace {name}")["items"]
        return found


def landings_of_starts(client: Client, started: Iterable[Starting], targets: Mapping[str, Collection[str]]) -> Landings:
    """Where those run that have started again. Nothing is raised.

    targets: the nodes where they are expected, by uid of the VM or replica set; of a replica set as many of its
    youngest VMIs count.
    """
    wanted, trouble = [entry for entry in started if entry.uid in targets], ""
    came = {entry.uid: [entry.node] for entry in wanted if entry.kind != VMI_REPLICA_SET}
    try:
        for entry in wanted:
            if entry.kind == VMI_REPLICA_SET:
                came[entry.uid] = _youngest(client, entry, len(targets[entry.uid]))
    except Failure as error:
        trouble = str(error).rstrip(".")
    unmet = {node for nodes in targets.values() for node in nodes}.difference(*came.values())
    return Landings({uid: uid for uid in targets}, came, closed_nodes(client, unmet), trouble)


def _youngest(client: Client, entry: Starting, number: int) -> list[str]:
    """The nodes of so many VMIs of a replica set."""
    path = collection_path(API_VERSION, entry.namespace, VMIS)
    found = client.get(path, f"list VMIs in namespace {entry.namespace}")["items"]
    own = [
        vmi
        for vmi in found
        if (controller(vmi) or {}).get("uid") == entry.uid and not vmi["metadata"].get("deletionTimestamp")
    ]
    own.sort(key=lambda vmi: (str(vmi["metadata"].get("creationTimestamp") or ""), str(vmi["metadata"]["name"])))
    return [node_of(vmi) for vmi in own[max(0, len(own) - number) :]]


def closed_nodes(client: Client, names: Iterable[str]) -> dict[str, str]:
    """By node, why nothing may come to it; of those that are open, or that nobody could look at, nothing."""
    found = {}
    for name in sorted(names):
        try:
            why = _why_closed(read_node(client, name))
        except Failure as error:
            why = "is not there any more" if error.gone else ""
        if why:
            found[name] = f"{name} {why}"
    return found


def _why_closed(node: JsonObject) -> str:
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_down = any(entry["type"] == "Ready" and entry["status"] != "True" for entry in conditions)
    return "is not Ready" if is_down else ""

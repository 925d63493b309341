# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that come in place of those that were evicted, counted by the controller that makes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, controller


@dataclass
class Replacement:
    """Everything in it is JSON. controller: its uid. ready: how many of its pods were ready at first.

    known: uids of the pods it had then. pods: those that it has beside them now, `namespace/name` by their order.
    """

    controller: str
    kind: str
    title: str
    ready: int
    known: list[str]
    pods: list[dict[str, str]] = field(default_factory=list)
    done: bool = False

    @classmethod
    def of(cls, pod: Object, pods: Iterable[Object]) -> Replacement | None:
        """Of a pod, among all pods of its namespace; None if nothing makes it anew."""
        owner = controller(pod)
        if owner is None:
            return None
        own = [other for other in pods if (controller(other) or {}).get("uid") == owner["uid"]]
        title = f"{pod['metadata']['namespace']}/{owner['name']}"
        uids = [other["metadata"]["uid"] for other in own]
        return cls(owner["uid"], owner["kind"], title, sum(map(is_ready, own)), uids)

    def look(self, pods: Iterable[Object]) -> None:
        """Compare with the pods that there are now."""
        own = [pod for pod in pods if (controller(pod) or {}).get("uid") == self.controller]
        new = sorted((pod for pod in own if pod["metadata"]["uid"] not in self.known), key=_age)
        self.pods = [
            {"name": str(pod["metadata"]["name"]), "node": str(pod["spec"].get("nodeName") or "")} for pod in new
        ]
        self.done = sum(map(is_ready, own)) >= self.ready

    def status(self) -> str:
        waiting = [pod["name"] for pod in self.pods if not pod["node"]]
        homeless = f", {', '.join(waiting)} has no node" if waiting else ""
        return f"{self.kind} {self.title} has not as many pods ready again as before{homeless}"


def is_ready(pod: Object) -> bool:
    """Whether it serves, and is not about to end."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _age(pod: Object) -> tuple[str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), str(pod["metadata"]["name"])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the API server told of an application while something was done to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from testbed.api import Api, Object, resource_path
from testbed.watches import Watches

ENDED = ("Succeeded", "Failed")
CREATED_BY = "kubevirt.io/created-by"
ZONE = "topology.kubernetes.io/zone"


class History(Watches):
    """Watches the pods and VMIs of a namespace.

    `vmis`: by uid, the states of each in their order. `crowded`: what there ever was of VMs of one application in one
    zone at once, one sentence each.
    """

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        with Api(kubeconfig) as api:
            nodes = api.items("/api/v1/nodes")
        self.zones = {node["metadata"]["name"]: str(node["metadata"]["labels"].get(ZONE, "")) for node in nodes}
        self.vmis: defaultdict[str, list[Object]] = defaultdict(list)
        self.crowded: set[str] = set()
        self._pods: dict[str, Object] = {}
        paths = {
            "pods": resource_path("v1", "pods", namespace),
            "vmis": resource_path("kubevirt.io/v1", "virtualmachineinstances", namespace),
        }
        super().__init__(kubeconfig, paths)

    def newcomers(self, app: str) -> list[str]:
        """Names of the VMIs of an application that were not there at first: a VM that starts anew is one."""
        first = {vmi["metadata"]["uid"] for vmi in self.first["vmis"]["items"]}
        return [states[0]["metadata"]["name"] for uid, states in self._of(app) if uid not in first]

    def interruptions(self, app: str) -> list[str]:
        """When a VMI of an application that was there at first did not run, one sentence each."""
        first = {vmi["metadata"]["uid"] for vmi in self.first["vmis"]["items"]}
        return [
            f"{state['metadata']['name']} was {state['status'].get('phase')}"
            for uid, states in self._of(app)
            for state in states
            if uid in first and state["status"].get("phase") != "Running"
        ]

    def _of(self, app: str) -> Iterator[tuple[str, list[Object]]]:
        for uid, states in list(self.vmis.items()):
            if states[0]["metadata"].get("labels", {}).get("app") == app:
                yield uid, states

    def see(self, name: str, event: Object) -> None:
        if name == "pods":
            self._see_pod(event)
        else:
            self.vmis[event["object"]["metadata"]["uid"]].append(event["object"])

    def _see_pod(self, event: Object) -> None:
        pod = event["object"]
        uid = pod["metadata"]["uid"]
        self._pods.pop(uid, None)
        if event["type"] != "DELETED" and pod["status"].get("phase") not in ENDED and pod["spec"].get("nodeName"):
            self._pods[uid] = pod
        together: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for other in self._pods.values():
            labels = other["metadata"].get("labels", {})
            # Both pods of a VM that migrates are one VM.
            if CREATED_BY in labels:
                together[labels.get("app", ""), self.zones[other["spec"]["nodeName"]]].add(labels[CREATED_BY])
        self.crowded |= {f"{len(vms)} {app} in zone {zone}" for (app, zone), vms in together.items() if len(vms) > 1}

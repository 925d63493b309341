# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server that also plays virt-controller: a replica set takes its next step whenever somebody watches its VMIs.

What KubeVirt really does is proved on the testbed; here its answers come at once, with any trouble that a test asks
for.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import vmi_of

from testbed.nodes import fake_node
from unit.plugins.support.fake_api import Answer, Object, Request, refusal
from unit.plugins.support.object_api import NAMESPACES, NODES, ObjectApi

KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/shop"
SETS, VMIS = f"{KUBEVIRT}/virtualmachineinstancereplicasets", f"{KUBEVIRT}/virtualmachineinstances"
NO_NODE = "0/2 nodes are available: 2 Insufficient memory."


@dataclass
class ReplicasApi(ObjectApi):
    """`homeless`: new VMIs find no node. `exhausted`: none can be created. `stubborn`: VMIs stay for ever.

    conflicts: how many writes are still to be outrun by somebody else's.
    """

    homeless: bool = False
    exhausted: bool = False
    stubborn: bool = False
    conflicts: int = 0

    def add_worker(self, name: str, **fields: Any) -> None:
        self.objects[f"{NODES}/{name}"] = fake_node(name, **fields)

    def replica_set(self, name: str = "db") -> Any:
        return self.objects[f"{SETS}/{name}"]

    def vmis(self) -> list[Object]:
        return [item for path, item in list(self.objects.items()) if path.startswith(f"{VMIS}/")]

    def settle(self) -> None:
        """Let virt-controller do all that is left to do."""
        while self._step():
            pass

    def _list(self, request: Request) -> Answer:
        if request.path == VMIS and request.method == "POST":
            return self._try_vmi(request)
        if request.path.endswith("/virtualmachineinstances") and request.method == "GET":
            return self._watch() if "watch" in request.query else self._page(request.path)
        if request.method == "PUT" and self.conflicts and "dryRun" not in request.query:
            self.conflicts -= 1
            return refusal(409, "Conflict", "the object has been modified")
        if request.path.startswith(SETS) and request.method != "POST" and request.path not in self.objects:
            return refusal(404, "NotFound", f"{request.path} not found")
        return super()._list(request)

    def _page(self, path: str) -> Answer:
        """A list is empty, and no error, in a namespace that there is not."""
        items = self.vmis() if path == VMIS else []
        return Answer(200, {"metadata": {"resourceVersion": str(next(self._versions))}, "items": items})

    def _try_vmi(self, request: Request) -> Answer:
        assert request.query.get("dryRun") == "All", "the module never creates a VMI itself"
        vmi = copy.deepcopy(request.body)
        vmi["metadata"] |= {"name": f"{vmi['metadata']['generateName']}abcde", "uid": "uid-tried"}
        return Answer(201, {**vmi_of(vmi, Configuration()), "status": {"phase": "Pending"}})

    def _watch(self) -> Answer:
        event = self._step()
        return Answer(200, json.dumps(event).encode() + b"\n" if event else b"")

    def _step(self) -> Object | None:
        """What happens next to a VMI of the one replica set."""
        sets = [item for path, item in list(self.objects.items()) if path.startswith(f"{SETS}/")]
        vmis = self.vmis()
        wanted = sets[0]["spec"]["replicas"] if sets else 0
        if sets and sets[0]["spec"].get("paused"):
            wanted = len(vmis)
        if len(vmis) < wanted and not self.exhausted:
            return self._changed("ADDED", self._create_vmi(sets[0], len(vmis) + 1))
        if len(vmis) > wanted and not self.stubborn:
            return self._changed("DELETED", self.objects.pop(f"{VMIS}/{vmis[-1]['metadata']['name']}"))
        for vmi in vmis:
            if "nodeName" not in vmi["status"] and not self.homeless:
                vmi["status"] = running("n1")
                return self._changed("MODIFIED", vmi)
        return None

    def _create_vmi(self, of: Object, number: int) -> Object:
        vmi = vmi_of(of, Configuration(), number)
        vmi["spec"] = copy.deepcopy(vmi["spec"])
        message = f"{NO_NODE} no new claims to deallocate, preemption: 0/2 nodes are available."
        condition = {"type": "PodScheduled", "status": "False", "message": message}
        vmi["status"] = {"phase": "Scheduling", "conditions": [condition] if self.homeless else []}
        self.objects[f"{VMIS}/{vmi['metadata']['name']}"] = vmi
        return vmi

    def _changed(self, kind: str, vmi: Object) -> Object:
        vmi["metadata"]["resourceVersion"] = str(next(self._versions))
        return {"type": kind, "object": vmi}


def running(node: str) -> Object:
    return {"phase": "Running", "nodeName": node, "conditions": [{"type": "Ready", "status": "True"}]}


def shop() -> ReplicasApi:
    """Two nodes of 4 GiB in zones a and b, and the namespace shop with nothing in it."""
    fake = ReplicasApi()
    for name, zone in (("n1", "a"), ("n2", "b")):
        fake.add_worker(name, memory="4Gi", labels={"topology.kubernetes.io/zone": zone})
    fake.objects[f"{NAMESPACES}/shop"] = {"metadata": {"name": "shop"}}
    return fake

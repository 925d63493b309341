# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of migrating_api.py with pods that can be evicted and VMs that can be stopped.

What real servers answer is proved on the testbed; here they answer in any order, and with any trouble, at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS, Kind

from unit.plugins.support.fake_api import Answer, FakeApi, Object, Request, refusal
from unit.plugins.support.migrating_api import HOSTNAME, KUBEVIRT, MigratingApi, vmi_path
from unit.plugins.support.object_api import NODES
from unit.plugins.support.objects import kubevirt

PODS = "/api/v1/pods"
VMIS = f"{KUBEVIRT}/virtualmachineinstances"
VMIS_IN_SHOP = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstances"
VMI = BY_NAME["vmis"]
# What can carry the mark that it was stopped.
MARKED = {kind.path: kind for kind in (BY_NAME["vms"], BY_NAME["vmireplicasets"])}
SET = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstancereplicasets/set"
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110"}
BUDGET = Answer(
    429,
    {
        "kind": "Status",
        "code": 429,
        "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget api needs 1"}]},
    },
)


def pod_path(name: str) -> str:
    return f"/api/v1/namespaces/shop/pods/{name}"


def vm_path(name: str) -> str:
    return f"{KUBEVIRT}/namespaces/shop/virtualmachines/{name}"


def act_path(verb: str, name: str) -> str:
    return f"{SUBRESOURCES}/namespaces/shop/virtualmachines/{name}/{verb}"


@dataclass
class DrainingApi(MigratingApi):
    """`evictions`: what answers the evictions to come, None for success, which is what follows the last.

    returns: evicted pods come back to their node. acts: what was asked of VMs and not refused, as in `stop db`.
    successors: the node where a replica set replaces its VMIs, if it does.
    """

    evictions: list[Answer | None] = field(default_factory=list)
    returns: bool = False
    successors: str = ""
    acts: list[str] = field(default_factory=list)

    def add_pod(self, name: str, node: str = "n1", *, owner: str = "ReplicaSet", **fields: Any) -> Object:
        controller = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
        owners = [controller] if owner else []
        metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": owners}
        spec = {"nodeName": node, "containers": [], **fields.pop("spec", {})}
        pod = {"metadata": {**metadata, **fields.pop("metadata", {})}, "spec": spec, "status": {"phase": "Running"}}
        self.objects[pod_path(name)] = {**pod, **fields}
        return self.objects[pod_path(name)]

    def add_vm(self, name: str, run_strategy: str = "Always", *, migratable: bool = False) -> Object:
        vmi = self.add_vmi(name)
        vmi["metadata"]["ownerReferences"] = _owned_by(name)
        condition = {"type": "LiveMigratable", "status": str(migratable), "reason": "DisksNotLiveMigratable"}
        vmi["status"]["conditions"] = [condition]
        metadata = {"name": name, "namespace": "shop", "uid": f"vm-{name}", "resourceVersion": "1"}
        self.objects[vm_path(name)] = {"metadata": metadata, "spec": {"runStrategy": run_strategy}}
        return self.objects[vm_path(name)]

    def configure(self, **configuration: Any) -> None:
        """The configuration of KubeVirt."""
        spec = {"configuration": configuration}
        self.objects[f"{KUBEVIRT}/namespaces/kubevirt/kubevirts/kubevirt"] = {**kubevirt(), "spec": spec}

    def left(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self._pods("n1")]

    def _list(self, request: Request) -> Answer:
        act = self._draining(request)
        return act(request) if act else super()._list(request)

    def _draining(self, request: Request) -> Callable[[Request], Answer] | None:
        if "limit" in request.query:
            return self._page
        if request.path == PODS:
            return self._pods_on
        if request.path == VMIS and request.method == "GET":
            return self._vmis_on
        if request.path == VMIS_IN_SHOP and request.method == "GET":
            return lambda _request: self._items([vmi for path, vmi in self.objects.items() if _is_of(VMI, path)])
        if "labelSelector" in request.query and request.path in MARKED:
            return self._marked
        if request.path.endswith("/eviction"):
            return self._evict
        return self._act if request.path.startswith(SUBRESOURCES) else None

    def _page(self, request: Request) -> Answer:
        """Of a list as a snapshot reads it."""
        for kind in KINDS:
            self.lists[kind.name] = [item for path, item in self.objects.items() if _is_of(kind, path)]
        return FakeApi._list(self, request)

    def _pods(self, node: str) -> list[Object]:
        pods = [item for path, item in self.objects.items() if "/pods/" in path]
        return [pod for pod in pods if pod["spec"]["nodeName"] == node]

    def _pods_on(self, request: Request) -> Answer:
        return self._items(self._pods(request.query["fieldSelector"].partition("=")[2]))

    def _vmis_on(self, request: Request) -> Answer:
        node = request.query["labelSelector"].partition("=")[2]
        vmis = [item for path, item in self.objects.items() if "/virtualmachineinstances/" in path]
        return self._items([vmi for vmi in vmis if vmi["status"]["nodeName"] == node])

    def _marked(self, request: Request) -> Answer:
        label, _equals, value = request.query["labelSelector"].partition("=")
        items = [item for path, item in self.objects.items() if _is_of(MARKED[request.path], path)]
        return self._items([item for item in items if item["metadata"].get("labels", {}).get(label) == value])

    def _evict(self, request: Request) -> Answer:
        path = request.path.removesuffix("/eviction")
        answer = self.evictions.pop(0) if self.evictions else None
        if answer:
            return answer
        if path not in self.objects:
            return refusal(404, "NotFound", "pods not found")
        if "dryRun" not in request.body["deleteOptions"]:
            pod = self.objects.pop(path)
            if self.returns:
                self.add_pod(f"{pod['metadata']['name']}-again", spec=pod["spec"])
        return Answer(201, {})

    def lose_answer(self, path: str) -> None:
        """Do what the next write to a path asks for, and answer as a server does that goes away."""
        rest = [refusal(503, "ServiceUnavailable", "shutting down")]

        def act(request: Request) -> Answer | None:
            if request.method == "GET" or not rest:
                return None
            self._list(request)
            return rest.pop()

        self.faults[path] = act

    def _change(self, request: Request) -> Answer:
        answer = super()._change(request)
        name = request.path.rpartition("/")[2]
        is_off = request.path == vm_path(name) and vmi_path(name) not in self.objects
        if is_off and self.objects[request.path]["spec"]["runStrategy"] == "Always":
            self.start(name)
        return answer

    def add_set(self, *nodes: str, ready: int) -> Object:
        """A replica set `set` with a VMI on each of these nodes, of which none can be migrated."""
        for number, node in enumerate(nodes):
            self._add_replica(f"set-{number}", node)
        metadata = {"name": "set", "namespace": "shop", "uid": "uid-set", "resourceVersion": "1"}
        status = {"readyReplicas": ready}
        self.objects[SET] = {"metadata": metadata, "spec": {"replicas": len(nodes)}, "status": status}
        return status

    def _add_replica(self, name: str, node: str) -> None:
        owner = {"kind": "VirtualMachineInstanceReplicaSet", "name": "set", "uid": "uid-set", "controller": True}
        vmi = self.add_vmi(name, node)
        vmi["metadata"]["ownerReferences"] = [{"apiVersion": "kubevirt.io/v1", **owner}]
        vmi["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]

    def _delete(self, request: Request) -> Answer:
        answer, name = super()._delete(request), request.path.rpartition("/")[2]
        if self.successors and request.path == vmi_path(name) and request.path not in self.objects:
            self._add_replica(f"{name}-again", self.successors)
        return answer

    def start(self, name: str, node: str = "n1", number: int = 1) -> None:
        """Give a VM its VMI of so great a number."""
        self.add_vmi(name, node)["metadata"] |= {"uid": f"uid-{name}-{number}", "ownerReferences": _owned_by(name)}

    def _act(self, request: Request) -> Answer:
        """Follows what pkg/virt-api/rest/lifecycle.go answers, and virt-controller does at once."""
        name, verb = request.path.split("/")[-2:]
        spec, runs = self.objects[vm_path(name)]["spec"], vmi_path(name) in self.objects
        by_request = spec["runStrategy"] in ("Manual", "RerunOnFailure")
        possible = not runs if verb == "start" else spec["runStrategy"] != "Halted" and (runs or not by_request)
        if not possible:
            return refusal(409, "Conflict", f"VM is {'already' if runs else 'not'} running")
        self.acts.append(f"{verb} {name}")
        if "dryRun" in request.body:
            return Answer(202, b"")
        if verb == "stop":
            self.objects.pop(vmi_path(name), None)
            spec["runStrategy"] = spec["runStrategy"] if by_request else "Halted"
        else:
            self.start(name, "n2" if verb == "restart" else "n1", len(self.acts))
        return Answer(202, b"")


def _is_of(kind: Kind, path: str) -> bool:
    return path.startswith(kind.path.removesuffix(kind.resource)) and path.split("/")[-2] == kind.resource


def _owned_by(vm: str) -> list[Object]:
    owner = {"kind": "VirtualMachine", "name": vm, "uid": f"vm-{vm}", "controller": True}
    return [{"apiVersion": "kubevirt.io/v1", **owner}]


def empty_nodes() -> DrainingApi:
    """Nodes n1 and n2."""
    fake = DrainingApi()
    for name in ("n1", "n2"):
        fake.add_node(name, {HOSTNAME: name}, status={"allocatable": dict(ROOM)})
    fake.configure()
    fake.objects["/api/v1/namespaces/medik8s-leases"] = {"metadata": {"name": "medik8s-leases"}}
    return fake


def busy_node() -> DrainingApi:
    """Node n1 with VMI `db` and pod `api`, and an empty node n2."""
    fake = empty_nodes()
    fake.add_vmi("db")
    fake.add_pod("api")
    return fake


def writes_to(api: DrainingApi, *, beyond: str = NODES) -> list[Request]:
    """What was written apart from the cordon."""
    return [request for request in api.writes() if beyond not in request.path and "/leases" not in request.path]

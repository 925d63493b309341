# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of migrating_api.py with pods that can be evicted and VMs that can be stopped.

What real servers answer is proved on the testbed; here they answer in any order, and with any trouble, at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import drain, plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import watch
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import run_memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import (
    evicting,
    interrupting,
    migrating,
    starting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, find_mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS, Kind

from unit.plugins.support.fake_api import Answer, FakeApi, Object, Request, refusal
from unit.plugins.support.migrating_api import HOSTNAME, KUBEVIRT, MIGRATIONS, MigratingApi, vmi_path
from unit.plugins.support.object_api import NODES
from unit.plugins.support.objects import kubevirt
from unit.plugins.support.watched_lists import WatchedLists, is_selected

PODS = "/api/v1/pods"
VMIS = f"{KUBEVIRT}/virtualmachineinstances"
VMIS_IN_SHOP = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstances"
LISTED = {kind.path: kind for kind in KINDS}
SET = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstancereplicasets/set"
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
ROOM |= {f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")}
Q35 = "machine-type.node.kubevirt.io/q35"
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
# As the eviction handler says it (pkg/registry/core/pod/storage/eviction.go).
TWO_BUDGETS = refusal(
    500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
# Of a webhook whose server is away.
UNADMITTED = refusal(
    500, "InternalError", 'Internal error occurred: failed calling webhook "v.x": failed to call webhook: no endpoints'
)


# What a drain waits for between looks and attempts, where nothing happens by itself.
QUICK = (
    (drain, "_LEAST_PAUSE", 0.01),
    *((plan_run, name, 0.01) for name in ("_PAUSE", "_QUIET", "_PAUSE_AFTER_TROUBLE")),
    (watch, "_REST", 0.01),
    (run_memory, "_PAUSE", 0.0),
    # Longer than it takes to hear of what was done.
    *((module, "RETRY_AFTER", 0.1) for module in (evicting, interrupting, migrating, starting)),
)


_KINDS = {kind: {"apiVersion": "kubevirt.io/v1", "kind": kind} for kind in (VM, VMI_REPLICA_SET)}


def pod_path(name: str) -> str:
    return f"/api/v1/namespaces/shop/pods/{name}"


def vm_path(name: str) -> str:
    return f"{KUBEVIRT}/namespaces/shop/virtualmachines/{name}"


def act_path(verb: str, name: str) -> str:
    return f"{SUBRESOURCES}/namespaces/shop/virtualmachines/{name}/{verb}"


@dataclass
class DrainingApi(MigratingApi):
    """`evictions`: what answers the evictions to come, None for success, which is what follows the last.

    returns: evicted pods come back to their node. lands: where others come in place of those of a controller, empty if
    nowhere. home: where VMs start again. acts: what was asked of VMs and not refused, as in `stop db`.
    successors: the node where a replica set replaces its VMIs, if it does. slow: guests shut down by `shut_down` only.
    """

    evictions: list[Answer | None] = field(default_factory=list)
    returns: bool = False
    lands: str = "n2"
    home: str = "n1"
    successors: str = ""
    slow: bool = False
    acts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watched = WatchedLists(self._versions)

    def add_pod(self, name: str, node: str = "n1", *, owner: str = "ReplicaSet", **fields: Any) -> Object:
        controller = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
        owners = [controller] if owner else []
        metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": owners}
        spec = {"nodeName": node, "containers": [], **fields.pop("spec", {})}
        pod = {"metadata": {**metadata, **fields.pop("metadata", {})}, "spec": spec, "status": {"phase": "Running"}}
        self.objects[pod_path(name)] = {**pod, **fields}
        return self.objects[pod_path(name)]

    def add_vmi(self, name: str, node: str = "n1", namespace: str = "shop", **spec: Any) -> Object:
        """With what its target pod is foretold by."""
        domain = {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}, "evictionStrategy": "LiveMigrate"}
        vmi = super().add_vmi(name, node, namespace, **domain, **spec)
        vmi["status"]["selinuxContext"] = "none"
        return vmi

    def add_vm(self, name: str, run_strategy: str = "Always", *, migratable: bool = False) -> Object:
        vmi = self.add_vmi(name)
        vmi["metadata"]["ownerReferences"] = _owned_by(name)
        condition = {"type": "LiveMigratable", "status": str(migratable), "reason": "DisksNotLiveMigratable"}
        vmi["status"]["conditions"] = [condition]
        metadata = {"name": name, "namespace": "shop", "uid": f"vm-{name}", "resourceVersion": "1"}
        spec = {"runStrategy": run_strategy, "template": _template(vmi)}
        self.objects[vm_path(name)] = {**_KINDS[VM], "metadata": metadata, "spec": spec}
        return self.objects[vm_path(name)]

    def configure(self, **configuration: Any) -> None:
        """The configuration of KubeVirt."""
        spec = {"configuration": configuration}
        self.objects[f"{KUBEVIRT}/namespaces/kubevirt/kubevirts/kubevirt"] = {**kubevirt(), "spec": spec}

    def left(self) -> list[str]:
        """The ordinary pods on node n1."""
        return [pod["metadata"]["name"] for pod in self._pods() if pod["spec"]["nodeName"] == "n1"]

    def _list(self, request: Request) -> Answer:
        act = self._draining(request)
        return act(request) if act else super()._list(request)

    def _draining(self, request: Request) -> Callable[[Request], Answer] | None:
        if request.method == "GET" and "limit" in request.query:
            return partial(FakeApi._list, self)
        if request.method == "GET" and _listed(request.path):
            return self._selection
        if request.path.endswith("/eviction"):
            return self._evict
        is_of_a_vm = request.path.startswith(SUBRESOURCES) and "/virtualmachines/" in request.path
        return self._act if is_of_a_vm else None

    def _found(self, kind: Kind, request: Request) -> list[Object]:
        """As a snapshot reads it, page by page."""
        selector = request.query.get("labelSelector", "")
        return [item for item in self._items_of(kind) if _is_wanted(item, {"labelSelector": selector})]

    def _selection(self, request: Request) -> Answer:
        """A list, or what changes in it."""

        def select() -> list[Object]:
            return [item for item in self._below(request.path) if _is_wanted(item, request.query)]

        if "watch" not in request.query:
            return self._watched.listed(select())
        if request.path.endswith(MIGRATIONS):
            self._play()
        return self._watched.watched(request.query["resourceVersion"], select)

    def _below(self, path: str) -> list[Object]:
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        items = self._items_of(_listed(path))
        return [item for item in items if namespace in ("", item["metadata"].get("namespace"))]

    def _items_of(self, kind: Kind | None) -> list[Object]:
        items = [item for path, item in list(self.objects.items()) if kind is not None and _is_of(kind, path)]
        if kind is BY_NAME["pods"]:
            items += self._launchers()
            items += self._homeless_pods() if self.homeless and not self.forgotten else []
        return items

    def _pods(self) -> list[Object]:
        return [item for path, item in list(self.objects.items()) if "/pods/" in path]

    def _launchers(self) -> list[Object]:
        """One where each VMI runs."""
        vmis = [item for path, item in list(self.objects.items()) if "/virtualmachineinstances/" in path]
        known = {pod["metadata"]["name"] for pod in self._pods()}
        return [pod for pod in map(_launcher, vmis) if pod["metadata"]["name"] not in known]

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
            elif self.lands and pod["metadata"]["ownerReferences"]:
                start = {"generateName": pod["metadata"].get("generateName", "")}
                self.add_pod(f"{pod['metadata']['name']}-new", self.lands, metadata=start)
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
        if request.path == vm_path(name):
            strategy = self.objects[request.path]["spec"]["runStrategy"]
            if strategy == "Halted" and self._has_ended(name):
                del self.objects[vmi_path(name)]
            if strategy in ("Always", "Once") and vmi_path(name) not in self.objects:
                self.start(name)
        return answer

    def _has_ended(self, name: str) -> bool:
        return vmi_path(name) in self.objects and _is_over(self.objects[vmi_path(name)])

    def add_set(self, *nodes: str, ready: int) -> Object:
        """A replica set `set` with a VMI on each of these nodes, of which none can be migrated."""
        vmis = [self._add_replica(f"set-{number}", node) for number, node in enumerate(nodes)]
        metadata = {"name": "set", "namespace": "shop", "uid": "uid-set", "resourceVersion": "1"}
        spec = {"replicas": len(nodes), "selector": {"matchLabels": {"app": "set"}}, "template": _template(vmis[0])}
        status = {"readyReplicas": ready}
        self.objects[SET] = {**_KINDS[VMI_REPLICA_SET], "metadata": metadata, "spec": spec, "status": status}
        return status

    def _add_replica(self, name: str, node: str) -> Object:
        owner = {"kind": "VirtualMachineInstanceReplicaSet", "name": "set", "uid": "uid-set", "controller": True}
        vmi = self.add_vmi(name, node)
        vmi["metadata"] |= {"ownerReferences": [{"apiVersion": "kubevirt.io/v1", **owner}], "labels": {"app": "set"}}
        vmi["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
        return vmi

    def _delete(self, request: Request) -> Answer:
        answer, name = super()._delete(request), request.path.rpartition("/")[2]
        if self.successors and request.path == vmi_path(name) and request.path not in self.objects:
            self._add_replica(f"{name}-again", self.successors)
        return answer

    def start(self, name: str, node: str = "", number: int = 1) -> None:
        """Give a VM its VMI of so great a number."""
        self.add_vmi(name, node or self.home)["metadata"] |= {
            "uid": f"uid-{name}-{number}",
            "ownerReferences": _owned_by(name),
        }

    def shut_down(self, name: str) -> None:
        """End the guest of a VM that is to stop, and do what virt-controller does then."""
        vm = self.objects[vm_path(name)]
        del self.objects[vmi_path(name)]
        vm["status"] = {}
        if vm["spec"]["runStrategy"] == "Always":
            self.start(name, number=9)

    def _act(self, request: Request) -> Answer:
        """Follows what pkg/virt-api/rest/lifecycle.go answers, and virt-controller does at once."""
        name, verb = request.path.split("/")[-2:]
        vm, runs = self.objects[vm_path(name)], vmi_path(name) in self.objects and not self._has_ended(name)
        spec = vm["spec"]
        by_request = spec["runStrategy"] in ("Manual", "RerunOnFailure")
        possible = not runs if verb == "start" else spec["runStrategy"] != "Halted" and (runs or not by_request)
        if not possible:
            return refusal(409, "Conflict", f"VM is {'already' if runs else 'not'} running")
        if verb == "start" and vm.get("status"):
            return refusal(500, "InternalError", "unable to complete request: stop/start already underway")
        self.acts.append(f"{verb} {name}")
        if "dryRun" in request.body:
            return Answer(202, b"")
        if verb == "stop":
            self._stop(name, vm)
            spec["runStrategy"] = spec["runStrategy"] if by_request else "Halted"
        else:
            self.start(name, "n2" if verb == "restart" else "", len(self.acts))
        return Answer(202, b"")

    def _stop(self, name: str, vm: Object) -> None:
        vmi = self.objects.pop(vmi_path(name), None)
        if vmi and self.slow:
            vmi["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.objects[vmi_path(name)] = vmi
            vm["status"] = {"stateChangeRequests": [{"action": "Stop", "uid": vmi["metadata"]["uid"]}]}


def _launcher(vmi: Object) -> Object:
    metadata, ended = vmi["metadata"], _is_over(vmi)
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "controller": True}
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": metadata["uid"]}
    return {
        "metadata": {
            "name": f"virt-launcher-{metadata['name']}",
            "namespace": metadata["namespace"],
            "uid": f"launcher-of-{metadata['uid']}",
            "labels": labels,
            "ownerReferences": [{**owner, "name": metadata["name"], "uid": metadata["uid"]}],
        },
        "spec": {"nodeName": vmi["status"].get("nodeName", ""), "containers": [{"name": "compute"}]},
        "status": {"phase": "Succeeded" if ended else "Running"},
    }


def _is_over(vmi: Object) -> bool:
    return vmi["status"]["phase"] in ("Succeeded", "Failed")


def _template(vmi: Object) -> Object:
    return {"metadata": {"labels": vmi["metadata"].get("labels", {})}, "spec": vmi["spec"]}


def _is_of(kind: Kind, path: str) -> bool:
    return path.startswith(kind.path.removesuffix(kind.resource)) and path.split("/")[-2] == kind.resource


def _listed(path: str) -> Kind | None:
    """The kind whose objects are listed at a path, in one namespace or all."""
    group, _slash, rest = path.partition("/namespaces/")
    return LISTED.get(path) or LISTED.get(f"{group}/{rest.partition('/')[2]}")


def _is_wanted(item: Object, query: dict[str, str]) -> bool:
    node = str((item.get("status") or {}).get("nodeName") or "")
    labels = {**(item["metadata"].get("labels") or {}), **({"kubevirt.io/nodeName": node} if node else {})}
    fields = {
        "metadata.name": item["metadata"]["name"],
        "spec.nodeName": str((item.get("spec") or {}).get("nodeName") or ""),
    }
    return is_selected(query.get("labelSelector", ""), labels) and is_selected(query.get("fieldSelector", ""), fields)


def _owned_by(vm: str) -> list[Object]:
    owner = {"kind": "VirtualMachine", "name": vm, "uid": f"vm-{vm}", "controller": True}
    return [{"apiVersion": "kubevirt.io/v1", **owner}]


def fill(fake: DrainingApi, *nodes: str) -> None:
    """With nodes, and what a drain needs beside them."""
    for name in nodes:
        labels = {HOSTNAME: name, "kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64", Q35: "true"}
        fake.add_node(name, labels, status={"allocatable": dict(ROOM)})
    fake.configure()
    fake.objects["/api/v1/namespaces/medik8s-leases"] = {"metadata": {"name": "medik8s-leases"}}


def empty_nodes() -> DrainingApi:
    """Nodes n1 and n2."""
    fake = DrainingApi()
    fill(fake, "n1", "n2")
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


def take_anew(api: DrainingApi, node: str) -> None:
    """Its owner has given a node back meanwhile, and cordons it again."""
    mark = find_mark(api.node(node))
    assert mark is not None
    anew = replace(mark, since="2030-01-01T00:00:00Z")
    api.node(node)["metadata"]["annotations"][CORDON_NOTE] = anew.to_text()

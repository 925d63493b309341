# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few nodes of their own for tests of drains, with VMs and pods that begin on the node a test wants to empty."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS, cordoned, evict, launchers, remove_deserted
from integration.simulator.lab import drop_policy, never_end
from testbed import processes
from testbed.api import Api, ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

POOL = {"pool": "yard"}
# Keeps KubeVirt's own pods away, whose data would be in every test's way.
TAINT = {"key": "pool", "value": "yard", "effect": "NoSchedule"}
_TOLERATIONS: list[Object] = [{"key": "pool", "operator": "Exists"}]
TIMEOUT = 60.0
_OWNERS = (
    (KUBEVIRT, "virtualmachines"),
    (KUBEVIRT, "virtualmachineinstancereplicasets"),
    (KUBEVIRT, VMIS),
    ("apps/v1", "deployments"),
    ("v1", "pods"),
)
_NOT_READY = "node.kubernetes.io/not-ready"
_GUEST = "virtops.test/guest"
_HOST = "kubernetes.io/hostname"
_CONTROLLER = "system:serviceaccount:kubevirt:kubevirt-controller"
_BRIDGE: Object = {"domain": {"devices": {}}}
_MASQUERADE: Object = {
    "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
    "networks": [{"name": "default", "pod": {}}],
}


@dataclass
class Yard:
    """Nodes that nothing else runs on, and a namespace for each test."""

    testbed: RunningTestbed
    nodes: tuple[str, ...]
    namespace: str = ""
    _threads: list[threading.Thread] = field(default_factory=list)

    @classmethod
    @contextmanager
    def standing(cls, testbed: RunningTestbed, nodes: tuple[str, ...]) -> Iterator[Yard]:
        """A yard whose nodes take pods; they go in the end."""
        yard = cls(testbed, nodes)
        try:
            for name in nodes:
                testbed.api.create("/api/v1/nodes", fake_node(name, labels=POOL, taints=[TAINT]))
            wait_for("the nodes to take pods", lambda: all(map(yard._takes_pods, nodes)), TIMEOUT)
            yield yard
        finally:
            remove_deserted(testbed.api, nodes)

    @contextmanager
    def emptied_afterwards(self) -> Iterator[None]:
        """What is on a node when the next test begins would take part in it."""
        self.namespace = self.testbed.namespace("yard")
        try:
            yield
        finally:
            self._empty()

    def _empty(self) -> None:
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self.testbed.inject("clear")
        drop_policy(self.testbed.api, self.namespace)
        for api_version, resource in _OWNERS:  # the end of a namespace takes longer
            self.testbed.api.delete(resource_path(api_version, resource, self.namespace))
        self.testbed.drop_namespace(self.namespace)
        wait_for("the end of all pods", lambda: not any(map(self.leftovers, self.nodes)), TIMEOUT)

    def leftovers(self, node: str) -> list[str]:
        """Names of the test's pods on a node that have not ended."""
        found = self.testbed.api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return [
            pod["metadata"]["name"]
            for pod in found
            if pod["metadata"]["namespace"].startswith("yard") and pod["status"]["phase"] == "Running"
        ]

    def start_vm(
        self,
        name: str,
        node: str,
        *,
        migratable: bool = True,
        run_strategy: str | None = None,
        eviction_strategy: str | None = None,
        memory: str = "256Mi",
        tolerations: Sequence[Object] | None = None,
    ) -> Object:
        """A VMI on a node: of a VM with a run strategy, or by itself. Ready."""
        spec = {
            **_spec(node, migratable, memory),
            "evictionStrategy": eviction_strategy,
            **({} if tolerations is None else {"tolerations": list(tolerations)}),
        }
        if run_strategy:
            self.make_vm(name, run_strategy, spec)
        else:
            self._create("VirtualMachineInstance", name, spec, KUBEVIRT, VMIS)
        if run_strategy == "Manual":
            self.testbed.api.patch(self._vm_path(name) + "/status", _start_request())
        self._wait(f"{name} to run on {node}", lambda: self.exists(name) and self._is_ready(name))
        assert self.node_of(name) == node
        return self.vmi(name)

    def make_vm(self, name: str, run_strategy: str, spec: Object) -> None:
        """A VM with this spec of its VMI."""
        vm = {"runStrategy": run_strategy, "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}
        self._create("VirtualMachine", name, vm, KUBEVIRT, "virtualmachines")

    def never_end(self, *names: str) -> None:
        """Let migrations of these VMs go on until something else ends them. Once a test."""
        never_end(self.testbed, self.namespace, *names)

    def replace_vm(self, name: str) -> None:
        """As `kubectl replace` does, with a file that knows nothing of what others have noted on it."""
        vm = self.vm(name)
        metadata = {key: vm["metadata"][key] for key in ("name", "namespace", "resourceVersion")}
        self.testbed.api.replace(self._vm_path(name), {**vm, "metadata": metadata})

    def start_again(self, name: str) -> None:
        """As `virtctl start` does."""
        self.testbed.api.patch(self._vm_path(name) + "/status", _start_request())
        self._wait(f"{name} to run again", lambda: self.exists(name) and self._is_ready(name))

    def start_replica(self, name: str, node: str) -> str:
        """A replica set of one VMI that cannot be migrated; the VMI's name."""
        template = _template(name, node, migratable=False)
        spec = {"replicas": 1, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
        resource = "virtualmachineinstancereplicasets"
        self._create("VirtualMachineInstanceReplicaSet", name, spec, KUBEVIRT, resource)
        self._wait("the replica to run", lambda: any(self._is_ready(vmi) for vmi in self._vmis(name)))
        (replica,) = self._vmis(name)
        assert self.node_of(replica) == node
        return replica

    def deploy(self, name: str, node: str, budget: int = 0, *, waiting: bool = False) -> str:
        """A Deployment of one pod, with a budget of so many that must be there; the pod's name.

        waiting: another pod of it has no node yet, so that the budget may yield one day.
        """
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": _pod_spec(node)}
        if waiting:
            pod["spec"]["affinity"] = _alone_on(node, labels)
        spec = {"replicas": 2 if waiting else 1, "selector": {"matchLabels": labels}, "template": pod}
        self._create("Deployment", name, spec, "apps/v1", "deployments")
        if budget:
            limits = {"minAvailable": budget, "selector": {"matchLabels": labels}}
            self._create("PodDisruptionBudget", name, limits, "policy/v1", "poddisruptionbudgets")
            self._wait("the budget to count", lambda: self._budget(name)["status"].get("currentHealthy") == 1)
        self._wait(f"the pod of {name} to run", lambda: bool(self._pods(name)))
        return self._pods(name)[0]

    @contextmanager
    def kubevirts_own(self, name: str, node: str) -> Iterator[str]:
        """A pod of KubeVirt itself, with the scratch data that each of its components has; the pod's name."""
        labels = {"kubevirt.io": name}
        pod = {
            "metadata": {"labels": labels},
            "spec": {**_pod_spec(node), "volumes": [{"name": "tmp", "emptyDir": {}}]},
        }
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "kubevirt"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        }
        self.testbed.api.create(resource_path("apps/v1", "deployments", "kubevirt"), deployment)
        here = {"labelSelector": f"kubevirt.io={name}", "fieldSelector": f"spec.nodeName={node},status.phase=Running"}
        path = resource_path("v1", "pods", "kubevirt")
        try:
            self._wait(f"{name} to run on {node}", lambda: bool(self.testbed.api.items(path, **here)))
            yield self.testbed.api.items(path, **here)[0]["metadata"]["name"]
        finally:
            self.testbed.api.delete(resource_path("apps/v1", "deployments", "kubevirt", name))

    def relax(self, name: str) -> None:
        """Let a budget allow everything."""
        path = resource_path("policy/v1", "poddisruptionbudgets", self.namespace, name)
        self.testbed.api.patch(path, {"spec": {"minAvailable": 0}})

    def back_up(self, name: str, *, completed: bool) -> None:
        """Let KubeVirt see a backup of a VMI, on which its migrations wait until it is completed."""
        progress = {"backupName": "nightly", "startTimestamp": "2026-01-01T00:00:00Z", "completed": completed}
        self.tell(name, {"changedBlockTracking": {"state": "Disabled", "backupStatus": progress}})

    def tell(self, name: str, status: Object) -> None:
        """Let KubeVirt say something of a VMI."""
        with Api(self.testbed.kubeconfig, impersonate=_CONTROLLER) as kubevirt:
            kubevirt.patch(resource_path(KUBEVIRT, VMIS, self.namespace, name), {"status": status})

    def halt(self, name: str) -> None:
        """As somebody does who wants a VM off."""
        self.testbed.api.patch(self._vm_path(name), {"spec": {"runStrategy": "Halted"}})

    def evict(self, name: str) -> None:
        """The pod of a VMI, which KubeVirt refuses and takes for a request to migrate the VMI."""
        (pod,) = launchers(self.testbed.api, self.vmi(name))
        with contextlib.suppress(ApiError):
            evict(self.testbed.api, pod)
        self._wait(f"{name} to be marked", lambda: bool(self.vmi(name)["status"].get("evacuationNodeName")))

    def migrations(self, name: str) -> list[str]:
        """Names of a VMI's unfinished migrations."""
        found = self.testbed.api.items(resource_path(KUBEVIRT, MIGRATIONS, self.namespace))
        own = [item for item in found if item["spec"]["vmiName"] == name]
        ended = ("Succeeded", "Failed")
        return [item["metadata"]["name"] for item in own if (item.get("status") or {}).get("phase") not in ended]

    def pod(self, name: str, node: str, **spec: Any) -> None:
        """A pod that nothing would replace."""
        self._create("Pod", name, {**_pod_spec(node), **spec}, "v1", "pods")
        path = resource_path("v1", "pods", self.namespace, name)
        self._wait(f"pod {name} to run", lambda: self.testbed.api.get(path)["status"]["phase"] == "Running")

    def hold_back(self, name: str) -> Callable[[], None]:
        """Let a VMI that is deleted stay, as if its guest were slow to shut down, until what this returns is called."""
        path = resource_path(KUBEVIRT, VMIS, self.namespace, name)
        held = [*self.vmi(name)["metadata"]["finalizers"], _GUEST]
        self.testbed.api.patch(path, {"metadata": {"finalizers": held}})

        return lambda: self._wait(f"{name} to be let go", lambda: self._let_go(path))

    def _let_go(self, path: str) -> bool:
        """Whether it succeeded: KubeVirt takes its own finalizers away at the same time."""
        found = self.testbed.api.get(path)["metadata"]
        kept = [item for item in found.get("finalizers", ()) if item != _GUEST]
        change = {"resourceVersion": found["resourceVersion"], "finalizers": kept}
        try:
            self.testbed.api.patch(path, {"metadata": change})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    def when(self, what: str, check: Callable[[], bool], act: Callable[[], object]) -> None:
        """Do something, beside the test, as soon as a condition holds; the test's end waits for it."""

        def wait_and_act() -> None:
            self._wait(what, check)
            act()

        thread = threading.Thread(target=wait_and_act)
        thread.start()
        self._threads.append(thread)

    def is_ending(self, name: str) -> bool:
        return "deletionTimestamp" in self.vmi(name)["metadata"]

    def silence_api(self, seconds: float) -> None:
        """Let the API server answer nothing for a while, without dropping a connection."""
        process = processes.running(self.testbed.home)["kube-apiserver"]
        process.suspend()
        timer = threading.Timer(seconds, process.resume)
        timer.start()
        self._threads.append(timer)

    def cordon(self, node: str) -> AbstractContextManager[None]:
        return cordoned(self.testbed.api, node)

    def uncordon(self, node: str) -> None:
        """As somebody does who knows nothing of who has cordoned it; pods may come when this returns."""
        self.testbed.api.patch(resource_path("v1", "nodes", name=node), {"spec": {"unschedulable": None}})
        self._wait(f"{node} to take pods", lambda: self._takes_pods(node))

    def cordoned(self, node: str) -> bool:
        return bool(self.testbed.api.get(resource_path("v1", "nodes", name=node))["spec"].get("unschedulable"))

    def is_down(self, node: str) -> bool:
        """By what its virt-handler says of it, or the node controller."""
        item = self.testbed.api.get(resource_path("v1", "nodes", name=node))
        is_fit = item["metadata"]["labels"].get("kubevirt.io/schedulable") == "true"
        return not is_fit or any(taint["key"] == _NOT_READY for taint in item["spec"]["taints"])

    def vm(self, name: str) -> Object:
        return self.testbed.api.get(self._vm_path(name))

    def vmi(self, name: str) -> Object:
        return self.testbed.api.get(resource_path(KUBEVIRT, VMIS, self.namespace, name))

    def node_of(self, name: str) -> str:
        return str(self.vmi(name)["status"]["nodeName"])

    def exists(self, name: str) -> bool:
        try:
            self.vmi(name)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _vm_path(self, name: str) -> str:
        return resource_path(KUBEVIRT, "virtualmachines", self.namespace, name)

    def _budget(self, name: str) -> Object:
        return self.testbed.api.get(resource_path("policy/v1", "poddisruptionbudgets", self.namespace, name))

    def _vmis(self, app: str) -> list[str]:
        found = self.testbed.api.items(resource_path(KUBEVIRT, VMIS, self.namespace), labelSelector=f"app={app}")
        return [vmi["metadata"]["name"] for vmi in found]

    def _pods(self, app: str) -> list[str]:
        """Running ones."""
        found = self.testbed.api.items(resource_path("v1", "pods", self.namespace), labelSelector=f"app={app}")
        return [pod["metadata"]["name"] for pod in found if pod["status"]["phase"] == "Running"]

    def _is_ready(self, name: str) -> bool:
        conditions = self.vmi(name)["status"].get("conditions") or ()
        known = {condition["type"]: condition["status"] for condition in conditions}
        return known.get("Ready") == "True" and "LiveMigratable" in known

    def _takes_pods(self, node: str) -> bool:
        """Whether it is Ready and the node controller has seen it."""
        item = self.testbed.api.get(resource_path("v1", "nodes", name=node))
        return "conditions" in item["status"] and item["spec"]["taints"] == [TAINT]

    def _create(self, kind: str, name: str, spec: Object, api_version: str, resource: str) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        item = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
        self.testbed.api.create(resource_path(api_version, resource, self.namespace), item)

    def _wait(self, what: str, check: Callable[[], bool]) -> None:
        wait_for(what, check, TIMEOUT, interval=0.1)


def confided(name: str, node: str, secret: str) -> Object:
    """A template of VMIs that can be migrated, with a secret in the places that need no feature gate or hardware."""
    template = _template(name, node, migratable=True)
    domain = template["spec"]["domain"]
    devices = {**domain["devices"], "disks": [{"name": "init", "disk": {"bus": "virtio"}}]}
    header = {"name": "Authorization", "value": f"Bearer {secret}"}
    spec: Object = {
        "domain": {**domain, "devices": devices},
        "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [header]}},
        "volumes": [{"name": "init", "cloudInitNoCloud": {"userData": f"#cloud-config\npassword: {secret}\n"}}],
    }
    return {**template, "spec": {**template["spec"], **spec}}


def _template(name: str, node: str, *, migratable: bool) -> Object:
    return {"metadata": {"labels": {"app": name}}, "spec": _spec(node, migratable)}


def _spec(node: str, migratable: bool, memory: str = "256Mi") -> Object:
    """Of a VMI; without an interface of its own it gets a bridge, which cannot be migrated."""
    network = _MASQUERADE if migratable else _BRIDGE
    return {
        **network,
        "domain": {"memory": {"guest": memory}, **network["domain"]},
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": POOL,
        "tolerations": _TOLERATIONS,
        "affinity": _at_first_on(node),
    }


def _pod_spec(node: str) -> Object:
    container = {"name": "main", "image": "any"}
    place: Object = {"nodeSelector": POOL, "tolerations": _TOLERATIONS, "affinity": _at_first_on(node)}
    return {"containers": [container], **place}


def _at_first_on(node: str) -> Object:
    """What a scheduler keeps to as long as the node may be had."""
    term = {"matchExpressions": [{"key": _HOST, "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


def _alone_on(node: str, labels: dict[str, str]) -> Object:
    """Nowhere else, and one at a time."""
    terms = [{"matchExpressions": [{"key": _HOST, "operator": "In", "values": [node]}]}]
    place = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    others = [{"topologyKey": _HOST, "labelSelector": {"matchLabels": labels}}]
    return {"nodeAffinity": place, "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": others}}


def _start_request() -> Object:
    return {"status": {"stateChangeRequests": [{"action": "Start"}]}}

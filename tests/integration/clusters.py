# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests do to a cluster that holds a scenario, and what they ask of it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from testbed.api import Api, ApiError, Object, object_path, resource_path
from testbed.scenarios.deadline import Deadline
from testbed.scenarios.load import apply_all, load
from testbed.scenarios.model import Scenario
from testbed.scenarios.settle import wait_nodes_ready
from testbed.waiting import wait_for

KUBEVIRT = "kubevirt.io/v1"
VMIS = "virtualmachineinstances"
MIGRATIONS = "virtualmachineinstancemigrations"
UNSCHEDULABLE_TIMEOUT = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
HOST = "kubernetes.io/hostname"
TIMEOUT = 120.0


@contextmanager
def loaded(api: Api, scenario: Scenario, timeout: float = TIMEOUT) -> Iterator[None]:
    """A cluster with the scenario's nodes and no other, as long as the context lasts; `timeout` of loading it."""
    wait_for("the end of other tests' VMs", lambda: not _going(api), TIMEOUT)
    # What another test's nodes could take would change every placement and every message of the scheduler.
    remove_nodes(api)
    try:
        _house_kubevirt(api, scenario)
        load(api, scenario, timeout)
        yield
    finally:
        remove(api, scenario)
        remove_nodes(api)


def _house_kubevirt(api: Api, scenario: Scenario) -> None:
    """KubeVirt's own pods on the scenario's first two nodes that take any pod.

    Two nodes that have all of one of its components never go together: which two is not left to the scheduler's lot.
    """
    first = [obj for obj in scenario.objects if obj["kind"] == "Node" and _takes_any_pod(obj)][:2]
    names = [node["metadata"]["name"] for node in first]
    apply_all(api, first)
    wait_nodes_ready(api, names, Deadline(TIMEOUT))

    def housed() -> bool:
        wanted = sum(
            each["spec"]["replicas"] for each in api.items(resource_path("apps/v1", "deployments", "kubevirt"))
        )
        pods = [pod for pod in api.items(resource_path("v1", "pods", "kubevirt")) if not _is_of_daemon(pod)]
        return len(pods) == wanted and all(_is_running(pod) and pod["spec"].get("nodeName") in names for pod in pods)

    if first:
        wait_for(f"KubeVirt's own pods on {' and '.join(names)}", housed, TIMEOUT)


def _takes_any_pod(node: Object) -> bool:
    return not (node["spec"].get("taints") or node["spec"].get("unschedulable"))


def _is_of_daemon(pod: Object) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


def _is_running(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running") and not _is_going(pod)


def _going(api: Api) -> list[str]:
    """VMs that are being deleted, or will be with their namespace."""
    ending = {item["metadata"]["name"] for item in api.items("/api/v1/namespaces") if _is_going(item)}
    vmis = api.items(resource_path(KUBEVIRT, VMIS))
    return [vmi["metadata"]["name"] for vmi in vmis if _is_going(vmi) or vmi["metadata"]["namespace"] in ending]


def _is_going(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def remove(api: Api, scenario: Scenario) -> None:
    """Delete the scenario, the last-made objects first. Its namespaces stay: ending one takes seconds."""
    for stage in reversed(scenario.stages()):
        for obj in stage:
            if obj["kind"] != "Namespace":
                delete(api, object_path(obj))
        # Without its node a pod would wait for a kubelet that never answers.
        wait_for("the end of the scenario's pods", lambda: not any_left(api, scenario), TIMEOUT)


def delete(api: Api, path: str, **options: int) -> None:
    """What is gone already is no mistake."""
    try:
        api.delete(path, **options)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise


def any_left(api: Api, scenario: Scenario) -> bool:
    return any(
        api.items(resource_path(api_version, resource, namespace))
        for namespace in scenario.namespaces
        for api_version, resource in ((KUBEVIRT, VMIS), ("v1", "pods"))
    )


def remove_nodes(api: Api) -> None:
    _remove_with_pods(api, {node["metadata"]["name"] for node in api.items("/api/v1/nodes")})


def _remove_with_pods(api: Api, nodes: Collection[str]) -> None:
    """KubeVirt's own pods on a node that is gone would be collected a minute later, and replaced in the next test."""
    for name in sorted(nodes):
        delete(api, resource_path("v1", "nodes", name=name))

    def none_left() -> bool:
        left = [pod["metadata"] for pod in api.items("/api/v1/pods") if pod["spec"].get("nodeName") in nodes]
        for pod in left:
            delete(api, resource_path("v1", "pods", pod["namespace"], pod["name"]), gracePeriodSeconds=0)
        return not left

    # Once is not enough: who has not heard yet that a node is gone makes another pod for it.
    wait_for("the end of the pods on nodes that are gone", none_left, TIMEOUT)


def remove_deserted(api: Api, names: Iterable[str]) -> None:
    """Delete nodes as soon as no VM's pod is on them: without its kubelet one would wait for the garbage collector."""
    nodes = set(names)

    def launchers_left() -> bool:
        found = api.items("/api/v1/pods", labelSelector="kubevirt.io=virt-launcher")
        return any(pod["spec"].get("nodeName") in nodes for pod in found)

    wait_for(f"the end of all VMs on {', '.join(sorted(nodes))}", lambda: not launchers_left(), TIMEOUT)
    _remove_with_pods(api, nodes)


def vmis(api: Api, namespace: str, **labels: str) -> list[Object]:
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return api.items(resource_path(KUBEVIRT, VMIS, namespace), labelSelector=selector)


def vmi_on(api: Api, namespace: str, node: str, app: str) -> Object:
    return next(vmi for vmi in vmis(api, namespace, app=app) if vmi["status"]["nodeName"] == node)


def refreshed(api: Api, vmi: Object) -> Object:
    return api.get(resource_path(KUBEVIRT, VMIS, vmi["metadata"]["namespace"], vmi["metadata"]["name"]))


def pods(api: Api, namespace: str, selector: str) -> list[Object]:
    """Pods that have not ended."""
    found = api.items(resource_path("v1", "pods", namespace), labelSelector=selector)
    return [pod for pod in found if pod["status"]["phase"] not in ("Succeeded", "Failed")]


def launchers(api: Api, vmi: Object) -> list[Object]:
    """A VMI's own pods that have not ended: one, and a second one while it migrates."""
    return pods(api, vmi["metadata"]["namespace"], f"kubevirt.io/created-by={vmi['metadata']['uid']}")


def migrate(api: Api, vmi: Object, node: str = "") -> Object:
    """Ask for a live migration, to `node` if given."""
    metadata = vmi["metadata"]
    migration: Object = {
        "apiVersion": KUBEVIRT,
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": f"{metadata['name']}-{uuid.uuid4().hex[:8]}",
            "namespace": metadata["namespace"],
        },
        "spec": {"vmiName": metadata["name"]},
    }
    if node:
        migration["spec"]["addedNodeSelector"] = {HOST: node}
    return api.create(resource_path(KUBEVIRT, MIGRATIONS, metadata["namespace"]), migration)


def let_time_out(api: Api, migration: Object) -> None:
    """Have KubeVirt give up a target pod without a node now, instead of after five minutes, and wait for it."""
    metadata = migration["metadata"]
    path = resource_path(KUBEVIRT, MIGRATIONS, metadata["namespace"], metadata["name"])
    api.patch(path, {"metadata": {"annotations": {UNSCHEDULABLE_TIMEOUT: "1"}}})
    wait_for_phase(api, migration, "Failed")


def wait_for_phase(api: Api, migration: Object, phase: str) -> None:
    metadata = migration["metadata"]
    path = resource_path(KUBEVIRT, MIGRATIONS, metadata["namespace"], metadata["name"])
    wait_for(
        f"migration {metadata['name']} to be {phase}",
        lambda: api.get(path).get("status", {}).get("phase") == phase,
        TIMEOUT,
    )


def scheduling_message(api: Api, vmi: Object) -> str:
    """What the scheduler says of the VMI's pod that has no node, without what it found out about preemption."""
    messages: list[str] = []

    def told() -> bool:
        messages[:] = [
            condition["message"]
            for pod in launchers(api, vmi)
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False" and "message" in condition
        ]
        return bool(messages)

    wait_for(f"the scheduler's word on {vmi['metadata']['name']}", told, TIMEOUT)
    return messages[0].partition(" no new claims to deallocate")[0]


def evict(api: Api, pod: Object) -> None:
    """Raises ApiError with status 429 when somebody else, such as KubeVirt, is to move it away."""
    metadata = pod["metadata"]
    api.create(
        resource_path("v1", "pods", metadata["namespace"], metadata["name"]) + "/eviction",
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {key: metadata[key] for key in ("name", "namespace")},
        },
    )


@contextmanager
def cordoned(api: Api, node: str) -> Iterator[None]:
    """At its end pods are placed there again: the node controller takes its taint away a little later."""
    path = resource_path("v1", "nodes", name=node)
    api.patch(path, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        api.patch(path, {"spec": {"unschedulable": None}})
        wait_for(f"the end of the taint of {node}", lambda: not is_tainted(api, node), TIMEOUT)


def is_tainted(api: Api, node: str) -> bool:
    """As the node controller does with those that are cordoned."""
    taints = api.get(resource_path("v1", "nodes", name=node))["spec"].get("taints", ())
    return any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in taints)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in which KubeVirt makes the pods of the cases. Nothing needs to run, or to fit on a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from integration.clusters import VMIS, remove_nodes
from integration.configured import PATH
from integration.launcher.cases import CASE, KUBEVIRT, Surroundings
from testbed.api import Api, ApiError, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.waiting import wait_for

TSC = "cpu-timer.node.kubevirt.io/tsc-frequency"
TIMEOUT = 120.0
STORAGE_CLASS = "launcher-state"


@contextmanager
def configured(testbed: RunningTestbed, surroundings: Surroundings) -> Iterator[None]:
    """A KubeVirt with the configuration, which it has taken over."""
    before = testbed.api.get(PATH)
    configuration = {**surroundings.configuration, "vmStateStorageClass": STORAGE_CLASS}
    try:
        _configure(testbed, {**before["spec"], "configuration": configuration}, surroundings.annotations)
        yield
    finally:
        _configure(testbed, before["spec"], before["metadata"].get("annotations") or {})


def _configure(testbed: RunningTestbed, spec: Object, annotations: Object) -> None:
    now = testbed.api.get(PATH)
    changed = {**now, "metadata": {**now["metadata"], "annotations": annotations}, "spec": spec}
    stored = testbed.api.replace(PATH, changed)
    taken = f"KubeVirt to resource version '{stored['metadata']['resourceVersion']}'"
    for part in ("virt-api", "virt-controller"):
        # Both say so in their logs and nowhere else; an unchanged object has the version that they have taken before.
        wait_for(f"{part} to take KubeVirt's configuration", partial(_says, testbed.home.log(part), taken), TIMEOUT)


def _says(log: Path, text: str) -> bool:
    return text in log.read_text()


@contextmanager
def cluster(api: Api) -> Iterator[None]:
    """Nodes that offer nothing but time stamp counters, and classes that VMs name."""
    remove_nodes(api)
    for name, frequency, schedulable in (("fast", 2500, "true"), ("slow", 2100, "true"), ("away", 1900, "false")):
        labels = {TSC: f"{frequency}000000", "kubevirt.io/schedulable": schedulable}
        api.create("/api/v1/nodes", fake_node(name, cpu=0, memory="0", pods=0, labels=labels))
    made = list(_classes())
    for item in made:
        api.apply(item)
    try:
        yield
    finally:
        for item in made:
            api.delete(object_path(item))
        # Not after each file: KubeVirt ends the VMs of one while it starts those of the next.
        wait_for("the end of the VMs", lambda: not api.items(f"/apis/{KUBEVIRT}/{VMIS}", labelSelector=CASE), TIMEOUT)
        remove_nodes(api)


def _classes() -> Iterator[Object]:
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "important"},
        "value": 1000,
        "preemptionPolicy": "Never",
    }
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "boxed"},
        "handler": "boxed",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"boxes": "yes"},
            "tolerations": [{"key": "boxed", "operator": "Exists"}],
        },
    }
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


@contextmanager
def namespace(testbed: RunningTestbed, surroundings: Surroundings) -> Iterator[str]:
    api, name = testbed.api, testbed.namespace("launcher")
    metadata = {"name": "launcher", "namespace": name}
    made = [
        _object("v1", "PersistentVolumeClaim", {"name": claim, "namespace": name}, spec=_CLAIM)
        for claim in surroundings.claims
    ]
    made += [network(name, title, device) for title, device in surroundings.networks.items()]
    if surroundings.namespace:
        made.append(_object("v1", "Namespace", {"name": name, "labels": surroundings.namespace}))
    if surroundings.quota:
        made.append(_object("v1", "ResourceQuota", metadata, spec={"hard": surroundings.quota}))
    if surroundings.defaults:
        made.append(_object("v1", "LimitRange", metadata, spec={"limits": list(surroundings.defaults)}))
    for item in made:
        api.apply(item)
    try:
        yield name
    finally:
        for resource in ("virtualmachines", "virtualmachineinstancereplicasets", VMIS):
            api.delete(resource_path(KUBEVIRT, resource, name))
        testbed.drop_namespace(name)


_CLAIM: Object = {
    "accessModes": ["ReadWriteMany"],
    "storageClassName": STORAGE_CLASS,
    "resources": {"requests": {"storage": "1Gi"}},
}


def network(namespace: str, name: str, device: str) -> Object:
    """A NetworkAttachmentDefinition. device: the resource that it asks for, may be empty."""
    annotations = {"k8s.v1.cni.cncf.io/resourceName": device} if device else {}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return _object("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", metadata, spec={"config": "{}"})


def _object(api_version: str, kind: str, metadata: Mapping[str, object], **more: object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), **more}


def start(api: Api, manifests: list[Object]) -> list[Object]:
    """Create them, and return the VMI of each, with its pod waited for."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        refused = [line for line in pool.map(partial(_refused, api), manifests) if line]
    assert not refused, "\n".join(refused)
    where = manifests[0]["metadata"]["namespace"]
    started: list[Object] = []

    def all_have_pods() -> bool:
        owners = {_owner(pod) for pod in api.items(resource_path("v1", "pods", where))}
        vmis = api.items(resource_path(KUBEVIRT, VMIS, where))
        started[:] = [vmi for vmi in vmis if vmi["metadata"]["uid"] in owners]
        return len(started) == len(manifests)

    try:
        wait_for("the pods of the VMs", all_have_pods, TIMEOUT, interval=0.5)
    except TestbedError as error:
        pytest.fail(f"{error} {_without_pods(api, where, started)}")
    return [next(filter(partial(_is_of, manifest), started)) for manifest in manifests]


def _refused(api: Api, manifest: Object) -> str:
    try:
        api.create(object_path(manifest).rsplit("/", 1)[0], manifest)
    except ApiError as error:
        return f"{manifest['metadata']['name']}: {error}"
    return ""


def _without_pods(api: Api, where: str, started: list[Object]) -> str:
    """What KubeVirt says of VMIs for which it has made no pod."""
    names = {vmi["metadata"]["name"] for vmi in started}
    return "; ".join(
        f"{vmi['metadata']['name']}: {vmi['status'].get('conditions')}"
        for vmi in api.items(resource_path(KUBEVIRT, VMIS, where))
        if vmi["metadata"]["name"] not in names
    )


def _is_of(manifest: Object, vmi: Object) -> bool:
    own = manifest["metadata"]["name"]
    owners = [owner["name"] for owner in vmi["metadata"].get("ownerReferences", [])]
    return own in (vmi["metadata"]["name"], *owners)


def _owner(pod: Object) -> str:
    return next((owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])), "")

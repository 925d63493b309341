# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs of every kind whose fate may differ: who owns them, their eviction strategy, and whether they can be migrated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from integration.clusters import KUBEVIRT, delete
from testbed.api import Api, Object, checked, object_path, resource_path

SET, POOL = "VirtualMachineInstanceReplicaSet", "VirtualMachinePool"
# The key of a taint whose value is the node's name.
HOME = "fate"
# Bridges end on their node.
FIXED: Object = {"bridge": {}}
FREE: Object = {"masquerade": {}}


T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """One VM.

    node: where it begins, as only it tolerates that node's taint. owner: none, a run strategy for a VirtualMachine, or
    a kind. tolerates: seconds for which its pods bear the loss of their node, None for ever. guarded: by a disruption
    budget that wants it.
    """

    node: str
    name: str
    owner: str = ""
    strategy: str | None = "None"
    migratable: bool = True
    paused: bool = False
    tolerates: int | None = 1
    guarded: bool = False

    def objects(self, namespace: str) -> list[Object]:
        found = [self._owner(namespace)]
        if self.guarded:
            found.append(self._budget(namespace))
        return found

    def _owner(self, namespace: str) -> Object:
        metadata = {"name": self.name, "namespace": namespace}
        labels = {"app": self.name}
        template: Object = {"metadata": {"labels": labels}, "spec": self._spec()}
        if not self.owner:
            vmi = {"apiVersion": KUBEVIRT, "kind": "VirtualMachineInstance", **template}
            return {**vmi, "metadata": {**metadata, "labels": labels}}
        if self.owner == SET:
            spec: Object = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
            return {"apiVersion": KUBEVIRT, "kind": SET, "metadata": metadata, "spec": spec}
        if self.owner == POOL:
            vm = {"metadata": {"labels": labels}, "spec": {"runStrategy": "Always", "template": template}}
            spec = {"replicas": 1, "selector": {"matchLabels": labels}, "virtualMachineTemplate": vm}
            return {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": POOL, "metadata": metadata, "spec": spec}
        spec = {"runStrategy": self.owner, "template": template}
        return {"apiVersion": KUBEVIRT, "kind": "VirtualMachine", "metadata": metadata, "spec": spec}

    def _spec(self) -> Object:
        interface = {"name": "default", **(FREE if self.migratable else FIXED)}
        limit = {} if self.tolerates is None else {"tolerationSeconds": self.tolerates}
        here = {"key": HOME, "operator": "Equal", "value": self.node, "effect": "NoSchedule"}
        spec: Object = {
            "terminationGracePeriodSeconds": 0,
            "domain": {"devices": {"interfaces": [interface]}, "memory": {"guest": "64Mi"}},
            "networks": [{"name": "default", "pod": {}}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", **limit}
                for key in ("unreachable", "not-ready")
            ]
            + [here],
        }
        return spec if self.strategy is None else {**spec, "evictionStrategy": self.strategy}

    def _budget(self, namespace: str) -> Object:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": self.name}}},
        }


def create(api: Api, namespace: str, machines: Sequence[Machine]) -> None:
    """All at once; those that wait to be started are started."""

    def one(machine: Machine) -> None:
        for item in machine.objects(namespace):
            api.create(object_path(item).rpartition("/")[0], item)
        if machine.owner == "Manual":
            path = resource_path("subresources.kubevirt.io/v1", "virtualmachines", namespace, machine.name)
            # virt-api answers in plain text.
            checked(api.http.put(f"{path}/start", json={}, headers={"Accept": "*/*"}))

    together(one, machines)


def pause(api: Api, namespace: str, machines: Sequence[Machine]) -> None:
    """A replica set starts nothing while it is paused, so that comes later."""
    for machine in machines:
        if machine.paused:
            api.patch(resource_path(KUBEVIRT, f"{SET.lower()}s", namespace, machine.name), {"spec": {"paused": True}})


def remove(api: Api, namespace: str, machines: Sequence[Machine]) -> None:
    def one(machine: Machine) -> None:
        for item in machine.objects(namespace):
            delete(api, object_path(item))

    together(one, machines)


def together(act: Callable[[Machine], T], machines: Sequence[Machine]) -> list[T]:
    """Do something to all of them at the same time, and give the results in their order."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(act, machines))


def vmis_of(vmis: Sequence[Object], machine: Machine) -> list[Any]:
    return [vmi for vmi in vmis if vmi["metadata"]["labels"]["app"] == machine.name]

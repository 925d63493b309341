# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few nodes and VMs of one test, and what tests ask of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS, migrate, wait_for_phase
from testbed.api import Api, ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

POLICIES = "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"
TIMEOUT = 60.0
# A migration that takes as long as KubeVirt lets it: of a small VM 150 simulated seconds, less than three real ones.
ENDLESS = ("slow-migration", "--factor", "1000000")


def set_policy(api: Api, namespace: str, **spec: Any) -> None:
    """A MigrationPolicy for the VMs of a namespace, named like it."""
    selectors = {"namespaceSelector": {"kubernetes.io/metadata.name": namespace}}
    body = {
        "apiVersion": "migrations.kubevirt.io/v1alpha1",
        "kind": "MigrationPolicy",
        "metadata": {"name": namespace},
        "spec": {"selectors": selectors, **spec},
    }
    api.create(POLICIES, body)


def drop_policy(api: Api, namespace: str) -> None:
    for policy in api.items(POLICIES, fieldSelector=f"metadata.name={namespace}"):
        api.delete(f"{POLICIES}/{policy['metadata']['name']}")


def never_end(testbed: RunningTestbed, namespace: str, *names: str) -> None:
    """Let migrations of these VMs go on until something else ends them; `drop_policy` is to follow."""
    for name in names:
        testbed.inject(*ENDLESS, "--vmi", f"{namespace}/{name}")
    set_policy(testbed.api, namespace, completionTimeoutPerGiB=0)


def new_vmi(namespace: str, name: str, memory: str, **spec: Any) -> Object:
    """A VMI that can be migrated."""
    return {
        "apiVersion": KUBEVIRT,
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "domain": {
                "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
                "memory": {"guest": memory},
                "resources": {"requests": {"memory": memory}},
            },
            "networks": [{"name": "default", "pod": {}}],
            **spec,
        },
    }


@dataclass
class Lab:
    """VMs in one namespace, and the faults of one test."""

    testbed: RunningTestbed
    namespace: str
    nodes: tuple[str, ...]

    @property
    def api(self) -> Api:
        return self.testbed.api

    def start(self, name: str = "vm", memory: str = "512Mi", **spec: Any) -> Object:
        """A VMI that runs and is ready."""
        self.api.create(resource_path(KUBEVIRT, VMIS, self.namespace), new_vmi(self.namespace, name, memory, **spec))
        self.wait(f"{name} to be ready", lambda: self.condition(name, "Ready") == "True")
        return self.vmi(name)

    def vmi(self, name: str = "vm") -> Object:
        return self.api.get(resource_path(KUBEVIRT, VMIS, self.namespace, name))

    def exists(self, name: str = "vm") -> bool:
        try:
            self.vmi(name)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def phase(self, name: str = "vm") -> str:
        return str(self.vmi(name)["status"].get("phase", ""))

    def node_of(self, name: str = "vm") -> str:
        return str(self.vmi(name)["status"]["nodeName"])

    def state(self, name: str = "vm") -> Object:
        """`status.migrationState`, empty before the first migration."""
        return dict(self.vmi(name)["status"].get("migrationState") or {})

    def condition(self, name: str, kind: str) -> str:
        conditions = self.vmi(name)["status"].get("conditions", [])
        return next((c["status"] for c in conditions if c["type"] == kind), "")

    def pods(self, name: str = "vm") -> dict[str, Object]:
        """All virt-launcher pods of a VM, ended ones too, by name."""
        found = self.api.items(resource_path("v1", "pods", self.namespace), labelSelector=f"app={name}")
        return {pod["metadata"]["name"]: pod for pod in found}

    def pod_phase(self, pod: str) -> str:
        return str(self.api.get(resource_path("v1", "pods", self.namespace, pod))["status"]["phase"])

    def migrate(self, name: str = "vm", node: str = "") -> Object:
        return migrate(self.api, self.vmi(name), node)

    def migration(self, migration: Object) -> Object:
        name = migration["metadata"]["name"]
        return self.api.get(resource_path(KUBEVIRT, MIGRATIONS, self.namespace, name))

    def cancel(self, migration: Object) -> None:
        name = migration["metadata"]["name"]
        self.api.delete(resource_path(KUBEVIRT, MIGRATIONS, self.namespace, name))

    def until(self, migration: Object, phase: str) -> None:
        wait_for_phase(self.api, migration, phase)

    def inject(self, *words: str) -> None:
        self.testbed.inject(*words)

    def policy(self, **spec: Any) -> None:
        """A MigrationPolicy for the VMs of the test."""
        set_policy(self.api, self.namespace, **spec)

    def never_end(self, name: str = "vm") -> None:
        never_end(self.testbed, self.namespace, name)

    def node(self, name: str) -> Object:
        return self.api.get(resource_path("v1", "nodes", name=name))

    def settle(self) -> None:
        """No fault, no policy, every node well."""
        self.inject("clear")
        drop_policy(self.api, self.namespace)
        self.wait("all nodes to be well", lambda: all(map(self.well, self.nodes)))

    def well(self, name: str) -> bool:
        node = self.node(name)
        return ready(node) == "True" and schedulable(node) == "true"

    def wait(self, what: str, check: Callable[[], bool], timeout: float = TIMEOUT) -> None:
        wait_for(what, check, timeout, interval=0.05)

    @staticmethod
    def stays(check: Callable[[], bool], seconds: float = 1.0) -> bool:
        """Whether something holds all the time for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not check():
                return False
            time.sleep(0.05)
        return True


def ended(pod: Object) -> bool:
    """Whether all containers of a pod have ended."""
    return all("terminated" in status["state"] for status in pod["status"]["containerStatuses"])


def ready(node: Object) -> str:
    return next(str(c["status"]) for c in node["status"]["conditions"] if c["type"] == "Ready")


def schedulable(node: Object) -> str:
    """For virt-controller, by the label that virt-handler sets."""
    return str(node["metadata"]["labels"]["kubevirt.io/schedulable"])


def heartbeat(node: Object) -> str:
    return str(node["metadata"]["annotations"]["kubevirt.io/heartbeat"])

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt takes the policy that was foretold, and lets as many migrations go at a time as was foretold."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import (
    Surroundings,
    surroundings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_policy import terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import Queue, queue
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity

from integration.clusters import KUBEVIRT, VMIS, migrate, remove_deserted, vmis
from integration.configured import configured
from integration.fate.watching import lists, projected
from integration.simulator.lab import new_vmi
from testbed.api import Api, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.waiting import wait_for

NODES = ("queue-0", "queue-1", "queue-2")
TIMEOUT = 120.0
# By the names of the VMs: their labels beside `app`.
MACHINES: dict[str, dict[str, str]] = {
    "plain": {},
    "gold": {"tier": "gold"},
    "gold-db": {"tier": "gold", "kind": "db"},
    "tied": {"tied": "yes"},
    "tied-to-space": {"tied": "no", "size": "s"},
    "quiet": {"quiet": "yes"},
    "v-6": {},
    "v-7": {},
    "v-8": {},
}
POLICIES: dict[str, Object] = {
    "of-the-space": {"around": {"team": "queue"}, "bandwidthPerMigration": "64Mi"},
    "gold": {"own": {"tier": "gold"}, "around": {"team": "queue"}, "completionTimeoutPerGiB": 30_000_000},
    "gold-db": {"own": {"tier": "gold", "kind": "db"}, "around": {"team": "queue"}, "allowPostCopy": True},
    "b-tied": {"own": {"tied": "yes"}, "around": {"team": "queue"}, "allowAutoConverge": True},
    "a-tied": {"own": {"tied": "yes"}, "around": {"team": "queue"}, "allowWorkloadDisruption": True},
    "more-of-the-vm": {"own": {"tied": "no", "size": "s"}, "bandwidthPerMigration": "1Mi"},
    "more-of-the-space": {"around": {"team": "queue", "floor": "2"}, "bandwidthPerMigration": "2Mi"},
    "not-of-it": {"own": {"tier": "gold", "kind": "web"}, "bandwidthPerMigration": "3Mi"},
    "changes-nothing": {"own": {"quiet": "yes"}, "around": {"team": "queue", "floor": "2"}},
}
# KubeVirt is to give up no migration that is held in flight: after 150 simulated seconds it would, in three real ones.
CLUSTER: Object = {
    "migrations": {"completionTimeoutPerGiB": 20_000_000, "allowPostCopy": False, "progressTimeout": 100}
}


@dataclass(frozen=True)
class Place:
    """VMs that run, spread over the nodes."""

    testbed: RunningTestbed
    namespace: str

    @property
    def api(self) -> Api:
        return self.testbed.api

    def around(self) -> Surroundings:
        return surroundings(projected(lists(self.api)))

    def vmi(self, name: str) -> Object:
        return self.api.get(resource_path(KUBEVIRT, VMIS, self.namespace, name))

    def migrate_all(self) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(partial(migrate, self.api), map(self.vmi, MACHINES)))

    def state(self, name: str) -> Object:
        """Of its last migration."""
        return dict(self.vmi(name)["status"].get("migrationState") or {})

    def idle(self) -> bool:
        return not self.around().migrations


@pytest.fixture(scope="module")
def place(testbed: RunningTestbed) -> Iterator[Place]:
    api, namespace = testbed.api, testbed.namespace()
    labels = {"team": "queue", "floor": "2"}
    api.patch(resource_path("v1", "namespaces", name=namespace), {"metadata": {"labels": labels}})
    for name in NODES:
        api.create("/api/v1/nodes", fake_node(name))
    policies = [policy(name, **spec) for name, spec in POLICIES.items()]
    try:
        for item in policies:
            api.create(object_path(item).rpartition("/")[0], item)
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(partial(start, api, namespace), MACHINES))
        wait_for("the VMs to run", lambda: all(map(is_ready, vmis(api, namespace))), TIMEOUT, 0.5)
        with configured(api, CLUSTER):
            yield Place(testbed, namespace)
    finally:
        testbed.inject("clear")
        for item in policies:
            api.delete(object_path(item))
        for name in MACHINES:
            api.delete(resource_path(KUBEVIRT, VMIS, namespace, name))
        remove_deserted(api, NODES)
        testbed.drop_namespace(namespace)


def policy(name: str, own: Object | None = None, around: Object | None = None, **changes: object) -> Object:
    selectors = {"virtualMachineInstanceSelector": own, "namespaceSelector": around}
    spec = {"selectors": {kind: labels for kind, labels in selectors.items() if labels}, **changes}
    kind = {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def start(api: Api, namespace: str, name: str) -> None:
    vmi = new_vmi(namespace, name, "64Mi")
    vmi["metadata"]["labels"] |= {**MACHINES[name], "in": namespace}
    # As even as the scheduler can, so that more leave each node than may at a time.
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"in": namespace}},
        # Before the migrations, the VMs' own second pods would be in each other's way.
        "matchLabelKeys": ["kubevirt.io/migrationJobUID"],
    }
    vmi["spec"]["topologySpreadConstraints"] = [apart]
    api.create(resource_path(KUBEVIRT, VMIS, namespace), vmi)


def is_ready(vmi: Object) -> bool:
    conditions = {entry["type"]: entry["status"] for entry in vmi.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == conditions.get("LiveMigratable") == "True"


def told(state: Object) -> Migrations:
    """What KubeVirt wrote down of the terms, laid over what is not written."""
    given = state["migrationConfiguration"]
    return Migrations(
        bandwidth=quantity.units(quantity.parse(given["bandwidthPerMigration"])),
        completion_timeout_per_gib=given["completionTimeoutPerGiB"],
        progress_timeout=given["progressTimeout"],
        auto_converge=given["allowAutoConverge"],
        post_copy=given["allowPostCopy"],
        allow_workload_disruption=given["allowWorkloadDisruption"],
    )


def test_policies(place: Place) -> None:
    around = place.around()
    namespace = place.api.get(resource_path("v1", "namespaces", name=place.namespace))
    policies = lists(place.api)["migrationpolicies"]
    cluster = around.configuration.migrations
    labels = namespace["metadata"]["labels"]
    foretold = {name: terms(place.vmi(name), labels, policies, cluster) for name in MACHINES}
    assert {entry.policy for entry in foretold.values()} == {
        "more-of-the-space",
        "gold-db",
        "a-tied",
        "more-of-the-vm",
        "",
        "gold",
    }
    place.migrate_all()
    wait_for("the migrations", lambda: all(place.state(name).get("completed") for name in MACHINES), TIMEOUT, 0.5)
    for name, expected in foretold.items():
        state = place.state(name)
        assert (state.get("migrationPolicyName", ""), told(state)) == (expected.policy, expected.migrations), name


def test_as_many_go_as_may(place: Place) -> None:
    wait_for("the migrations to be over", place.idle, TIMEOUT, 0.5)
    homes = {name: place.vmi(name)["status"]["nodeName"] for name in MACHINES}
    place.testbed.inject("slow-migration", "--factor", "1000000")
    place.migrate_all()

    seen: list[Queue] = []

    def full() -> bool:
        now = queue(place.around())
        seen[:] = [now]
        # How many may leave a node depends also on where its VMs came from.
        stuck = all(now.free_on(homes[entry.vmi]) == 0 for entry in now.waiting)
        return len(now.running) + len(now.waiting) == len(MACHINES) and (stuck or not now.free)

    try:
        wait_for("the places to be taken", full, TIMEOUT, 0.5)
    except TestbedError as error:
        error.add_note(f"Last seen: {seen}. The VMs came from {homes}.")
        raise
    check(place, seen[0], homes)


def check(place: Place, now: Queue, homes: dict[str, str]) -> None:
    """Who holds a place has a target pod, and only these; no more than may."""
    pods = place.api.items(resource_path("v1", "pods", place.namespace), labelSelector="kubevirt.io/migrationJobUID")
    targets = {pod["metadata"]["labels"]["app"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")}
    moving = {entry.vmi for entry in now.running}
    assert moving <= targets
    assert moving | {entry.vmi for entry in now.waiting} == set(MACHINES)
    assert len(moving) <= now.caps.parallel_per_cluster
    for node in NODES:
        assert sum(homes[name] == node for name in moving) <= now.caps.parallel_outbound_per_node
        if now.free and any(homes[entry.vmi] == node for entry in now.waiting):
            assert now.free_on(node) == 0

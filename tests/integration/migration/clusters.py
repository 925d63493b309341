# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated clusters in which migrations are refused for many reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant

from integration.clusters import loaded
from integration.configured import ALL_AT_ONCE, configured
from integration.migration.guests import REPLICA_SET, REQUIRED, Guest, group, objects, spread, term
from integration.migration.hosts import ZONE
from testbed.api import Api, Object, resource_path
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.scenarios.generator.profiles import HOST
from testbed.scenarios.model import Scenario, Settled

NODES, VMIS, FILL = 12, 36, 0.8
NAMESPACE = "tenant-1"
GIB = 2**30
TIMEOUT = 300.0


def labelled(name: str, replicas: int, **fields: Object) -> Guest:
    return Guest(name, owner=REPLICA_SET, replicas=replicas, labels={"group": name}, **fields)


# Rules that generated VMs do not have. With the policy Ignore a pinned pod is still compared with all nodes.
GUESTS = (
    labelled("even-hosts", 5, spec=spread("even-hosts", HOST, nodeAffinityPolicy="Ignore")),
    labelled("even-zones", 4, spec=spread("even-zones", ZONE, nodeAffinityPolicy="Ignore")),
    labelled("follower", 2, spec={"affinity": {"podAffinity": {REQUIRED: [term(ZONE, **group("leader"))]}}}),
    labelled("leader", 1),
    labelled("intel-only", 2, domain={"cpu": {"model": "Icelake-Server"}}),
)


def scenario(seed: int) -> Scenario:
    generated = generate(GeneratorSpec(nodes=NODES, vmis=VMIS, fill=FILL, seed=seed))
    guests = [item for guest in GUESTS for item in objects(guest, NAMESPACE)]
    return replace(
        generated,
        objects=(*map(peaceful, generated.objects), *guests),
        settled=Settled(generated.settled.pods, VMIS + sum(guest.replicas for guest in GUESTS)),
    )


def peaceful(item: Object) -> Object:
    """A refused pod that puts others to flight would spoil the verdicts on them."""
    return {**item, "preemptionPolicy": "Never"} if item["kind"] == "PriorityClass" else item


@contextmanager
def cluster(api: Api, seed: int) -> Iterator[None]:
    """The cluster of this seed, in which KubeVirt migrates as many VMs at once as it is asked to."""
    with configured(api, {"migrations": ALL_AT_ONCE}), loaded(api, scenario(seed), TIMEOUT):
        trouble(api)
        yield


@dataclass(frozen=True)
class Host:
    """A node, and what its pods take of it: millicores, bytes, numbers."""

    node: Object
    taken: Counter[str]

    def holding(self, resource: str, more: int) -> Object:
        """A status in which so much is left of a resource."""
        amount = self.taken[resource] + more
        return {"allocatable": {resource: f"{amount}m" if resource == "cpu" else str(amount)}}


# What is done to the first nodes, one each; the others stay as they are.
TROUBLES: tuple[Callable[[Host], tuple[str, Object]], ...] = (
    lambda host: ("", {"spec": {"unschedulable": True}}),
    lambda host: ("/status", {"status": host.holding("memory", 2 * GIB)}),
    lambda host: ("/status", {"status": host.holding("cpu", 150)}),
    lambda host: ("/status", {"status": host.holding("pods", 0)}),
    lambda host: ("/status", {"status": host.holding("devices.kubevirt.io/kvm", 0)}),
    lambda host: ("", {"metadata": {"labels": {ZONE: None}}}),
    lambda host: ("", {"spec": {"taints": [{"key": "broken", "effect": "NoSchedule"}]}}),
)


def trouble(api: Api) -> None:
    """Do something to each of several nodes, after which fewer pods fit there; those on it stay."""
    for change, host in zip(TROUBLES, ordinary(api), strict=False):
        subresource, patch = change(host)
        api.patch(resource_path("v1", "nodes", name=host.node["metadata"]["name"]) + subresource, patch)


def ordinary(api: Api) -> Iterator[Host]:
    """Untainted nodes in the order of their names."""
    taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in api.items("/api/v1/pods"):
        if not has_ended(pod):
            of_node = taken[pod["spec"].get("nodeName", "")]
            of_node.update(occupant(pod).requests)
            of_node["pods"] += 1
    for node in api.items("/api/v1/nodes"):
        if not node["spec"].get("taints"):
            yield Host(node, taken[node["metadata"]["name"]])

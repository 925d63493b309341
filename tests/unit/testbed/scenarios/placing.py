# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second opinion on whether a scenario can be placed: reads the objects alone, and knows nothing of the generator.

Pods are placed one by one, each on the emptiest node that its rules allow, and never moved again, as schedulers do.
Amounts are in thousandths of a core and in bytes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]

UNITS = {"": 1, "Mi": 2**20, "Gi": 2**30}
# Upper bounds of what virt-controller adds: fixed, and for a device passed through to the guest.
LAUNCHER_MEMORY = 320 * 2**20
PASSTHROUGH_MEMORY = 2**30
CORE_MEMORY = 8 * 2**20
LAUNCHER_CPU = 30
CPU_PER_GUEST_CORE = 100


class CannotBePlacedError(Exception):
    pass


def size(quantity: str) -> int:
    match = re.fullmatch(r"(\d+)(Mi|Gi|)", quantity)
    assert match, quantity
    return int(match[1]) * UNITS[match[2]]


@dataclass
class Pod:
    name: str
    namespace: str
    labels: dict[str, str]
    spec: Object
    requests: dict[str, int]


@dataclass
class Place:
    node: Object
    free: dict[str, int]
    pods: list[Pod] = field(default_factory=list)

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.node["metadata"]["labels"]
        return labels


def pods_of(objects: Iterable[Object]) -> Iterator[Pod]:
    """What the workloads of a scenario will ask to run."""
    for obj in objects:
        metadata, spec = obj["metadata"], obj.get("spec", {})
        match obj["kind"]:
            case "Deployment":
                for number in range(spec["replicas"]):
                    yield plain_pod(f"{metadata['name']}-{number}", metadata["namespace"], spec["template"])
            case "VirtualMachineInstanceReplicaSet":
                for number in range(spec["replicas"]):
                    yield launcher_pod(f"{metadata['name']}-{number}", metadata["namespace"], spec["template"])
            case "VirtualMachine":
                yield launcher_pod(metadata["name"], metadata["namespace"], spec["template"])


def plain_pod(name: str, namespace: str, template: Object) -> Pod:
    requests = {"cpu": 0, "memory": 0}
    for container in template["spec"]["containers"]:
        amounts = container["resources"]["requests"]
        requests["cpu"] += int(amounts["cpu"].removesuffix("m"))
        requests["memory"] += size(amounts["memory"])
    return Pod(name, namespace, template["metadata"]["labels"], template["spec"], requests)


def launcher_pod(name: str, namespace: str, template: Object) -> Pod:
    domain = template["spec"]["domain"]
    cores = domain["cpu"]["cores"]
    requests = {
        "cpu": LAUNCHER_CPU + CPU_PER_GUEST_CORE * cores,
        "memory": size(domain["memory"]["guest"]) + LAUNCHER_MEMORY + CORE_MEMORY * cores,
    }
    for gpu in domain["devices"].get("gpus", []):
        requests[gpu["deviceName"]] = requests.get(gpu["deviceName"], 0) + 1
        requests["memory"] += PASSTHROUGH_MEMORY
    return Pod(name, namespace, template["metadata"]["labels"], template["spec"], requests)


def place(objects: Iterable[Object]) -> list[Place]:
    """Where everything goes; raises CannotBePlacedError for the first pod without a node."""
    objects = list(objects)
    places = [Place(obj, allocatable(obj)) for obj in objects if obj["kind"] == "Node"]
    pending = list(pods_of(objects))
    for pod in [*(p for p in pending if not needs_company(p)), *(p for p in pending if needs_company(p))]:
        legal = [candidate for candidate in places if allowed(pod, candidate, places)]
        if not legal:
            raise CannotBePlacedError(f"no node for {pod.namespace}/{pod.name}")
        best = max(legal, key=lambda candidate: candidate.free["memory"] / allocatable(candidate.node)["memory"])
        best.pods.append(pod)
        best.free["pods"] -= 1
        for resource, amount in pod.requests.items():
            best.free[resource] -= amount
    return places


def allocatable(node: Object) -> dict[str, int]:
    given = node["status"]["allocatable"]
    amounts = {"cpu": int(given["cpu"]) * 1000, "memory": size(given["memory"]), "pods": int(given["pods"])}
    devices = {name: int(count) for name, count in given.items() if name.startswith("nvidia.com/")}
    return amounts | devices


def allowed(pod: Pod, candidate: Place, places: list[Place]) -> bool:
    return (
        candidate.free["pods"] > 0
        and all(candidate.free.get(resource, 0) >= amount for resource, amount in pod.requests.items())
        and tolerated(pod, candidate)
        and labels_match(pod, candidate.labels)
        and affinity_allows(pod, candidate, places)
        and spread_allows(pod, candidate, places)
    )


def tolerated(pod: Pod, candidate: Place) -> bool:
    tolerations = pod.spec.get("tolerations", [])
    return all(
        any(all(toleration[key] == taint[key] for key in ("key", "value", "effect")) for toleration in tolerations)
        for taint in candidate.node["spec"]["taints"]
    )


def labels_match(pod: Pod, labels: dict[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in pod.spec.get("nodeSelector", {}).items()):
        return False
    rule = required(pod, "nodeAffinity")
    terms = rule["nodeSelectorTerms"] if rule else [{"matchExpressions": []}]
    return any(all(labels.get(e["key"]) in e["values"] for e in term["matchExpressions"]) for term in terms)


def required(pod: Pod, kind: str) -> Any:
    rules = pod.spec.get("affinity", {}).get(kind, {})
    return rules.get("requiredDuringSchedulingIgnoredDuringExecution")


def needs_company(pod: Pod) -> bool:
    return bool(required(pod, "podAffinity"))


def affinity_allows(pod: Pod, candidate: Place, places: list[Place]) -> bool:
    return all(
        any(matches(term, pod.namespace, other) for other in in_domain(term["topologyKey"], candidate, places))
        for term in required(pod, "podAffinity") or ()
    ) and not any(
        matches(term, pod.namespace, other)
        for term in required(pod, "podAntiAffinity") or ()
        for other in in_domain(term["topologyKey"], candidate, places)
    )


def spread_allows(pod: Pod, candidate: Place, places: list[Place]) -> bool:
    for rule in pod.spec.get("topologySpreadConstraints", ()):
        if rule["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        counts: dict[str, int] = defaultdict(int)
        for other in places:
            counts[other.labels[rule["topologyKey"]]] += sum(matches(rule, pod.namespace, p) for p in other.pods)
        if counts[candidate.labels[rule["topologyKey"]]] + 1 - min(counts.values()) > rule["maxSkew"]:
            return False
    return True


def in_domain(key: str, candidate: Place, places: list[Place]) -> Iterator[Pod]:
    for other in places:
        if other.labels[key] == candidate.labels[key]:
            yield from other.pods


def matches(term: Object, namespace: str, other: Pod) -> bool:
    wanted = term["labelSelector"]["matchLabels"]
    return other.namespace == namespace and all(other.labels.get(key) == value for key, value in wanted.items())


def as_bytes(objects: Iterable[Object]) -> bytes:
    return json.dumps(list(objects)).encode()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the scheduler of a running cluster puts pods, against where the collection says beforehand that it will."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

from differential.cases import vocabulary as words
from differential.cases.dice import Dice
from differential.cases.nodes import nodes
from differential.cases.pods import Surroundings, new_pod
from integration.clusters import remove_nodes
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

KUBEVIRT = "kubevirt"
PLACED = 500
NODES = 14
PODS_OF_A_ROUND = 200
MOST_ROUNDS = 8
# Where the pods go, and what the scheduler reads besides nodes and pods.
READ = {"nodes": "nodes", "namespaces": "namespaces", "services": "services"}
# What admission of this cluster refuses, what needs another controller, and what keeps a pod waiting.
LEFT_OUT = ("overhead", "claims", "inline", "generic", "gates", "nominated", "declared", "owners")
FEATURES = {
    "requests": 0.5,
    "taints": 0.2,
    "cordon": 0.08,
    "node-affinity": 0.1,
    "node-preference": 0.3,
    "affinity": 0.05,
    "anti-affinity": 0.05,
    "pod-preference": 0.25,
    "spread": 0.25,
    "images": 0.6,
    "init": 0.15,
    "extended": 0.2,
    "ports": 0.05,
}


@dataclass
class Tally:
    """`wrong`: what was said beforehand and what happened, for each pod of which that was not the same."""

    placed: int = 0
    chosen: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


def test_the_scheduler_does_what_was_said_beforehand(testbed: RunningTestbed) -> None:
    tally = Tally()
    with without_kubevirt(testbed.api):
        for seed in range(MOST_ROUNDS):
            if tally.placed < PLACED:
                play(testbed.api, seed, tally)
    assert tally.wrong == []
    assert tally.placed >= PLACED
    assert tally.chosen >= PLACED / 2, "without a choice of nodes the scores prove nothing"
    assert tally.refused > 0


@contextmanager
def without_kubevirt(api: Api) -> Iterator[None]:
    """KubeVirt's own pods would come to the nodes at moments that nobody can foretell."""
    workloads: dict[str, tuple[Object, Object]] = {
        resource_path("apps/v1", "daemonsets", KUBEVIRT, "virt-handler"): (
            {"template": {"spec": {"nodeSelector": {"test": "nowhere"}}}},
            {"template": {"spec": {"nodeSelector": {"test": None}}}},
        )
    }
    for deployment in api.items(resource_path("apps/v1", "deployments", KUBEVIRT)):
        path = resource_path("apps/v1", "deployments", KUBEVIRT, deployment["metadata"]["name"])
        workloads[path] = {"replicas": 0}, {"replicas": deployment["spec"]["replicas"]}
    try:
        for path, (gone, _unused) in workloads.items():
            api.patch(path, {"spec": gone})
        wait_for("the end of KubeVirt's pods", lambda: not api.items(resource_path("v1", "pods", KUBEVIRT)))
        yield
    finally:
        for path, (_unused, back) in workloads.items():
            api.patch(path, {"spec": back})


def play(api: Api, seed: int, tally: Tally) -> None:
    """A cluster from a seed, and pods one after the other, each onto what the ones before have left."""
    dice = Dice(f"live/{seed}")
    dice.intensity = {**FEATURES, **dict.fromkeys(LEFT_OUT, 0.0)}
    with cluster(api, dice) as names:
        state = cluster_state({name: api.items(resource_path("v1", plural)) for name, plural in READ.items()})
        for number in range(PODS_OF_A_ROUND):
            body = new_pod(dice, f"p{number}", Surroundings(names))
            watch_one(api, body, state, tally)
        there = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in living(api)}
        assert there == {place.occupant.name: place.node for place in state.placements()}, "pods have moved meanwhile"


def watch_one(api: Api, body: Object, state: ClusterState, tally: Tally) -> None:
    """Create a pod and compare what becomes of it with the verdict; it stays only if it got a node."""
    del body["metadata"]["uid"]
    namespace = body["metadata"]["namespace"]
    created = api.create(resource_path("v1", "pods", namespace), body)
    said = explain(parsed(created), state, scores=True)
    path = resource_path("v1", "pods", namespace, created["metadata"]["name"])
    decided = decision(api, path)
    node = decided["spec"].get("nodeName")
    if node:
        tally.placed += 1
        tally.chosen += len(said["fit"]) > 1
        state.add(occupant(decided), node)
        # A node without a rival is not scored.
        scores = said.get("scores", {}) if len(said["fit"]) > 1 else dict.fromkeys(said["fit"], 0)
        if node not in scores or scores[node] < max(scores.values()):
            tally.wrong.append(f"{path}: said {said}, went to {node}")
        return
    api.delete(path, gracePeriodSeconds=0)
    tally.refused += 1
    told = scheduled(decided)["message"]
    failing = said.get("error") and scheduled(decided)["reason"] == "SchedulerError"
    if not (failing or (said["message"] and told.startswith(said["message"]))):
        tally.wrong.append(f"{path}: said {said}, was told {told}")


def decision(api: Api, path: str) -> Object:
    """The pod as soon as it has a node or the scheduler has said why not."""
    found: list[Object] = []

    def decided() -> bool:
        found[:] = [api.get(path)]
        return bool(found[0]["spec"].get("nodeName")) or scheduled(found[0]).get("status") == "False"

    wait_for(f"the scheduler's decision on {path}", decided, 30, interval=0.01)
    return found[0]


def scheduled(pod: Object) -> Object:
    """The condition PodScheduled; empty when there is none yet."""
    conditions: list[Object] = pod["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


@contextmanager
def cluster(api: Api, dice: Dice) -> Iterator[list[str]]:
    """Nodes of these names, ready and as tainted as they will be, and empty namespaces."""
    remove_nodes(api)
    for name in words.NAMESPACES:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": words.TEAM[name]}})
        wait_for(f"the service account of {name}", partial(account_exists, api, name))
        api.apply(service(name))
    made = nodes(dice, NODES)
    for node in made:
        api.create(resource_path("v1", "nodes"), node)
    wait_for("the nodes", lambda: all(settled(node) for node in api.items(resource_path("v1", "nodes"))))
    try:
        yield [node["metadata"]["name"] for node in made]
    finally:
        for name in words.NAMESPACES:
            api.delete(resource_path("v1", "pods", name), gracePeriodSeconds=0)
        wait_for("the end of the pods", lambda: not living(api))
        remove_nodes(api)


def account_exists(api: Api, namespace: str) -> bool:
    return bool(api.get(resource_path("v1", "serviceaccounts", namespace, "default")))


def service(namespace: str) -> Object:
    """Pods of a service are spread by default."""
    metadata = {"name": "a", "namespace": namespace}
    spec = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def living(api: Api) -> list[Object]:
    return [pod for name in words.NAMESPACES for pod in api.items(resource_path("v1", "pods", name))]


def settled(node: Object) -> bool:
    """Whether the kubelet has reported, and the controllers have made the node's taints what they are to be."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
    keys = [taint["key"] for taint in node["spec"].get("taints", [])]
    cordon = "node.kubernetes.io/unschedulable"
    return (
        ready
        and "node.kubernetes.io/not-ready" not in keys
        and ((cordon in keys) == node["spec"].get("unschedulable", False))
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods: those that are there, in every stage of their lives, and those asked about."""

from __future__ import annotations

from dataclasses import dataclass, field

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json
from differential.cases.node_affinity import node_affinity, node_selector
from differential.cases.nodes import tolerations
from differential.cases.pod_affinity import pod_affinity
from differential.cases.resources import containers
from differential.cases.spread import constraints, owner_reference
from differential.cases.volumes import pod_volumes


@dataclass
class Surroundings:
    """What pods can refer to. `claims`: names by namespace."""

    nodes: list[str]
    claims: dict[str, list[str]] = field(default_factory=dict)


def asked_pod(dice: Dice, name: str, around: Surroundings) -> Json:
    """A pod that waits for a node."""
    pod = new_pod(dice, name, around)
    pod["status"] = {"phase": "Pending"}
    if dice.feature("gates"):
        pod["spec"]["schedulingGates"] = [{"name": f"example.com/{gate}"} for gate in dice.some(("q", "r"), 2, 1)]
    if dice.chance(0.01) and around.nodes:
        pod["spec"]["nodeName"] = dice.pick([*around.nodes, "vanished"])
        pod["spec"].pop("schedulingGates", None)
    return pod


def present_pod(dice: Dice, name: str, around: Surroundings) -> Json:
    """A pod of the cluster: mostly running, else ended, ending, waiting, promised a node, or on a node that is gone."""
    pod = new_pod(dice, name, around)
    pod["status"] = {"phase": dice.pick(("Running",) * 8 + ("Pending", "Succeeded", "Failed", "Unknown", ""))}
    if around.nodes and dice.feature("nominated") and dice.chance(0.3):
        pod["status"] |= {"phase": "Pending", "nominatedNodeName": dice.pick(around.nodes)}
    elif around.nodes and dice.chance(0.9):
        pod["spec"]["nodeName"] = dice.pick(around.nodes) if dice.chance(0.97) else "vanished"
    if dice.chance(0.1):
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    if pod["spec"].get("nodeName") and dice.feature("resize"):
        pod["status"] |= resize(dice, pod)
    return pod


def present_pods(dice: Dice, count: int, around: Surroundings) -> list[Json]:
    """Pods of the cluster. Some are replicas of the one before: the same but for the name, the node and the life."""
    found: list[Json] = []
    for number in range(count):
        pod = present_pod(dice, f"p{number}", around)
        if found and dice.chance(0.3):
            model = found[-1]
            pod["metadata"] |= {"namespace": model["metadata"]["namespace"], "labels": model["metadata"]["labels"]}
            pod["spec"] |= {"affinity": model["spec"].get("affinity", {})}
        found.append(pod)
    return found


def new_pod(dice: Dice, name: str, around: Surroundings) -> Json:
    namespace = dice.pick(words.NAMESPACES)
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"pod-{name}", "labels": words.pod_labels(dice)}
    if references := owner_reference(dice):
        metadata["ownerReferences"] = references
    spec = {**containers(dice), **placement(dice, around)}
    if volumes := pod_volumes(dice, around.claims.get(namespace, [])):
        spec["volumes"] = volumes
    ports(dice, spec)
    declared_features(dice, spec)
    if dice.feature("images") and dice.chance(0.2):
        image = {"name": "image", "image": {"reference": dice.pick(words.IMAGES)}}
        spec["volumes"] = [*spec.get("volumes", []), image]
    if dice.feature("nominated"):
        spec["priority"] = dice.pick((0, 5, 10))
    return {"metadata": metadata, "spec": spec}


def placement(dice: Dice, around: Surroundings) -> Json:
    """The fields that say where the pod wants to be."""
    found: Json = {}
    affinity = pod_affinity(dice)
    if on_nodes := node_affinity(dice, around.nodes):
        affinity["nodeAffinity"] = on_nodes
    if affinity:
        found["affinity"] = affinity
    for name, value in (
        ("nodeSelector", node_selector(dice)),
        ("tolerations", tolerations(dice)),
        ("topologySpreadConstraints", constraints(dice)),
    ):
        if value:
            found[name] = value
    return found


def ports(dice: Dice, spec: Json) -> None:
    """Ports of the host; those of plain init containers do not count, those of sidecars do."""
    if dice.feature("ports") and dice.chance(0.1):
        # Then every port of a container is one of the host, which the API server writes down.
        spec["hostNetwork"] = True
    for container in [*spec["containers"][:1], *spec.get("initContainers", [])]:
        if dice.feature("ports"):
            port: Json = {"containerPort": dice.pick((80, 443)), "protocol": dice.pick(("TCP", "TCP", "UDP"))}
            port["hostPort"] = port["containerPort"]
            if dice.chance(0.4):
                port["hostIP"] = dice.pick(("0.0.0.0", "127.0.0.1", "10.0.0.1", ""))  # noqa: S104 -- a value, not a server
            container["ports"] = [port]


def declared_features(dice: Dice, spec: Json) -> None:
    """A wish that only kubelets with a certain feature fulfil."""
    if dice.feature("declared"):
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
        spec["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}


def resize(dice: Dice, pod: Json) -> Json:
    """The status of a pod whose requests are being changed: what the kubelet has allotted and what it has done."""
    statuses = []
    for container in pod["spec"]["containers"]:
        requests = {"cpu": dice.pick(("100m", "1", "2")), "memory": dice.pick(("256Mi", "1Gi", "2Gi"))}
        status: Json = {"name": container["name"], "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        if dice.chance(0.7):
            status["resources"] = {"requests": requests}
        if dice.chance(0.7):
            status["allocatedResources"] = {"cpu": dice.pick(("100m", "1500m")), "memory": dice.pick(("128Mi", "1Gi"))}
        statuses.append(status)
    whole: Json = {}
    if "resources" in pod["spec"]:
        whole["resources"] = {"requests": {"cpu": dice.pick(("250m", "2")), "memory": dice.pick(("256Mi", "2Gi"))}}
        whole["allocatedResources"] = {"cpu": dice.pick(("250m", "2")), "memory": dice.pick(("256Mi", "2Gi"))}
    reason = dice.pick(("Infeasible", "Deferred"))
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    return {**whole, "containerStatuses": statuses, "conditions": [pending] if dice.chance(0.6) else []}

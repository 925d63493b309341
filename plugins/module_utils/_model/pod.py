# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that is to be placed: what it is once placed (`Occupant`), and what it asks of nodes and neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import resources, taints
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    PREFERRED,
    REQUIRED,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant, occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    exact_requirements,
    label_selector,
    node_selector_term,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import Toleration


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint. Follows pkg/scheduler/framework/plugins/podtopologyspread/common.go.

    `hard`: forbids nodes; otherwise it only lowers their score.

    `honors_affinity`, `honors_taints`: only nodes that the pod's node affinity, or its tolerations, admit are counted.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: LabelSelector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


def spread_constraint(raw: Object, labels: Labels) -> SpreadConstraint:
    """Parse a v1.TopologySpreadConstraint of a pod with these labels. Raises `SelectorError`."""
    keys = raw.get("matchLabelKeys") or ()
    own = exact_requirements({key: labels[key] for key in keys if key in labels})
    minimum = raw.get("minDomains")
    return SpreadConstraint(
        topology_key=raw["topologyKey"],
        max_skew=raw["maxSkew"],
        hard=raw["whenUnsatisfiable"] == "DoNotSchedule",
        selector=label_selector(raw.get("labelSelector")).narrowed(own),
        min_domains=1 if minimum is None else minimum,
        honors_affinity=(raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honors_taints=(raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )


@dataclass(frozen=True, slots=True)
class NodeAffinityTerms:
    """`selector`: labels that must be there. `required`: terms of which one must hold, None if not given.

    `preferred`: weights with terms.
    """

    selector: tuple[Requirement, ...] = ()
    required: tuple[NodeSelectorTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] = ()


@dataclass(frozen=True, slots=True)
class Controller:
    """The object that owns a pod."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A v1.Pod to place.

    `requests`: what must be free. `balanced_requests` (cpu, memory) and `assumed_requests` (cpu, memory, with
    assumptions and without pod level values): what the scores of resources calculate with.
    `images`: of init containers, containers and image volumes; `containers`: how many of both kinds there are.
    `gates`: scheduling gates that hold it back. `features`: what the node's kubelet must declare.
    `claims`: names of ResourceClaims, which are not evaluated.
    """

    occupant: Occupant
    node_name: str
    nominated_node: str
    priority: int
    requests: Amounts
    balanced_requests: tuple[int, int]
    assumed_requests: tuple[int, int]
    tolerations: tuple[Toleration, ...]
    node_affinity: NodeAffinityTerms
    spread: tuple[SpreadConstraint, ...]
    controller: Controller | None
    images: tuple[str, ...]
    containers: int
    gates: tuple[str, ...]
    features: frozenset[str]
    claims: tuple[str, ...]


def pod(raw: Object) -> Pod:
    """Parse a v1.Pod as an API server stores it. Raises `SelectorError`, `QuantityError`."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    assumed = resources.pod_requests(raw, as_running=False, pod_level=False, assumed=resources.ASSUMED)
    labels = metadata.get("labels") or {}
    containers = _containers(spec)
    return Pod(
        occupant=occupant(raw),
        node_name=spec.get("nodeName") or "",
        nominated_node=status.get("nominatedNodeName") or "",
        priority=spec.get("priority") or 0,
        requests=resources.amounts(resources.pod_requests(raw, as_running=False)),
        balanced_requests=_cpu_and_memory(resources.pod_requests(raw, as_running=True)),
        assumed_requests=_cpu_and_memory(assumed),
        tolerations=tuple(taints.toleration(entry) for entry in spec.get("tolerations") or ()),
        node_affinity=_node_affinity(spec),
        spread=tuple(spread_constraint(entry, labels) for entry in spec.get("topologySpreadConstraints") or ()),
        controller=_controller(raw),
        images=tuple(_images(spec, containers)),
        containers=len(containers),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        features=frozenset(_features(spec, containers)),
        claims=tuple(claim["name"] for claim in spec.get("resourceClaims") or ()),
    )


def _cpu_and_memory(requests: Mapping[str, int]) -> tuple[int, int]:
    amounts = resources.amounts(requests)
    return amounts.get(resources.CPU, 0), amounts.get(resources.MEMORY, 0)


def _containers(spec: Object) -> list[Object]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _node_affinity(spec: Object) -> NodeAffinityTerms:
    wishes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = wishes.get(REQUIRED)
    preferred = wishes.get(PREFERRED) or ()
    terms = None if required is None else required.get("nodeSelectorTerms") or ()
    return NodeAffinityTerms(
        exact_requirements(spec.get("nodeSelector") or {}),
        None if terms is None else tuple(node_selector_term(term) for term in terms),
        tuple((entry["weight"], node_selector_term(entry["preference"])) for entry in preferred),
    )


def _controller(raw: Object) -> Controller | None:
    owner = controller(raw)
    return Controller(owner["apiVersion"], owner["kind"], owner["name"]) if owner else None


def _images(spec: Object, containers: list[Object]) -> Iterator[str]:
    for container in containers:
        yield container.get("image") or ""
    for volume in spec.get("volumes") or ():
        if volume.get("image") is not None:
            yield volume["image"].get("reference") or ""


def _features(spec: Object, containers: list[Object]) -> Iterator[str]:
    """Follows k8s.io/component-helpers/nodedeclaredfeatures: the features a pod cannot start without."""
    rules = (rule for container in containers for rule in container.get("restartPolicyRules") or ())
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        yield "UserNamespacesHostNetworkSupport"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server makes of a new pod before it stores it.

Follows pkg/apis/core/v1/defaults.go, plugin/pkg/admission/{limitranger,priority,defaulttolerationseconds,runtimeclass}
of Kubernetes, and mutatePodAffinity and mutateTopologySpreadConstraints in pkg/registry/core/pod/strategy.go for
`matchLabelKeys` and `mismatchLabelKeys`. Only what its default admission plugins do: others, and webhooks of third
parties, cannot be foreseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    PREFERRED,
    REQUIRED,
    JsonObject,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

_ON_NODES_THAT_ARE_GONE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300


def admitted(pod: Object, namespace: Namespace) -> JsonObject:
    """The v1.Pod as it is stored. Parts of it are shared with the given one."""
    metadata, spec = pod["metadata"], dict(pod["spec"])
    labels = metadata.get("labels") or {}
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    spec |= with_defaults_of_namespace(spec, namespace)
    spec |= _priority(spec, namespace)
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_waiting(spec.get("tolerations") or ())]
    spec |= of_runtime_class(spec, namespace)
    if spec.get("affinity"):
        spec["affinity"] = merged_affinity(spec["affinity"], labels)
    if spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = merged_spread(spec["topologySpreadConstraints"], labels)
    return {**pod, "spec": spec}


def with_defaults_of_namespace(spec: Object, namespace: Namespace) -> dict[str, list[JsonObject]]:
    """Of a pod spec the fields with containers, their resources as they are stored."""
    defaults = list(_container_defaults(namespace))
    names = ("containers", "initContainers")
    return {name: [_sized(container, defaults) for container in spec.get(name) or ()] for name in names}


def _container_defaults(namespace: Namespace) -> Iterator[tuple[Object, Object]]:
    """Requests and limits for containers without, of each LimitRange of the namespace."""
    for item in namespace.limit_ranges:
        for limit in (item.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Container":
                yield limit.get("defaultRequest") or {}, limit.get("default") or {}


def _sized(container: Object, defaults: Iterable[tuple[Object, Object]]) -> JsonObject:
    given = container.get("resources") or {}
    limits = dict(given.get("limits") or {})
    requests = {**limits, **(given.get("requests") or {})}
    for more_requests, more_limits in defaults:
        limits = {**more_limits, **limits}
        requests = {**more_requests, **requests}
    resources = {name: amounts for name, amounts in (("limits", limits), ("requests", requests)) if amounts}
    if given.get("claims"):
        resources["claims"] = given["claims"]
    return {**container, "resources": resources}


def _priority(spec: Object, namespace: Namespace) -> JsonObject:
    """Nothing where the classes are not known."""
    classes, name = namespace.priority_classes, spec.get("priorityClassName")
    if name:
        chosen = classes.get(name)
    else:
        by_default = (item for item in classes.values() if item.get("globalDefault"))
        chosen = min(by_default, key=lambda item: int(item["value"]), default=None)
    if chosen is None:
        return {} if name or not classes else {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    return {
        "priorityClassName": chosen["metadata"]["name"],
        "priority": chosen["value"],
        "preemptionPolicy": chosen.get("preemptionPolicy") or "PreemptLowerPriority",
    }


def of_runtime_class(spec: Object, namespace: Namespace) -> JsonObject:
    """The fields of a pod spec that its RuntimeClass changes; none where that is not known."""
    found = namespace.runtime_classes.get(spec.get("runtimeClassName") or "")
    if found is None:
        return {}
    changed: JsonObject = {}
    overhead, scheduling = found.get("overhead") or {}, found.get("scheduling") or {}
    if overhead.get("podFixed"):
        changed["overhead"] = overhead["podFixed"]
    if scheduling.get("nodeSelector"):
        changed["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **scheduling["nodeSelector"]}
    if scheduling.get("tolerations"):
        own = spec.get("tolerations") or ()
        changed["tolerations"] = [*own, *(entry for entry in scheduling["tolerations"] if entry not in own)]
    return changed


def _waiting(tolerations: Sequence[Object]) -> Iterator[JsonObject]:
    """How long a pod stays on a node that is gone, unless it says so itself."""
    for key in _ON_NODES_THAT_ARE_GONE:
        own = (entry for entry in tolerations if entry.get("key") in (key, None, ""))
        if not any(entry.get("effect") in ("NoExecute", None, "") for entry in own):
            yield {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}


def merged_affinity(affinity: Object, labels: Labels) -> JsonObject:
    """A v1.Affinity of a new pod with these labels, as it is stored. What does not change is shared, not copied.

    `matchLabelKeys` and `mismatchLabelKeys` add the values of the pod's own labels to the selectors. Labels that the
    pod has not are passed over, and a selector that was not given stays so.
    """
    merged = dict(affinity)
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side)
        if terms:
            merged[side] = _merged_terms(terms, labels)
    return merged


def merged_spread(constraints: Sequence[Object], labels: Labels) -> list[Object]:
    """The same for a list of v1.TopologySpreadConstraint."""
    return [_merged(constraint, labels) for constraint in constraints]


def _merged_terms(terms: Object, labels: Labels) -> JsonObject:
    merged = dict(terms)
    if terms.get(REQUIRED):
        merged[REQUIRED] = [_merged(term, labels) for term in terms[REQUIRED]]
    if terms.get(PREFERRED):
        merged[PREFERRED] = [
            {**entry, "podAffinityTerm": _merged(entry["podAffinityTerm"], labels)} for entry in terms[PREFERRED]
        ]
    return merged


def _merged(term: Object, labels: Labels) -> Object:
    selector = term.get("labelSelector")
    if selector is None:
        return term
    added = list(_requirements(term, labels))
    if not added:
        return term
    return {
        **term,
        "labelSelector": {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]},
    }


def _requirements(term: Object, labels: Labels) -> Iterator[JsonObject]:
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                yield {"key": key, "operator": operator, "values": [labels[key]]}

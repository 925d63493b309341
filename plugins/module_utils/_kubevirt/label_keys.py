# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server makes of `matchLabelKeys` and `mismatchLabelKeys` when a pod is created.

It adds the values of the pod's own labels to the selectors; labels that the pod has not are passed over, and a selector
that was not given stays so. Follows mutatePodAffinity and mutateTopologySpreadConstraints in
pkg/registry/core/pod/strategy.go of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merged_affinity(affinity: Object, labels: Labels) -> dict[str, Any]:
    """A v1.Affinity of a new pod with these labels, as it is stored. What does not change is shared, not copied."""
    merged = dict(affinity)
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side)
        if terms:
            merged[side] = _merged_terms(terms, labels)
    return merged


def merged_spread(constraints: Sequence[Object], labels: Labels) -> list[Object]:
    """The same for a list of v1.TopologySpreadConstraint."""
    return [_merged(constraint, labels) for constraint in constraints]


def _merged_terms(terms: Object, labels: Labels) -> dict[str, Any]:
    merged = dict(terms)
    if terms.get(_REQUIRED):
        merged[_REQUIRED] = [_merged(term, labels) for term in terms[_REQUIRED]]
    if terms.get(_PREFERRED):
        merged[_PREFERRED] = [
            {**entry, "podAffinityTerm": _merged(entry["podAffinityTerm"], labels)} for entry in terms[_PREFERRED]
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


def _requirements(term: Object, labels: Labels) -> Iterator[dict[str, Any]]:
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                yield {"key": key, "operator": operator, "values": [labels[key]]}

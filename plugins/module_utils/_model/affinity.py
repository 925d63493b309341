# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Terms of pod affinity and anti-affinity.

Follows k8s.io/kube-scheduler/framework/types.go (AffinityTerm). `matchLabelKeys` and `mismatchLabelKeys` are not read:
the API server has merged them into the selector when the pod was created.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import PREFERRED, REQUIRED, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    LabelSelector,
    SelectorError,
    label_selector,
)


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Matches pods by labels, in any of the named namespaces or of those whose labels match."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """One side, affinity or anti-affinity, of a pod's wishes.

    `errors`: what is wrong with a list of terms, which then counts as empty, as pods from before such errors were
    refused may still run.
    """

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    errors: tuple[str, ...] = ()


NONE = PodAffinity()


def pod_affinity(raw: Object | None, namespace: str) -> PodAffinity:
    """Parse a v1.PodAffinity or v1.PodAntiAffinity of a pod in `namespace`."""
    if not raw:
        return NONE
    errors: list[str] = []
    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    try:
        required = tuple(_term(term, namespace) for term in raw.get(REQUIRED) or ())
    except SelectorError as error:
        errors.append(str(error))
    try:
        preferred = tuple(
            WeightedTerm(entry["weight"], _term(entry["podAffinityTerm"], namespace))
            for entry in raw.get(PREFERRED) or ()
        )
    except SelectorError as error:
        errors.append(str(error))
    return PodAffinity(required, preferred, tuple(errors))


def _term(raw: Object, namespace: str) -> AffinityTerm:
    names, selector = raw.get("namespaces") or (), raw.get("namespaceSelector")
    return AffinityTerm(
        topology_key=raw["topologyKey"],
        selector=label_selector(raw.get("labelSelector")),
        namespaces=frozenset(names) if names or selector is not None else frozenset({namespace}),
        namespace_selector=label_selector(selector),
    )

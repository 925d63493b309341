# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods a rule is about, as a value: the key under which counts of such pods are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, LabelSelector


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Pods by labels and namespace; `namespaces` None: all of them."""

    selector: LabelSelector
    namespaces: frozenset[str] | None

    def matches(self, occupant: Occupant) -> bool:
        if self.namespaces is not None and occupant.namespace not in self.namespaces:
            return False
        return self.selector.matches(occupant.labels)


@dataclass(frozen=True, slots=True)
class PodQuery:
    """Pods that meet all of `matches`; without the terminating ones if `staying`."""

    matches: tuple[PodMatch, ...]
    staying: bool = False

    def includes(self, occupant: Occupant) -> bool:
        if self.staying and occupant.terminating:
            return False
        return all(match.matches(occupant) for match in self.matches)


def match_of(term: AffinityTerm, namespaces: Mapping[str, Labels]) -> PodMatch:
    """The pods that a term of a pod to be placed means, its namespace selector resolved to names.

    Upstream then matches the selector once more, with no labels at hand (mergeAffinityTermNamespacesIfNotEmpty changes
    a copy of the term). So one that accepts a namespace without labels, as `NotIn` does, means all namespaces.
    """
    if term.namespace_selector.matches({}):
        return PodMatch(term.selector, None)
    chosen = {name for name, labels in namespaces.items() if term.namespace_selector.matches(labels)}
    return PodMatch(term.selector, term.namespaces | chosen)

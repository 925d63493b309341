# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The affinity terms of the pods on the nodes, each kept once with the nodes of the pods that have it.

It answers the question turned round: which terms of *other* pods concern a pod that is to be placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.labels import LabelIndex


class TermKind(Enum):
    """What a term is for."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED = "preferred"


@dataclass(frozen=True, slots=True)
class OwnedTerm:
    """`weight`: of a preferred term, negative for anti-affinity; 1 for the others."""

    kind: TermKind
    weight: int
    term: AffinityTerm


@dataclass(slots=True, eq=False)
class Owners:
    """How many pods with the term each node has; nodes without one are absent."""

    owned: OwnedTerm
    nodes: dict[int, int] = field(default_factory=dict)

    def update(self, node: int, change: int) -> None:
        count = self.nodes.get(node, 0) + change
        if count:
            self.nodes[node] = count
        else:
            del self.nodes[node]


class TermOwners:
    def __init__(self) -> None:
        self._owners: dict[OwnedTerm, Owners] = {}
        self._index: LabelIndex[Owners] = LabelIndex()

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        """Note the terms of a pod that came to (+1) or left (-1) a node."""
        for owned in _terms_of(occupant):
            owners = self._owners.get(owned)
            if owners is None:
                owners = self._owners[owned] = Owners(owned)
                self._index.add(owned.term.selector, owners)
            owners.update(node, change)

    def label_keys(self) -> set[str]:
        """Labels of pods that the terms look at."""
        return {key.key for owned in self._owners for key in owned.term.selector.requirements}

    def topology_keys(self) -> set[str]:
        """Labels of nodes that the terms look at."""
        return {owned.term.topology_key for owned in self._owners}

    def concerning(self, occupant: Occupant, namespace_labels: Labels) -> Iterator[Owners]:
        """The terms that match a pod, as long as any pod has them."""
        for owners in self._index.candidates(occupant.labels):
            if owners.nodes and owners.owned.term.matches(occupant.namespace, namespace_labels, occupant.labels):
                yield owners


def _terms_of(occupant: Occupant) -> Iterator[OwnedTerm]:
    for term in occupant.affinity.required:
        yield OwnedTerm(TermKind.REQUIRED_AFFINITY, 1, term)
    for term in occupant.anti_affinity.required:
        yield OwnedTerm(TermKind.REQUIRED_ANTI_AFFINITY, 1, term)
    for weighted in occupant.affinity.preferred:
        yield OwnedTerm(TermKind.PREFERRED, weighted.weight, weighted.term)
    for weighted in occupant.anti_affinity.preferred:
        yield OwnedTerm(TermKind.PREFERRED, -weighted.weight, weighted.term)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods on the nodes, side by side, and how many of each kind that was ever asked for are on each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import (
    BoolArray,
    IdArray,
    IntArray,
    np,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, LabelSelector
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.labels import (
    ABSENT,
    Label,
    LabelColumn,
    LabelIndex,
)

_FIRST_SIZE = 64
# Counts for 5,000 nodes are 40 KB: 100 MB at most.
_KEPT = 2500


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
    """Pods that meet all of `matches`; without the terminating ones if `staying`. Counts are kept by it."""

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


class PodTable:
    """In slots, so that a selector meets all pods in a few array operations.

    Columns of a label are made when a selector first names it, and kept up to date from then on.
    """

    def __init__(self) -> None:
        self._occupants: list[Occupant | None] = [None] * _FIRST_SIZE
        self._free = list(range(_FIRST_SIZE))
        self._nodes: IdArray = np.full(_FIRST_SIZE, ABSENT, dtype=np.int32)
        self._terminating: BoolArray = np.zeros(_FIRST_SIZE, dtype=np.bool_)
        self._namespaces = LabelColumn([None] * _FIRST_SIZE)
        self._columns: dict[str, LabelColumn] = {}

    def add(self, occupant: Occupant, node: int) -> int:
        """Take a slot for a pod on a node, and return its number."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._occupants[slot] = occupant
        self._nodes[slot] = node
        self._terminating[slot] = occupant.terminating
        self._namespaces.set(slot, occupant.namespace)
        for key, column in self._columns.items():
            column.set(slot, occupant.labels.get(key))
        return slot

    def remove(self, slot: int) -> None:
        """Free a slot. What its columns hold is overwritten by the next pod; its node says it is empty."""
        self._occupants[slot] = None
        self._nodes[slot] = ABSENT
        self._free.append(slot)

    def count(self, query: PodQuery, nodes: int) -> IntArray:
        """How many pods of the query are on each of the nodes."""
        found = self._nodes != ABSENT
        if query.staying:
            found &= ~self._terminating
        for match in query.matches:
            found &= self._matching(match)
        result: IntArray = np.bincount(self._nodes[found], minlength=nodes)
        return result

    def column(self, key: str) -> LabelColumn:
        """The label `key` of the pods, by slot."""
        column = self._columns.get(key)
        if column is None:
            values = (None if occupant is None else occupant.labels.get(key) for occupant in self._occupants)
            column = self._columns[key] = LabelColumn(values)
        return column

    def _matching(self, match: PodMatch) -> BoolArray:
        if match.selector.nothing:
            return np.zeros(len(self._nodes), dtype=np.bool_)
        result: BoolArray = np.ones(len(self._nodes), dtype=np.bool_)
        if match.namespaces is not None:
            known = [number for name, number in self._namespaces.values.items() if name in match.namespaces]
            result &= np.isin(self._namespaces.ids, known)
        for requirement in match.selector.requirements:
            result &= self.column(requirement.key).matches(requirement)
        return result

    def _grow(self) -> None:
        size = len(self._occupants)
        self._occupants.extend([None] * size)
        self._free.extend(range(size, 2 * size))
        self._nodes = np.concatenate([self._nodes, np.full(size, ABSENT, dtype=np.int32)])
        self._terminating = np.concatenate([self._terminating, np.zeros(size, dtype=np.bool_)])
        for column in (self._namespaces, *self._columns.values()):
            column.grow(2 * size)


class PodCounts:
    """The first question of a kind looks at all pods; then each change updates only the counts it concerns."""

    def __init__(self, pods: PodTable, nodes: int) -> None:
        self._pods = pods
        self._nodes = nodes
        self._counts: dict[PodQuery, IntArray] = {}
        self._filed: dict[PodQuery, tuple[Label, ...]] = {}
        self._index: LabelIndex[PodQuery] = LabelIndex()

    def of(self, query: PodQuery) -> IntArray:
        """Pods of the query on each node. The array is the table's own: it changes with the state."""
        counts = self._counts.get(query)
        if counts is None:
            if len(self._counts) >= _KEPT:
                self._forget(next(iter(self._counts)))
            counts = self._counts[query] = self._pods.count(query, self._nodes)
            self._filed[query] = self._index.add(query.matches[0].selector, query)
        return counts

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        """Count a pod that came to (+1) or left (-1) a node."""
        for query in self._index.candidates(occupant.labels):
            if query.includes(occupant):
                self._counts[query][node] += change

    def _forget(self, query: PodQuery) -> None:
        del self._counts[query]
        self._index.remove(self._filed.pop(query), query)

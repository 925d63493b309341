# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many pods of each kind that was ever asked for are on each node, kept up to date as pods come and go."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.label_index import Label, LabelIndex
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_query import PodQuery
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import PodTable

# Counts for 5,000 nodes are 40 KB: 100 MB at most.
_KEPT = 2500


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

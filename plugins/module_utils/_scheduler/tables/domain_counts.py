# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts on nodes added up over topology domains: all nodes with the same value of a label."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IdArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable


@dataclass(frozen=True, slots=True)
class Domains:
    """`ids`: the domain of each node, -1 for none.

    Arrays by domain have one place more than there are domains; the last, which -1 looks up, is for nodes without one.
    """

    ids: IdArray
    size: int

    def exists(self) -> BoolArray:
        """Nodes that belong to a domain."""
        result: BoolArray = self.ids >= 0
        return result

    def add_up(self, counts: IntArray, nodes: BoolArray | None = None) -> IntArray:
        """Sums by domain, of the given nodes or of all; 0 for nodes without a domain."""
        within = self.exists() if nodes is None else self.exists() & nodes
        # Float64 adds integers exactly up to 2^53, far more than there are pods.
        sums = np.bincount(self.ids[within], weights=counts[within], minlength=self.size + 1)
        result: IntArray = sums.astype(np.int64)
        return result

    def present(self, nodes: BoolArray) -> BoolArray:
        """Domains with at least one of the nodes."""
        result: BoolArray = np.bincount(self.ids[self.exists() & nodes], minlength=self.size + 1) > 0
        return result


def domains_of(nodes: NodeTable, topology_key: str) -> Domains:
    column = nodes.column(topology_key)
    return Domains(column.ids, len(column.values))


def domains_with_blank(nodes: NodeTable, topology_key: str) -> Domains:
    """The same, but nodes without the label are together in one more domain, with those whose label is empty."""
    column = nodes.column(topology_key)
    blank = column.values.get("", len(column.values))
    ids: IdArray = np.where(column.ids < 0, blank, column.ids)
    return Domains(ids, max(len(column.values), blank + 1))

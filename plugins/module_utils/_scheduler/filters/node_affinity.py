# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node selector and required node affinity. Follows pkg/scheduler/framework/plugins/nodeaffinity."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import NodeSelectorTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


class NodeAffinity:
    name = "NodeAffinity"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        affinity = pod.node_affinity
        if not affinity.selector and affinity.required is None:
            return None
        only = _named_nodes(affinity.required or ())
        if only is not None and not only:
            return Rejection(CONFLICT)
        return Prepared(lambda: [FilterFailure(~state.nodes.admitted_by_affinity(affinity), REASON)], only)


def _named_nodes(terms: tuple[NodeSelectorTerm, ...]) -> frozenset[str] | None:
    """The names that the terms allow; None if a term allows any name, or there are none."""
    allowed: set[str] = set()
    for term in terms:
        names = [set(field.values) for field in term.fields if field.key == "metadata.name" and field.operator == "In"]
        if not names:
            return None
        allowed |= set.intersection(*names)
    return frozenset(allowed) if terms else None

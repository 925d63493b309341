# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a state from the lists of a snapshot, or of `kubectl get -o json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import require_numpy
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node import node
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import FINISHED, Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, Placement
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.owner_selectors import owner_selectors
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.storage_table import storage_table


def cluster_state(lists: Lists) -> ClusterState:
    """The state of the cluster that the lists describe; a missing list is an empty one.

    Finished pods, and pods on nodes that are not in the list, do not count. Raises `SelectorError`, `QuantityError`,
    `MissingLibrary`.
    """
    require_numpy()
    nodes = [node(raw) for raw in lists.get("nodes") or ()]
    names = {entry.name for entry in nodes}
    namespaces = {raw["metadata"]["name"]: raw["metadata"].get("labels") or {} for raw in lists.get("namespaces") or ()}
    living = [raw for raw in lists.get("pods") or () if (raw.get("status") or {}).get("phase") not in FINISHED]
    return ClusterState(
        nodes,
        _placements(living, names),
        namespaces=namespaces,
        storage=storage_table(lists),
        owner_selectors=owner_selectors(lists),
        nominated=_nominated(living),
    )


def _placements(pods: Sequence[Mapping[str, Any]], names: set[str]) -> Iterator[Placement]:
    for raw in pods:
        name = raw["spec"].get("nodeName")
        if name in names:
            yield Placement(occupant(raw), name)


def _nominated(pods: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Pod, ...]]:
    """Pods without a node that preemption has promised one, by that node."""
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for raw in pods:
        promised = (raw.get("status") or {}).get("nominatedNodeName")
        if promised and not raw["spec"].get("nodeName"):
            found[promised].append(pod(raw))
    return {name: tuple(promised) for name, promised in found.items()}

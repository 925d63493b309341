# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ordinary pods that are evicted, and the pods that their controllers make instead."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Resident
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

# Their pods keep their names, so the new one comes only when the old one is gone.
_SAME_NAME = "StatefulSet"
# The API server gives them to a pod together with its node.
_LABELS_OF_ITS_NODE = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})


def is_leaving(pod: Object) -> bool:
    """Whether it is being deleted already."""
    return pod["metadata"].get("deletionTimestamp") is not None


def replacement(pod: Object) -> dict[str, Any] | None:
    """The v1.Pod that its controller makes in its place, without a node and with nothing yet bound to it.

    None: nothing makes one. What admission added to the old pod, it adds to the new one.
    """
    owner = controller(pod)
    if owner is None or is_leaving(pod):
        return None
    metadata = pod["metadata"]
    # A name that no pod can have, so that it is not another's by accident.
    name = metadata["name"] if owner.get("kind") == _SAME_NAME else f"{metadata['name']}/replacement"
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _LABELS_OF_ITS_NODE}
    fresh = {key: value for key, value in metadata.items() if key != "uid"}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"metadata": {**fresh, "name": name, "labels": labels}, "spec": spec}


def eviction(resident: Resident, state: ClusterState) -> Mover:
    """The mover of a pod that is evicted. Raises `SelectorError`, `QuantityError`."""
    raw = replacement(resident.pod)
    return Mover(
        key=resident.key,
        source=resident.node,
        leaving=(state.placement(title(resident.pod)).occupant,),
        newcomer=None if raw is None else parsed(raw),
        raw=raw,
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Zones and regions in the labels of bound volumes. Follows pkg/scheduler/framework/plugins/volumezone.

Like there, VolumeBinding goes first: claims that are missing, or that wait for another reason than the pod's placement,
have been rejected by it.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, Requirement
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

REASON = "node(s) had no available volume zone"

# Labels of zones and regions, and what each is called today.
_CURRENT = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SEPARATOR = "__"


class VolumeZone:
    name = "VolumeZone"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        wanted: list[Requirement] = []
        for reference in pod.occupant.volumes.claims:
            if reference.ephemeral:
                continue
            found = _requirements(pod.occupant.namespace, reference.name, state)
            if isinstance(found, Rejection):
                return found
            wanted.extend(found)
        return Prepared(lambda: [FilterFailure(_conflicting(wanted, state), REASON)]) if wanted else None


def _requirements(namespace: str, name: str, state: ClusterState) -> list[Requirement] | Rejection:
    """What the labels of a claim's volume ask of a node; nothing if the volume is to be made when the pod is placed."""
    claim = state.storage.claims.get((namespace, name))
    if claim is None or not claim.volume_name:
        return []
    volume = state.storage.volumes.get(claim.volume_name)
    if volume is None:
        return Rejection(f'persistentvolume "{claim.volume_name}" not found')
    return _zones(volume.labels)


def _zones(labels: Labels) -> list[Requirement]:
    """One requirement for each label that lists zones or regions; a list with an empty entry is ignored."""
    found = []
    for key in _CURRENT:
        values = tuple(value.strip() for value in labels[key].split(_SEPARATOR)) if key in labels else ()
        if values and all(values):
            found.append(Requirement(key, "In", values))
    return found


def _conflicting(wanted: list[Requirement], state: ClusterState) -> BoolArray:
    nodes = state.nodes
    result = nodes.none()
    for requirement in wanted:
        own, current = nodes.column(requirement.key), Requirement(_CURRENT[requirement.key], "In", requirement.values)
        # A node without the old label may have the new one.
        admitted = nodes.matching([requirement]) | ((own.ids < 0) & nodes.matching([current]))
        result |= ~admitted
    # Where no node knows zones, as in a cluster of one zone, nothing conflicts.
    located = nodes.none()
    for key in _CURRENT:
        located |= nodes.domains(key) >= 0
    return result & located

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a volume could be made for a claim. Follows checkVolumeProvisions of volumebinding/binder.go."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.storage import Claim, StorageClass
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

_NO_PROVISIONER = frozenset({"", "kubernetes.io/no-provisioner"})


@dataclass(frozen=True, slots=True)
class Provisioning:
    """`possible`: nodes for which the class makes volumes. `sufficient`: nodes with the space for this one."""

    possible: BoolArray
    sufficient: BoolArray


def provisioning(claim: Claim, state: ClusterState) -> Provisioning:
    nodes = state.nodes
    storage_class = state.storage.classes[claim.storage_class]
    if storage_class.provisioner in _NO_PROVISIONER:
        return Provisioning(nodes.none(), nodes.all())
    terms = storage_class.topologies
    return Provisioning(
        possible=nodes.admitted_by_terms(terms) if terms else nodes.all(),
        sufficient=_sufficient(claim, storage_class, state),
    )


def _sufficient(claim: Claim, storage_class: StorageClass, state: ClusterState) -> BoolArray:
    """Drivers that do not publish their capacity are trusted to have it."""
    if claim.storage is None or storage_class.provisioner not in state.storage.tracking:
        return state.nodes.all()
    size = quantity.units(claim.storage)
    result = state.nodes.none()
    for capacity in state.storage.capacities:
        if (
            capacity.storage_class == storage_class.name
            and capacity.largest is not None
            and capacity.largest >= size
            and not capacity.nodes.nothing
        ):
            result |= state.nodes.matching(capacity.nodes.requirements)
    return result

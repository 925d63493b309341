# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ordinary pods that are evicted, and the pods that their controllers make instead."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Resident
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


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

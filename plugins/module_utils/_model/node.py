# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as the scheduler sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import resources, taints
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON, OF_MAINTENANCE, Taint


@dataclass(frozen=True, slots=True)
class Node:
    """`images`: size in bytes by name, as the node reports them. `features`: what its kubelet declares."""

    name: str
    labels: Labels
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    images: Mapping[str, int]
    features: frozenset[str]

    def cordoned(self) -> Node:
        """As it is once it is cordoned and the node controller has tainted it."""
        others = (taint for taint in self.taints if taint.key != CORDON.key)
        return replace(self, unschedulable=True, taints=(*others, CORDON))

    def uncordoned(self) -> Node:
        """As it is once its cordon is lifted, and the taint for it."""
        return replace(
            self, unschedulable=False, taints=tuple(taint for taint in self.taints if taint.key != CORDON.key)
        )

    def maintained(self, labels: Labels) -> Node:
        """As it is once its maintenance is over, in which it may be restarting now. labels: those that come back."""
        others = tuple(taint for taint in self.taints if taint.key not in OF_MAINTENANCE)
        return replace(self, unschedulable=False, taints=others, labels={**self.labels, **labels})


def node(raw: Object) -> Node:
    """Parse a v1.Node."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    images = {
        name: int(image.get("sizeBytes") or 0)
        for image in status.get("images") or ()
        for name in image.get("names") or ()
    }
    return Node(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=tuple(taints.taint(entry) for entry in spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=resources.amounts(resources.nanos(status.get("allocatable"))),
        images=images,
        features=frozenset(status.get("declaredFeatures") or ()),
    )

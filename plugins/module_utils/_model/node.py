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
    """`images`: size in bytes by name, as the node reports them. `features`: what its kubelet declares.

    unregistered: KubeVirt's devices of which a kubelet that has restarted says 0, in its capacity, too, until
    virt-handler is there again (readCheckpoint in pkg/kubelet/cm/devicemanager/manager.go). Where a device is missing
    for good, virt-handler registers it and says that it is unhealthy, which counts in the capacity.
    """

    name: str
    labels: Labels
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    images: Mapping[str, int]
    features: frozenset[str]
    unregistered: frozenset[str]

    def cordoned(self) -> Node:
        """As it is once it is cordoned and the node controller has tainted it."""
        others = (taint for taint in self.taints if taint.key != CORDON.key)
        return replace(self, unschedulable=True, taints=(*others, CORDON))

    def uncordoned(self) -> Node:
        """As it is once its cordon is lifted, and the taint for it."""
        return replace(
            self, unschedulable=False, taints=tuple(taint for taint in self.taints if taint.key != CORDON.key)
        )

    def maintained(self, labels: Labels, devices: Amounts) -> Node:
        """As it is once its maintenance is over, in which it may be restarting now.

        labels: those that come back. devices: how many come back of those that are not there now, while virt-handler,
        who brings those labels, is away.
        """
        others = tuple(taint for taint in self.taints if taint.key not in OF_MAINTENANCE)
        is_away = any(self.labels.get(name) != value for name, value in labels.items())
        gone = [name for name in devices if self.allocatable.get(name) == 0 and (is_away or name in self.unregistered)]
        return replace(
            self,
            unschedulable=False,
            taints=others,
            labels={**self.labels, **labels},
            allocatable={**self.allocatable, **{name: devices[name] for name in gone}},
        )


def node(raw: Object) -> Node:
    """Parse a v1.Node."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    images = {
        name: int(image.get("sizeBytes") or 0)
        for image in status.get("images") or ()
        for name in image.get("names") or ()
    }
    offered = resources.nanos(status.get("allocatable"))
    capacity = (status.get("capacity") or {}).items()
    devices = resources.nanos({name: most for name, most in capacity if name.startswith(resources.KUBEVIRTS_DEVICES)})
    return Node(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=tuple(taints.taint(entry) for entry in spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=resources.amounts(offered),
        images=images,
        features=frozenset(status.get("declaredFeatures") or ()),
        unregistered=frozenset(name for name, amount in devices.items() if amount == offered.get(name) == 0),
    )

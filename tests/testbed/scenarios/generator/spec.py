# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person chooses about a generated cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.home import TestbedError

# Above this, mixed sizes leave gaps on the nodes that a scheduler that never moves anything cannot fill.
HIGHEST_FILL = 0.85


@dataclass(frozen=True)
class GeneratorSpec:
    """The same values give the same cluster, byte for byte."""

    nodes: int = field(default=12, metadata={"help": "worker nodes"})
    vmis: int = field(default=60, metadata={"help": "running VMs, of VirtualMachines and VMI ReplicaSets together"})
    zones: int = field(default=3, metadata={"help": "zones that the nodes stand in"})
    seed: int = field(default=0, metadata={"help": "choice among clusters of this size"})
    fill: float = field(
        default=0.6, metadata={"help": f"share of the nodes' memory that is requested at most, up to {HIGHEST_FILL}"}
    )

    def check(self) -> None:
        """Raises TestbedError, naming the value, when there can be no such cluster."""
        if self.zones < 1:
            raise TestbedError(f"A generated cluster needs at least one zone, not {self.zones}.")
        if self.nodes < self.zones:
            raise TestbedError(f"{self.nodes} nodes cannot stand in {self.zones} zones: give at least one node a zone.")
        if self.vmis < 0:
            raise TestbedError(f"A generated cluster cannot have {self.vmis} VMIs.")
        if not 0 < self.fill <= HIGHEST_FILL:
            raise TestbedError(f"Fill {self.fill:g} is not a share above 0 and up to {HIGHEST_FILL}.")

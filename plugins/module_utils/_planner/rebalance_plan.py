# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rebalancing would do, as values. Waves are as in drain_plan.py."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

POD, MACHINE = "Pod", "VirtualMachineInstance"


@dataclass(frozen=True, slots=True)
class RebalancingMove:
    """An ordinary pod that is evicted, or a VMI that is live-migrated.

    `target_node`: for a pod, where its replacement will land. `gain`: points by which its soft rules are met better;
    of those who only follow others, it may be negative. `why`: a sentence.
    """

    kind: str
    namespace: str
    name: str
    source_node: str
    target_node: str
    wave: int
    gain: int
    why: str


@dataclass(frozen=True, slots=True)
class RebalancingPlan:
    """`moves` in the order of their waves. `message`: the plan in a sentence."""

    moves: tuple[RebalancingMove, ...]
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"moves": [asdict(move) for move in self.moves], "message": self.message}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small clusters, nearly full and with rules that get into each other's way; the same seed gives the same one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from unit.plugins.module_utils._planner.scene import HOST, ZONE, Lists, Scene, apart, apart_but_own, even, near, node

_OVERHEAD_MIB = 330
_NODE_MIB = 8192
_SIZES = (512, 1024, 1536, 2048, 3072)


def tight_cluster(seed: int, nodes: int = 4, machines: int = 7, pods: int = 3) -> Lists:
    dice = random.Random(seed)
    zones = dice.choice((2, 3))
    scene = Scene(*(node(f"n{number}", f"z{number % zones}") for number in range(nodes)))
    room = dict.fromkeys((f"n{number}" for number in range(nodes)), _NODE_MIB)
    rules = {f"g{number}": _rule(dice, f"g{number}") for number in range(3)}
    for number in range(machines):
        app = f"g{dice.randrange(3)}"
        size = dice.choice(_SIZES)
        fitting = [name for name, left in room.items() if left >= size + _OVERHEAD_MIB]
        if fitting:
            on = dice.choice(fitting)
            room[on] -= size + _OVERHEAD_MIB
            scene.vm(f"{app}-{number}", on, f"{size}Mi", rules=rules[app])
    for number in range(pods):
        on = dice.choice([name for name, left in room.items() if left >= 100])
        room[on] -= 100
        scene.pod(f"web-{number}", on, affinity=apart(HOST, "web") if dice.random() < 0.5 else {})
    return scene.lists


def _rule(dice: random.Random, app: str) -> dict[str, Any]:
    """Fields of a VMI's spec."""
    rules: Sequence[dict[str, Any]] = (
        {},
        {"affinity": apart(HOST, app)},
        {"affinity": apart_but_own(HOST, app)},
        {"affinity": apart_but_own(ZONE, app)},
        {"affinity": apart(ZONE, app)},
        {"affinity": near(HOST, "web")},
        {"affinity": apart(HOST, f"g{dice.randrange(3)}")},
        {"topologySpreadConstraints": even(ZONE, app)},
        {"topologySpreadConstraints": even(HOST, app, minDomains=2)},
        {"topologySpreadConstraints": even(ZONE, app, nodeAffinityPolicy="Ignore")},
    )
    return dice.choice(rules)

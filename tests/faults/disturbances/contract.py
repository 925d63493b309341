# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disturbance is given, and what some of them need."""

from __future__ import annotations

import threading
from collections.abc import Callable

from faults.invocation import Going
from faults.scene import NODES, Scene
from testbed.api import Object

Disturbance = Callable[[Scene, Going], str]
MARK = "virtops.kubevirt/maintenance"


def name_of(item: Object) -> str:
    return str(item["metadata"]["name"])


def taken(scene: Scene, run: str = "") -> list[str]:
    """Names of the nodes that carry the mark of a run, or of any."""
    marks = {name_of(node): node["metadata"].get("annotations", {}).get(MARK, "") for node in scene.api.items(NODES)}
    return [name for name, mark in marks.items() if mark and run in mark]


def later(seconds: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node is fit for virtual machines, as role uncordon judges it before it gives a node back.

The role compares boot IDs as well, which takes a look before the reboot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

# virt-handler renews it every one to two minutes.
HEARTBEAT: Final = "kubevirt.io/heartbeat"


class FitnessStatus(Enum):
    """`ABSENT`: virt-handler has never been on the node, as on many a control plane."""

    FIT = "fit"
    UNFIT = "unfit"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Fitness:
    """`heartbeat`: as the node has it, empty for none. `obstacles`: clauses that say why it is not fit."""

    status: FitnessStatus
    heartbeat: str
    obstacles: tuple[str, ...] = ()


def fitness(node: Object, now: datetime, most_silence: int) -> Fitness:
    """now: when the node was read. most_silence: seconds that virt-handler's last sign of life may be old."""
    metadata = node["metadata"]
    label = (metadata.get("labels") or {}).get(SCHEDULABLE)
    heartbeat = (metadata.get("annotations") or {}).get(HEARTBEAT) or ""
    if label is None and not heartbeat:
        return Fitness(FitnessStatus.ABSENT, heartbeat)
    obstacles = tuple(_obstacles(node, label, heartbeat, now - timedelta(seconds=most_silence)))
    return Fitness(FitnessStatus.UNFIT if obstacles else FitnessStatus.FIT, heartbeat, obstacles)


def is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _obstacles(node: Object, label: str | None, heartbeat: str, oldest: datetime) -> Iterator[str]:
    if not is_ready(node):
        yield "it is not Ready"
    heard = _time(heartbeat)
    if heard is None:
        yield "virt-handler has given no sign of life"
    elif heard < oldest:
        yield f"virt-handler was last heard of at {brief(heartbeat)}"
    if label != "true":
        yield f"its label {SCHEDULABLE} is not true"


def _time(text: str) -> datetime | None:
    """To the second, which is all that virt-handler writes. Anybody may have written it: None if it is no time."""
    try:
        return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node is fit for virtual machines, and what keeps it from them: the rules by which it is given back.

Who has written on a node what is read here may be anybody: of a time only what was understood is told again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

# virt-handler renews it every one to two minutes.
HEARTBEAT: Final = "kubevirt.io/heartbeat"
_SEE_TO_HANDLER = "see to its pod on the node"


class FitnessStatus(Enum):
    """`ABSENT`: virt-handler has never been on the node, as on many a control plane."""

    FIT = "fit"
    UNFIT = "unfit"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class NodeObstacle:
    """What keeps a node from virtual machines. why, remedy: a clause each, of what is and of what to do about it."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class Fitness:
    """`heartbeat`: as the node has it, empty for none. `obstacles`: why it is not fit."""

    status: FitnessStatus
    heartbeat: str
    obstacles: tuple[NodeObstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class BeforeMaintenance:
    """A node as it was before it may have rebooted; boot_id, heartbeat: as it had them, empty for unknown.

    rebooted: whether it has to have rebooted since, which only a boot ID of before can tell.
    """

    boot_id: str = ""
    heartbeat: str = ""
    rebooted: bool = False


def fitness(node: Object, now: datetime, most_silence: int) -> Fitness:
    """Of a node of which nothing was known before; now, most_silence: as for `node_obstacles`."""
    said = heartbeat(node)
    if _schedulable(node) is None and not said:
        return Fitness(FitnessStatus.ABSENT, said)
    obstacles = node_obstacles(node, now, most_silence)
    return Fitness(FitnessStatus.UNFIT if obstacles else FitnessStatus.FIT, said, obstacles)


def node_obstacles(
    node: Object, now: datetime, most_silence: int, before: BeforeMaintenance | None = None
) -> tuple[NodeObstacle, ...]:
    """Whatever keeps virtual machines from a node, empty for nothing.

    now: when the node was read. most_silence: seconds that virt-handler's last sign of life may be old.
    """
    return tuple(_obstacles(node, now, most_silence, before or BeforeMaintenance()))


def is_node_ready(node: Object) -> bool:
    return bool(_ready(node).get("status") == "True")


def boot_id(node: Object) -> str:
    """Another one after each boot, as the node's kubelet says it; empty for none."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")


def heartbeat(node: Object) -> str:
    """Virt-handler's last sign of life as the node has it, whatever stands there; empty for none."""
    return str((node["metadata"].get("annotations") or {}).get(HEARTBEAT) or "")


def _obstacles(node: Object, now: datetime, most_silence: int, before: BeforeMaintenance) -> Iterator[NodeObstacle]:
    if not is_node_ready(node):
        yield NodeObstacle("it is not Ready", "see to its kubelet")
    booted = boot_id(node)
    has_rebooted = bool(before.boot_id) and booted not in ("", before.boot_id)
    if before.rebooted and not has_rebooted:
        told = f"its boot ID is still {brief(booted)}" if booted else "it has no boot ID"
        yield NodeObstacle(told, "reboot it, or set rebooted to false")
    heard = _time(heartbeat(node))
    if heard is None:
        yield NodeObstacle("virt-handler has given no sign of life", _SEE_TO_HANDLER)
    else:
        told = f"virt-handler was last heard of at {_told(heard)}"
        if (now - heard).total_seconds() > most_silence:
            yield NodeObstacle(told, _SEE_TO_HANDLER)
        if has_rebooted and (doubt := _doubt(node, heard, before)):
            yield NodeObstacle(f"{told}, which may be before the reboot, as {doubt}", _SEE_TO_HANDLER)
    if _schedulable(node) != "true":
        yield NodeObstacle(f"its label {SCHEDULABLE} is not true", "see to virt-handler on it")


def _doubt(node: Object, heard: datetime, before: BeforeMaintenance) -> str:
    """Why a sign of life may be of before the reboot; empty if it cannot be.

    After a reboot without a clean shutdown the node looks well by what virt-handler has said before it. The kubelet
    writes the boot ID and the time of its conditions together, by the same clock as virt-handler its sign of life,
    which is thus of after the reboot if it is not older.
    """
    reported, last = _time(str(_ready(node).get("lastHeartbeatTime") or "")), _time(before.heartbeat)
    if reported is None:
        return "the kubelet does not say when it has reported"
    if heard >= reported and (last is None or reported > last):
        return ""
    return f"the kubelet has reported at {_told(reported)}"


def _ready(node: Object) -> Object:
    """The condition, empty if the node has none."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == "Ready"), {})


def _schedulable(node: Object) -> str | None:
    """The label by which virt-handler lets VMs come, None if there is none."""
    found: str | None = (node["metadata"].get("labels") or {}).get(SCHEDULABLE)
    return found


def _time(text: str) -> datetime | None:
    """To the second, which is all that virt-handler and kubelets write, in UTC. None if it is no time."""
    try:
        return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def _told(time: datetime) -> str:
    return f"{time.replace(tzinfo=None).isoformat()}Z"

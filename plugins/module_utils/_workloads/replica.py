# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VMI of a replica set as it is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import FINISHED, Object

# What kube-scheduler adds about preemption and devices helps nobody to place a VM.
_AFTERTHOUGHTS = (" no new claims to deallocate", " preemption:")


@dataclass(frozen=True, slots=True)
class Replica:
    """`node`: empty as long as there is none. `message`: why it has no node or is not ready, empty if it is."""

    name: str
    node: str
    ready: bool
    message: str


def replica(vmi: Object) -> Replica:
    status = vmi.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = (conditions.get("Ready") or {}).get("status") == "True" and is_living(vmi)
    message = "" if ready else _message(status, conditions, going=not is_living(vmi))
    return Replica(vmi["metadata"]["name"], status.get("nodeName") or "", ready, message)


def is_living(vmi: Object) -> bool:
    """Whether it counts as a replica: it has not ended and is not being deleted."""
    ended = (vmi.get("status") or {}).get("phase") in FINISHED
    return not ended and not vmi["metadata"].get("deletionTimestamp")


def all_ready(vmis: Sequence[Object], replicas: int) -> bool:
    """Whether there are as many as wanted, all of them ready, and none is left over."""
    return len(vmis) == replicas and all(replica(vmi).ready for vmi in vmis)


def _message(status: Object, conditions: Mapping[str, Object], *, going: bool) -> str:
    if going:
        return "it is on its way out"
    for kind in ("PodScheduled", "Synchronized", "Ready"):
        condition = conditions.get(kind) or {}
        if condition.get("status") == "False" and condition.get("message"):
            message = str(condition["message"])
            for afterthought in _AFTERTHOUGHTS:
                message = message.partition(afterthought)[0]
            return message
    return f"it is {status.get('phase') or 'not started'}"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the spec of a replica set states, without the parts that say nothing.

Nulls say nothing, which YAML makes of keys without a value; nor do empty lists, empty maps and, where KubeVirt's types
do not tell them from their absence, false and zero. An empty object does: that there is something, and nothing more
about it. Follows the structs of VirtualMachineInstanceSpec in kubevirt.io/api/core/v1 and their `omitempty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAPS = frozenset({"annotations", "labels", "limits", "matchLabels", "nodeSelector", "requests"})
_FALSE_OR_ZERO = frozenset(
    """
    acpiIndex capacity cores dedicatedCpuPlacement default disableHotplug endOfInterrupt failureThreshold hidden
    hotpluggable initialDelaySeconds isolateEmulatorThread maxSockets overcommitGuestOverhead paused periodSeconds
    readOnly reservation sockets successThreshold threads timeoutSeconds
    """.split()
)
# A CD-ROM that is not read-only says something by it.
_READONLY_PARENTS = ("disk", "lun")


def stated(value: Any, parent: str = "") -> Any:
    """`parent`: the key under which the value stands."""
    if isinstance(value, Mapping):
        return {key: stated(part, key) for key, part in value.items() if not _says_nothing(parent, key, part)}
    return [stated(part, parent) for part in value] if isinstance(value, list) else value


def _says_nothing(parent: str, key: str, value: Any) -> bool:
    if value is None or value == []:
        return True
    if value == {}:
        return key in _MAPS
    # Which keys a map has, and what they mean, is not known.
    if parent in _MAPS or value not in (False, "0"):
        return False
    return key in _FALSE_OR_ZERO or (key == "readonly" and parent in _READONLY_PARENTS)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One form for all ways of saying the same in the spec of a replica set.

virt-controller writes the object back when it sees it first, by way of KubeVirt's own types: amounts get their shortest
form, numbers among them become text, parts that these types always have appear, and those that say nothing go. Follows
the structs DomainSpec and Features in kubevirt.io/api/core/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_AMOUNTS = frozenset({"guest", "maxGuest", "capacity"})
_MAPS_OF_AMOUNTS = frozenset({"requests", "limits"})
# Parts that are always there, by the part that holds them.
_ALWAYS: Mapping[str, tuple[str, ...]] = {"domain": ("devices", "resources"), "features": ("acpi",)}
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


def canonical(spec: Object) -> Any:
    """The spec of a replica set, as it can be compared. Amounts become text that counts billionths."""
    return _plain(complete(spec))


def complete(spec: Object) -> Any:
    """The spec of a replica set with the parts that KubeVirt's types always have, and none that say nothing."""
    return _with_always(stated(spec))


def _with_always(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return [_with_always(part) for part in value] if isinstance(value, list) else value
    found = {key: _with_always(part) for key, part in value.items()}
    for key in _ALWAYS.keys() & found:
        # A CPU's features are a list, of which nothing is always there.
        if isinstance(found[key], dict):
            found[key] = {**{name: {} for name in _ALWAYS[key]}, **found[key]}
    return found


def in_words_of(before: Any, after: Any) -> Any:
    """`after` as `before` words it wherever they mean the same, so that a diff shows nothing else."""
    if not isinstance(after, Mapping) or not isinstance(before, Mapping):
        return after
    return {
        key: before[key]
        if key in before and _part(key, part) == _part(key, before[key])
        else in_words_of(before.get(key), part)
        for key, part in after.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _part(key, part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _part(key: str, value: Any) -> Any:
    if key in _MAPS_OF_AMOUNTS and isinstance(value, Mapping):
        return {name: _amount(amount) for name, amount in value.items()}
    return _amount(value) if key in _AMOUNTS and not isinstance(value, (Mapping, list)) else _plain(value)


def _amount(value: Any) -> str:
    try:
        return f"{quantity.parse(value)}n"
    except quantity.QuantityError:
        return str(value)


def stated(value: Any, parent: str = "") -> Any:
    """What a spec states, without the parts that say nothing. `parent`: the key under which the value stands.

    Nulls say nothing, which YAML makes of keys without a value; nor do empty lists, empty maps and, where KubeVirt's
    types do not tell them from their absence, false and zero. An empty object does: that there is something, and
    nothing more about it. Follows the structs of VirtualMachineInstanceSpec and their `omitempty`.
    """
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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance type sets of a VMI, and what it cannot set as the VM does so itself.

Follows pkg/instancetype/apply, in the order of vmi.go there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from copy import deepcopy

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.preferences import (
    spread,
    topology,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

# Of CPUs, what both may say: the instance type's word for it, the VM's.
_CPU_FIELDS = (
    ("model", "model"),
    ("dedicatedCPUPlacement", "dedicatedCpuPlacement"),
    ("isolateEmulatorThread", "isolateEmulatorThread"),
    ("numa", "numa"),
    ("realtime", "realtime"),
)
_TOPOLOGY = ("sockets", "cores", "threads")
_PERCENT = 100


def conflicts(size: Object, spec: Object, annotations: Mapping[str, str]) -> list[str]:
    """Paths below a VMI's spec of what both say, and of annotations. `spec` has a domain."""
    domain = spec["domain"]
    devices = domain.get("devices") or {}
    memory = next(_memory_conflicts(size["memory"], domain), None)
    found = {
        "nodeSelector": size.get("nodeSelector") is not None and spec.get("nodeSelector"),
        "schedulerName": size.get("schedulerName") and spec.get("schedulerName"),
        **dict.fromkeys(_cpu_conflicts(size["cpu"], domain), True),
        **({memory: True} if memory else {}),
        "domain.ioThreads.supplementalPoolThreadCount": _threads(size) is not None and _threads(domain) is not None,
        "domain.ioThreadsPolicy": _both(size, domain, "ioThreadsPolicy"),
        "domain.launchSecurity": _both(size, domain, "launchSecurity"),
        "domain.devices.gpus": size.get("gpus") and devices.get("gpus"),
        "domain.devices.hostDevices": size.get("hostDevices") and devices.get("hostDevices"),
    }
    given = size.get("annotations") or {}
    differing = sorted(key for key, value in given.items() if annotations.get(key, value) != value)
    return [*(f"spec.{path}" for path, both in found.items() if both), *(f"annotations.{key}" for key in differing)]


def apply_size(size: Object, preference: Object | None, spec: JsonObject, annotations: dict[str, str]) -> None:
    """Set it, where there are no conflicts. The preference says into which topology its CPUs go."""
    domain = spec["domain"]
    devices = domain.setdefault("devices", {})
    for name, target in (
        ("nodeSelector", spec),
        ("schedulerName", spec),
        ("ioThreadsPolicy", domain),
        ("launchSecurity", domain),
        ("gpus", devices),
        ("hostDevices", devices),
    ):
        if size.get(name):
            target[name] = deepcopy(size[name])
    domain["cpu"] = _cpu(size["cpu"], preference, domain.get("cpu") or {})
    domain["memory"] = _memory(size["memory"], domain)
    if _threads(size) is not None:
        domain["ioThreads"] = {**(domain.get("ioThreads") or {}), "supplementalPoolThreadCount": _threads(size)}
    for key, value in (size.get("annotations") or {}).items():
        annotations.setdefault(key, value)


def _cpu_conflicts(size: Object, domain: Object) -> Iterator[str]:
    resources, cpu = domain.get("resources") or {}, domain.get("cpu") or {}
    yield from (
        f"domain.resources.{side}.{CPU}" for side in ("requests", "limits") if CPU in (resources.get(side) or {})
    )
    yield from (f"domain.cpu.{name}" for name in _TOPOLOGY if cpu.get(name))
    for name, own in _CPU_FIELDS:
        value = cpu.get(own)
        # An empty object says something, an empty word or `false` is as if it were not there.
        if size.get(name) is not None and (value or isinstance(value, Mapping)):
            yield f"domain.cpu.{name}"


def _memory_conflicts(size: Object, domain: Object) -> Iterator[str]:
    """Of these only the first one is ever named."""
    memory, resources = domain.get("memory") or {}, domain.get("resources") or {}
    if memory.get("guest") is not None:
        yield "domain.memory.guest"
    for name in ("hugepages", "maxGuest"):
        if _both(size, memory, name):
            yield f"domain.memory.{name}"
    for side in ("requests", "limits"):
        if MEMORY in (resources.get(side) or {}):
            yield f"domain.resources.{side}.{MEMORY}"


def _cpu(size: Object, preference: Object | None, given: Object) -> JsonObject:
    cpu = {**given, **{own: deepcopy(size[name]) for name, own in _CPU_FIELDS if size.get(name) is not None}}
    if size.get("maxSockets") is not None:
        cpu["maxSockets"] = size["maxSockets"]
    return {**cpu, **_arranged(int(size["guest"]), preference)}


def _arranged(cpus: int, preference: Object | None) -> dict[str, int]:
    shape = dict.fromkeys(_TOPOLOGY, 1)
    wanted = topology(preference)
    if cpus == 1:
        return shape
    if wanted in _TOPOLOGY:
        return {**shape, wanted: cpus}
    if wanted == "any":
        return {**shape, "sockets": cpus}
    if wanted == "spread":
        return {**shape, **_spread(cpus, preference or {})}
    return shape


def _spread(cpus: int, preference: Object) -> dict[str, int]:
    ratio, across = spread(preference)
    if across == "SocketsCores":
        return {"cores": ratio, "sockets": cpus // ratio}
    if across == "CoresThreads":
        return {"threads": ratio, "cores": cpus // ratio}
    if across == "SocketsCoresThreads":
        return {"threads": 2, "cores": ratio, "sockets": cpus // 2 // ratio}
    return {}


def _memory(size: Object, domain: JsonObject) -> JsonObject:
    """The guest's; where it is overcommitted, the VM requests less."""
    if percent := size.get("overcommitPercent"):
        resources = domain.get("resources") or {}
        requested = str(_less(quantity.units(quantity.parse(size["guest"])), percent))
        domain["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), MEMORY: requested}}
    given = {name: deepcopy(size[name]) for name in ("guest", "hugepages", "maxGuest") if size.get(name) is not None}
    return {**(domain.get("memory") or {}), **given}


def _less(amount: int, percent: int) -> int:
    """KubeVirt reckons with numbers of single precision, and a pod's request shows it."""
    share = _single(1 - _single(_single(percent) / _PERCENT))
    return int(_single(_single(amount) * share))


def _single(number: float) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)


def _threads(domain: Object) -> int | None:
    count: int | None = (domain.get("ioThreads") or {}).get("supplementalPoolThreadCount")
    return count


def _both(one: Object, other: Object, name: str) -> bool:
    return one.get(name) is not None and other.get(name) is not None

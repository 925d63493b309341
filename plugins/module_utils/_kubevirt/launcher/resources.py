# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of the container in which the guest runs.

Follows pkg/virt-controller/services/renderresources.go and VMIResourcePredicates in template.go. Rules run in their
order there, since later ones read what earlier ones have set: memory, CPU, overhead, automatic limits, devices. What a
VMI says of itself (`own`) wins over what is calculated. KubeVirt adds limits by itself where a namespace has a quota of
limits, or is chosen in the configuration: doesVMIRequireAutoResourceLimits, doesVMIRequireAutoCPULimits.
"""

from __future__ import annotations

import math
from collections import Counter

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import EVEN_PARITY, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import devices, traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.overhead import memory_overhead
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import NANO
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Nanos,
    nanos,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import label_selector

_EPHEMERAL_STORAGE = 50 * 10**6 * NANO
_RATIO_LABEL = "alpha.kubevirt.io/auto-memory-limits-ratio"
_RATIO = 2.0


def compute_resources(vmi: Object, configuration: Configuration, namespace: Namespace) -> JsonObject:
    """A v1.ResourceRequirements as KubeVirt sends it. Raises `QuantityError`."""
    rules = _Rules(vmi, configuration)
    rules.memory()
    if traits.is_dedicated(vmi):
        rules.dedicated_cpus()
    else:
        rules.shared_cpus(limited=_needs_cpu_limit(vmi, configuration, namespace))
    rules.overhead()
    if _needs_limit(vmi, MEMORY, namespace):
        rules.memory_limit(_memory_limit_ratio(namespace))
    rules.devices(namespace)
    return rules.result()


class _Rules:
    """Amounts in billionths: the VMI's own, which the rules change as well, and calculated ones."""

    def __init__(self, vmi: Object, configuration: Configuration) -> None:
        self._vmi, self._configuration = vmi, configuration
        given = traits.domain(vmi).get("resources") or {}
        self._own_limits, self._own_requests = nanos(given.get("limits")), nanos(given.get("requests"))
        self._limits: Nanos = {}
        self._requests: Nanos = {}
        self._own_requests[EPHEMERAL_STORAGE] = self._own_requests.get(EPHEMERAL_STORAGE, 0) + _EPHEMERAL_STORAGE
        if EPHEMERAL_STORAGE in self._own_limits:
            self._own_limits[EPHEMERAL_STORAGE] += _EPHEMERAL_STORAGE
        self._own_limits |= dict.fromkeys(devices.virtualization_devices(vmi, configuration), NANO)

    def memory(self) -> None:
        """What the guest is to have, if no memory is requested: less than that where memory is overcommitted."""
        if self._own_requests.get(MEMORY):
            return
        if limit := self._own_limits.get(MEMORY):
            self._own_requests[MEMORY] = limit
        if MEMORY in self._own_requests:
            return
        if guest := self._guest_memory():
            overcommit = self._configuration.memory_overcommit
            bytes_ = quantity.units(guest) * 100 // overcommit
            self._own_requests[MEMORY] = guest if overcommit == 100 else bytes_ * NANO

    def shared_cpus(self, limited: bool) -> None:
        cpu = traits.domain(self._vmi).get("cpu")
        total = (1 if cpu is None else traits.virtual_cpus(cpu)) + traits.io_threads(self._vmi)
        if not total:
            return
        # KubeVirt writes the quotient as text, of cores or of thousandths, and reads it again.
        share = total / self._configuration.cpu_allocation_ratio
        self._requests[CPU] = quantity.parse(f"{share * 1000}m" if share < 1 else f"{share}")
        if limited:
            self._limits[CPU] = total * NANO

    def dedicated_cpus(self) -> None:
        cpu = traits.domain(self._vmi)["cpu"]
        guest, threads = traits.virtual_cpus(cpu), traits.io_threads(self._vmi) * NANO
        for own in (self._own_limits, self._own_requests):
            if guest:
                own[CPU] = guest * NANO + threads
            elif CPU in own:
                own[CPU] += threads
        if cpu.get("isolateEmulatorThread"):
            emulator = self._emulator_cpus()
            self._own_limits[CPU] = self._own_limits.get(CPU, 0) + emulator
            if CPU in self._own_requests:
                self._own_requests[CPU] += emulator
        if MEMORY in self._own_requests:
            self._own_limits[MEMORY] = self._own_requests[MEMORY]

    def _emulator_cpus(self) -> int:
        """One, or two where the sum is to be even."""
        domain = traits.domain(self._vmi)
        pool = traits.io_threads(self._vmi) if domain.get("ioThreadsPolicy") == "supplementalPool" else 0
        even = (quantity.units(self._own_limits.get(CPU, 0)) + pool) % 2 == 0
        wanted = EVEN_PARITY in (self._vmi["metadata"].get("annotations") or {})
        return (2 if even and wanted else 1) * NANO

    def overhead(self) -> None:
        overhead = memory_overhead(self._vmi, self._configuration)
        if traits.has(traits.memory(self._vmi), "hugepages"):
            self._huge_pages(overhead)
            return
        if not (traits.domain(self._vmi).get("resources") or {}).get("overcommitGuestOverhead"):
            self._own_requests[MEMORY] = self._own_requests.get(MEMORY, 0) + overhead
        else:
            self._own_requests.setdefault(MEMORY, 0)
        if MEMORY in self._own_limits:
            self._own_limits[MEMORY] += overhead

    def _huge_pages(self, overhead: int) -> None:
        """The guest's memory is huge pages; ordinary memory is the overhead, and what is asked for beyond the guest."""
        memory = traits.memory(self._vmi)
        requested, limit = self._own_requests.get(MEMORY, 0), self._own_limits.get(MEMORY, 0)
        guest = quantity.parse(memory["guest"]) if traits.has(memory, "guest") else None
        pages = requested if guest is None else min(requested, guest)
        name = f"hugepages-{memory['hugepages'].get('pageSize') or ''}"
        self._requests[name] = self._limits[name] = pages
        beyond = [0 if guest is None else max(0, amount - guest) for amount in (requested, limit)]
        self._own_requests[MEMORY] = beyond[0] + overhead
        if MEMORY in self._own_limits:
            self._own_limits[MEMORY] = beyond[1] + overhead

    def memory_limit(self, ratio: float) -> None:
        self._limits[MEMORY] = int(quantity.units(self._own_requests.get(MEMORY, 0)) * ratio) * NANO

    def devices(self, namespace: Namespace) -> None:
        networks = devices.network_devices(self._vmi, self._configuration, namespace)
        for name, count in Counter((*networks, *devices.special_devices(self._vmi))).items():
            for own, calculated in ((self._own_limits, self._limits), (self._own_requests, self._requests)):
                calculated[name] = own.get(name, 0) + count * NANO

    def result(self) -> JsonObject:
        found: JsonObject = {
            "limits": _written({**self._limits, **self._own_limits}),
            "requests": _written({**self._requests, **self._own_requests}),
        }
        if claims := devices.claims(self._vmi, self._configuration):
            found["claims"] = claims
        return found

    def _guest_memory(self) -> int:
        memory = traits.memory(self._vmi)
        if traits.has(memory, "guest"):
            return quantity.parse(memory["guest"])
        size = (memory.get("hugepages") or {}).get("pageSize")
        try:
            return quantity.parse(size) if size else 0
        except quantity.QuantityError:
            return 0


def _written(amounts: Nanos) -> dict[str, str]:
    return {name: quantity.text(amount, binary=_is_bytes(name)) for name, amount in amounts.items()}


def _is_bytes(name: str) -> bool:
    return name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith("hugepages-")


def _needs_limit(vmi: Object, name: str, namespace: Namespace) -> bool:
    """Whether a quota of the namespace demands that pods have a limit of this resource, and the VMI has none."""
    if _has_limit(vmi, name):
        return False
    return any(f"limits.{name}" in ((quota.get("spec") or {}).get("hard") or {}) for quota in namespace.quotas)


def _needs_cpu_limit(vmi: Object, configuration: Configuration, namespace: Namespace) -> bool:
    """The same for CPUs, which the namespace's labels may demand, too. Raises `SelectorError`."""
    if _needs_limit(vmi, CPU, namespace):
        return True
    chosen = configuration.auto_cpu_limit_namespaces
    if chosen is None or namespace.labels is None or _has_limit(vmi, CPU):
        return False
    return label_selector(chosen).matches(namespace.labels)


def _memory_limit_ratio(namespace: Namespace) -> float:
    """Of the limit to the request."""
    try:
        ratio = float((namespace.labels or {}).get(_RATIO_LABEL, _RATIO))
    except ValueError:
        return _RATIO
    return ratio if 1.0 <= ratio < math.inf else _RATIO


def _has_limit(vmi: Object, name: str) -> bool:
    return name in ((traits.domain(vmi).get("resources") or {}).get("limits") or {})

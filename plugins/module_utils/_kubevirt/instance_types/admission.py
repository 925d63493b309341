# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-api refuses when a VM with an instance type or a preference is created or changed.

Follows pkg/instancetype/preference/validation/cpu.go and pkg/instancetype/preference/requirements. virt-controller does
not ask for these again when it starts a VM.
"""

from __future__ import annotations

from math import prod

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.preferences import (
    spread,
    topology,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_ATTEMPT = "failure checking preference requirements:"
# What a preference counts as CPUs of a VM without an instance type, by its topology.
_COUNTED = {
    "threads": ("threads",),
    "cores": ("cores",),
    "sockets": ("sockets",),
    "any": ("cores", "sockets", "threads"),
}
_SPREAD = {
    "SocketsCores": ("sockets", "cores"),
    "CoresThreads": ("cores", "threads"),
    "SocketsCoresThreads": ("sockets", "cores", "threads"),
}


def uneven_spread(size: Object | None, preference: Object | None) -> str:
    """Why CPUs cannot be spread as the preference wants it, in virt-api's words; empty if they can."""
    if size is None or preference is None or topology(preference) != "spread":
        return ""
    cpus = int(size["cpu"]["guest"])
    ratio, across = spread(preference)
    if across == "SocketsCores" and cpus % ratio:
        return (
            f"{cpus} vCPUs provided by the instance type are not divisible by the Spec.PreferSpreadSocketToCoreRatio "
            f"or Spec.CPU.PreferSpreadOptions.Ratio of {ratio} provided by the preference"
        )
    if across == "CoresThreads" and cpus % ratio:
        return f"{cpus} vCPUs provided by the instance type are not divisible by the number of threads per core {ratio}"
    if across == "SocketsCoresThreads" and (cpus % 2 or cpus // 2 % ratio):
        return (
            f"{cpus} vCPUs provided by the instance type are not divisible by the number of threads per core 2 and "
            f"Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of {ratio}"
        )
    return ""


def unmet_requirement(size: Object | None, preference: Object | None, spec: Object) -> str:
    """The first one, in virt-api's words; empty if all are met. `spec`: of the VMI, expanded and with defaults.

    Raises `QuantityError`.
    """
    required = (preference or {}).get("requirements") or {}
    unmet = ""
    if preference is not None and required.get("cpu") is not None:
        unmet = _of_cpus(size, preference, spec, int(required["cpu"]["guest"]))
    if not unmet and required.get("memory") is not None:
        unmet = _of_memory(size, spec, required["memory"]["guest"])
    wanted = required.get("architecture")
    if not unmet and wanted is not None and spec.get("architecture") != wanted:
        unmet = f"preference requires architecture {wanted} but {spec.get('architecture')} is being requested"
    return f"{_ATTEMPT} {unmet}" if unmet else ""


def _of_cpus(size: Object | None, preference: Object, spec: Object, required: int) -> str:
    if size is not None:
        cpus = int(size["cpu"]["guest"])
        return (
            f"insufficient CPU resources of {cpus} vCPU provided by instance type, preference requires {required} vCPU"
            if cpus < required
            else ""
        )
    wanted = topology(preference)
    _ratio, across = spread(preference)
    counted = _SPREAD.get(across, ()) if wanted == "spread" else _COUNTED.get(wanted, ())
    cpu = spec["domain"].get("cpu") or {}
    cpus = prod(int(cpu.get(name) or 0) for name in counted) if counted else required
    where = across if wanted == "spread" else "cores, sockets and threads" if wanted == "any" else wanted
    return (
        f"insufficient CPU resources of {cpus} vCPU provided by VirtualMachine, preference requires {required} vCPU "
        f"provided as {where}"
        if cpus < required
        else ""
    )


def _of_memory(size: Object | None, spec: Object, required: str) -> str:
    given = (spec["domain"].get("memory") or {}).get("guest") or "0Mi"
    by = "VirtualMachine" if size is None else "instance type"
    if quantity.parse(given) >= quantity.parse(required):
        return ""
    return f"insufficient Memory resources of {given} provided by {by}, preference requires {required}"

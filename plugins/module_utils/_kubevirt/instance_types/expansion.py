# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VirtualMachine with all that its instance type and preference give it, as virt-controller starts it.

Follows startVMI in pkg/virt-controller/watch/vm/vm.go, and pkg/instancetype/controller/vm beside it. What virt-api
refuses when such a VM is created or changed follows pkg/instancetype/preference/validation/cpu.go and
pkg/instancetype/preference/requirements. virt-controller does not ask for these again when it starts a VM.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import prod

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.catalog import (
    INSTANCE_TYPE,
    PREFERENCE,
    Found,
    InstanceTypes,
    NotFoundError,
    Role,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.preferences import (
    apply_attachments,
    apply_preference,
    spread,
    topology,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.sizes import (
    apply_size,
    conflicts,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import (
    with_defaults,
    with_network,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy

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


@dataclass(frozen=True, slots=True)
class Expansion:
    """The VM, and phrases for what of it is not known. With such phrases nothing has been applied."""

    vm: Object
    open: tuple[str, ...] = ()


def expanded(vm: Object, types: InstanceTypes, configuration: Configuration) -> Expansion:
    """Raises LauncherError where KubeVirt does not start the VM, and `QuantityError`."""
    if not any(vm["spec"].get(role.field) for role in (INSTANCE_TYPE, PREFERENCE)):
        return Expansion(vm)
    size, preference = (_found(vm, types, role) for role in (INSTANCE_TYPE, PREFERENCE))
    if phrases := tuple(found.open for found in (size, preference) if found.open):
        return Expansion(vm, phrases)
    template = vm["spec"]["template"]
    spec, annotations = _template(template)
    if preference.spec is not None:
        apply_attachments(preference.spec, spec)
    spec = with_network(spec, configuration)
    if size.spec is not None:
        _refuse_conflicts(vm, size, spec, annotations)
        apply_size(size.spec, preference.spec, spec, annotations)
    if preference.spec is not None:
        apply_preference(preference.spec, spec, annotations)
    _refuse_at_admission(vm, size, preference, spec, configuration)
    metadata = {**(template.get("metadata") or {}), "annotations": annotations}
    return Expansion({**vm, "spec": {**vm["spec"], "template": {**template, "metadata": metadata, "spec": spec}}})


def _found(vm: Object, types: InstanceTypes, role: Role) -> Found:
    try:
        return types.of(vm, role)
    except NotFoundError as error:
        raise LauncherError(
            f"KubeVirt does not start {title(vm)}: {error} ({role.not_found}). Create it, or correct spec.{role.field} "
            "of the VM."
        ) from error


def _template(template: Object) -> tuple[JsonObject, dict[str, str]]:
    """Copies of its spec, with a domain, and of its annotations."""
    spec: JsonObject = deepcopy(dict(template["spec"]))
    spec["domain"] = spec.get("domain") or {}
    return spec, dict((template.get("metadata") or {}).get("annotations") or {})


def _refuse_conflicts(vm: Object, size: Found, spec: Object, annotations: dict[str, str]) -> None:
    """What is stored with the VM was compared with it before, and is compared again when it starts."""
    found = conflicts(size.spec or {}, spec, annotations)
    if not found:
        return
    if size.stored:
        words = f"VMI conflicts with instancetype spec in fields: [{', '.join(found)}]"
    else:
        paths = (
            path.replace("spec.", "spec.template.spec.", 1) if path.startswith("spec.") else path for path in found
        )
        words = f"VM field(s) {', '.join(paths)} conflicts with selected instance type"
    raise LauncherError(
        f"KubeVirt does not start {title(vm)}: {words}. Take them out of the VM, or choose another instance type."
    )


def _refuse_at_admission(
    vm: Object, size: Found, preference: Found, spec: Object, configuration: Configuration
) -> None:
    """A VM that is to be created, or that is started by a change of its run strategy, has to pass virt-api."""
    if vm["metadata"].get("uid") and run_strategy(vm) != HALTED:
        return
    words = _uneven_spread(size.spec, preference.spec)
    if not words and (preference.spec or {}).get("requirements"):
        whole = with_defaults({"metadata": vm["metadata"], "spec": spec}, configuration)["spec"]
        words = _unmet_requirement(size.spec, preference.spec, whole)
    if words:
        raise LauncherError(
            f"KubeVirt does not take {title(vm)}: {words}. Choose a larger instance type, or another preference."
        )


def _uneven_spread(size: Object | None, preference: Object | None) -> str:
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


def _unmet_requirement(size: Object | None, preference: Object | None, spec: Object) -> str:
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

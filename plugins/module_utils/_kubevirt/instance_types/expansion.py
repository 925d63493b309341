# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VirtualMachine with all that its instance type and preference give it, as virt-controller starts it.

Follows startVMI in pkg/virt-controller/watch/vm/vm.go, and pkg/instancetype/controller/vm beside it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.admission import (
    uneven_spread,
    unmet_requirement,
)
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
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.sizes import (
    apply_size,
    conflicts,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi_defaults import (
    with_defaults,
    with_network,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import HALTED, run_strategy


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
    words = uneven_spread(size.spec, preference.spec)
    if not words and (preference.spec or {}).get("requirements"):
        whole = with_defaults({"metadata": vm["metadata"], "spec": spec}, configuration)["spec"]
        words = unmet_requirement(size.spec, preference.spec, whole)
    if words:
        raise LauncherError(
            f"KubeVirt does not take {title(vm)}: {words}. Choose a larger instance type, or another preference."
        )

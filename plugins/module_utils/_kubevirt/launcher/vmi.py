# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI as it would be, made of what would start it: a VM, a replica set, or a VMI that is not created yet.

Follows SetupVMIFromVM and startVMI in pkg/virt-controller/watch/vm/vm.go and getVirtualMachineBaseName in
watch/replicaset/replicaset.go.

Defaults that KubeVirt's webhook gives to a new VMI are filled in as far as its pod depends on them. They follow
pkg/defaults/defaults.go, amd64.go, arm64.go, hyperv.go, kubevirt.io/api/core/v1/defaults.go and
pkg/network/vmispec/defaults.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import EVEN_PARITY, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    JsonObject,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

# How uids begin that no object has yet.
NOT_CREATED: Final = "not-created-"
# Where a cluster asks for this CPU by default, which is the default itself, VMIs get none.
_CPU_REQUEST = quantity.parse("100m")
_TOPOLOGY = ("cores", "sockets", "threads")
# Of Hyper-V enlightenments: what needs what; those that others need come after them.
_NEEDS = (
    ("evmcs", "vapic"),
    ("ipi", "vpindex"),
    ("tlbflush", "vpindex"),
    ("synictimer", "synic"),
    ("synic", "vpindex"),
)
_VMX = {"name": "vmx", "policy": "require"}


class WorkloadError(ExpectedError, ValueError):
    """An object is no VM, VMI or replica set: one sentence."""


def kind_of(item: Object) -> str:
    """Told by its parts, as items of a list need not name their kind. Raises WorkloadError."""
    spec = item.get("spec")
    metadata = item.get("metadata")
    if isinstance(spec, Mapping) and isinstance(metadata, Mapping) and metadata.get("name"):
        if isinstance(spec.get("domain"), Mapping):
            return VMI
        if isinstance((spec.get("template") or {}).get("spec"), Mapping) and "domain" in spec["template"]["spec"]:
            return VM if item.get("kind") == VM or "running" in spec or "runStrategy" in spec else VMI_REPLICA_SET
    raise WorkloadError(
        "A VirtualMachine, a VirtualMachineInstance or a VirtualMachineInstanceReplicaSet is expected. Give the whole "
        "object, with metadata.name and spec."
    )


def vmi_of(item: Object, configuration: Configuration, number: int = 0) -> JsonObject:
    """The VMI that `item` is, or that it would start, with KubeVirt's defaults filled in as far as its pod needs them.

    `number`: which replica of a replica set. Instance types and preferences are not applied. A uid that does not exist
    yet is made up, another one for each object and number. Raises WorkloadError.
    """
    kind = kind_of(item)
    given = item["metadata"]
    namespace = given.get("namespace") or "default"
    if kind == VMI:
        vmi = with_identity(item, _uid(kind, item, number))
        # virt-api sets the phase and, before it, the defaults of that time.
        return vmi if (item.get("status") or {}).get("phase") else with_defaults(vmi, configuration)
    template = item["spec"]["template"]
    own = template.get("metadata") or {}
    name = given["name"] if kind == VM else f"{own.get('name') or own.get('generateName') or given['name']}{number}"
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": _uid(kind, item, number),
        "labels": own.get("labels") or {},
        "annotations": own.get("annotations") or {},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": kind,
                "name": given["name"],
                "uid": given.get("uid") or "",
                "controller": True,
            }
        ],
    }
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": VMI, "metadata": metadata, "spec": template["spec"]}
    tracking = (item.get("status") or {}).get("changedBlockTracking")
    if kind == VM and tracking:
        vmi["status"] = {"changedBlockTracking": tracking}
    return with_defaults(vmi, configuration)


def with_identity(vmi: Object, uid: str = "") -> JsonObject:
    """A VMI with a namespace and a uid, which one written by hand may lack. `uid`: its own if it has none."""
    given = vmi["metadata"]
    uid = given.get("uid") or uid or _uid(VMI, vmi, 0)
    return {**vmi, "metadata": {**given, "namespace": given.get("namespace") or "default", "uid": uid}}


def uid_of_successor(vmi: Object) -> str:
    """In place of the uid of what is made in the place of a VMI: another one each time, and a valid value of labels.

    Empty if the VMI has none itself.
    """
    uid = vmi["metadata"].get("uid")
    return _made_up(f"after {uid}") if uid else ""


def _uid(kind: str, item: Object, number: int) -> str:
    """In place of one that the API server has yet to give: any will do that no other object has."""
    return _made_up(f"{kind} {title(item)} {number}")


def _made_up(of: str) -> str:
    return f"{NOT_CREATED}{hashlib.sha256(of.encode()).hexdigest()[:16]}"


def with_defaults(vmi: Object, configuration: Configuration) -> JsonObject:
    """The VMI with them, parts of it shared with the given one. Raises `QuantityError`."""
    spec = dict(vmi["spec"])
    spec["architecture"] = spec.get("architecture") or configuration.architecture
    spec["evictionStrategy"] = spec.get("evictionStrategy") or configuration.eviction_strategy
    domain = dict(spec.get("domain") or {})
    domain["machine"] = _machine(domain, spec["architecture"], configuration)
    domain["resources"] = _resources(domain, configuration)
    domain["memory"] = _memory(domain)
    domain["cpu"] = _topology(domain)
    domain = _with_hyperv_defaults(domain)
    domain["cpu"] = {**domain["cpu"], "model": _model(domain, spec["architecture"], configuration)}
    spec["domain"] = domain
    changed = {**vmi, "spec": with_network(spec, configuration)}
    if domain["cpu"].get("isolateEmulatorThread") and configuration.emulator_even_parity:
        metadata = vmi["metadata"]
        changed["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), EVEN_PARITY: ""}}
    return changed


def _machine(domain: Object, architecture: str, configuration: Configuration) -> JsonObject:
    machine = dict(domain.get("machine") or {})
    machine["type"] = machine.get("type") or configuration.default_machine_type(architecture)
    return machine


def _resources(domain: Object, configuration: Configuration) -> JsonObject:
    resources = dict(domain.get("resources") or {})
    requests = dict(resources.get("requests") or {})
    limit = (resources.get("limits") or {}).get(CPU)
    if limit is not None and quantity.parse(limit) and not quantity.parse(requests.get(CPU) or 0):
        requests[CPU] = limit
    default, dedicated = configuration.cpu_request, (domain.get("cpu") or {}).get("dedicatedCpuPlacement")
    if default is not None and quantity.parse(default) != _CPU_REQUEST and CPU not in requests and not dedicated:
        requests[CPU] = default
    return {**resources, "requests": requests}


def _memory(domain: Object) -> JsonObject:
    """What the guest sees: what is requested, else the limit, else one huge page."""
    memory, resources = dict(domain.get("memory") or {}), domain["resources"]
    if memory.get("guest") is not None:
        return memory
    for side in ("requests", "limits"):
        amount = (resources.get(side) or {}).get(MEMORY)
        if amount is not None and quantity.parse(amount):
            return {**memory, "guest": amount}
    page = (memory.get("hugepages") or {}).get("pageSize")
    return {**memory, "guest": page} if page else memory


def _topology(domain: Object) -> JsonObject:
    """Where none is given: as many sockets as CPUs are limited to, or requested."""
    cpu, resources = dict(domain.get("cpu") or {}), domain["resources"]
    if any(cpu.get(name) for name in _TOPOLOGY):
        return cpu
    given = ((resources.get(side) or {}).get(CPU) for side in ("limits", "requests"))
    amount = next((amount for amount in given if amount is not None), 1)
    return {**cpu, "cores": 1, "threads": 1, "sockets": quantity.units(quantity.parse(amount))}


def _model(domain: Object, architecture: str, configuration: Configuration) -> str:
    own = domain["cpu"].get("model")
    default = "host-passthrough" if architecture == "arm64" else configuration.cpu_model or "host-model"
    return str(own or default)


def with_network(spec: JsonObject, configuration: Configuration) -> JsonObject:
    """The pod's network for a VMI that says nothing of any."""
    devices = spec["domain"].get("devices") or {}
    if devices.get("autoattachPodInterface") is False or spec.get("networks") or devices.get("interfaces"):
        return spec
    interface = {"name": "default", configuration.default_network_interface: {}}
    domain = {**spec["domain"], "devices": {**devices, "interfaces": [interface]}}
    return {**spec, "domain": domain, "networks": [{"name": "default", "pod": {}}]}


def _with_hyperv_defaults(domain: Object) -> JsonObject:
    """The domain with defaults of Hyper-V enlightenments, some of which need others, and one a feature of the CPU.

    One that forbids what it needs is left as it is; KubeVirt refuses it later.
    """
    features = domain.get("features") or {}
    given = features.get("hyperv")
    if given is None:
        return dict(domain)
    states = {name: _enabled(state) for name, state in given.items() if state is not None}
    for name, needed in _NEEDS:
        if states.get(name, {}).get("enabled"):
            states[needed] = states.get(needed) or {"enabled": True}
    changed = {**domain, "features": {**features, "hyperv": states}}
    if states.get("evmcs", {}).get("enabled"):
        changed["cpu"] = _with_vmx(domain["cpu"])
    return changed


def _enabled(state: Object) -> JsonObject:
    return dict(state) if state.get("enabled") is not None else {**state, "enabled": True}


def _with_vmx(cpu: Object) -> JsonObject:
    features = list(cpu.get("features") or ())
    if any(feature["name"] == "vmx" for feature in features):
        return {**cpu, "features": [_VMX if feature["name"] == "vmx" else feature for feature in features]}
    return {**cpu, "features": [*features, _VMX]}

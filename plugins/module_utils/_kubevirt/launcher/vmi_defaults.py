# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults that KubeVirt's webhook gives to a new VMI, as far as its pod depends on them.

Follows pkg/defaults/defaults.go, amd64.go, arm64.go, hyperv.go, kubevirt.io/api/core/v1/defaults.go and
pkg/network/vmispec/defaults.go.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import EVEN_PARITY, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

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

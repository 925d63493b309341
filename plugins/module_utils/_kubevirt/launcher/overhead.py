# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory that a launcher pod needs beside its guest's.

Follows GetMemoryOverhead in pkg/hypervisor/kvm/hypervisorbackend.go and pkg/network/resources/memory.go of KubeVirt
1.8; the amounts differ between releases.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import NANO
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

_MI = 2**20 * NANO
_KILO = 1000 * NANO
# virt-launcher-monitor, virt-launcher, virtlogd, virtqemud, QEMU without its guest, and one I/O thread.
_FIXED = (25 + 100 + 25 + 40 + 30 + 8) * _MI
_VIRTUAL_CPU = 8 * _MI
_GRAPHICS = 32 * _MI
_ARM64_FIRMWARE = 128 * _MI
_VFIO = 1024 * _MI
_DOWNWARD_METRICS = _MI
_PROBES, _PROBE = 100 * _MI, 10 * _MI
_SEV = 256 * _MI
_TPM = 53 * _MI
_EXACT = 100 * _MI
_PASST = 250 * _MI


def memory_overhead(vmi: Object, configuration: Configuration) -> int:
    """In billionths of a byte. Raises `QuantityError`."""
    total = _hypervisor(vmi, configuration)
    if configuration.memory_overhead_ratio is not None:
        # In whole kilobytes and as a floating point number, as KubeVirt calculates it.
        total += int(_kilobytes(total) * (configuration.memory_overhead_ratio - 1.0)) * _KILO
    return total + _network(vmi, configuration)


def _hypervisor(vmi: Object, configuration: Configuration) -> int:
    # Page tables: of what is requested only, not of the memory that the guest sees.
    tables = _kilobytes(traits.amount(vmi, "requests", MEMORY)) * 1000 // 512 * NANO
    return tables + _FIXED + _VIRTUAL_CPU * _virtual_cpus(vmi) + _devices(vmi, configuration) + _wishes(vmi)


def _kilobytes(nanos: int) -> int:
    return -(-nanos // _KILO)


def _virtual_cpus(vmi: Object) -> int:
    cpu = traits.domain(vmi).get("cpu")
    if cpu is not None:
        return max(1, traits.virtual_cpus(cpu))
    return max(1, quantity.units(traits.amount(vmi, "limits", CPU) or traits.amount(vmi, "requests", CPU)))


def _devices(vmi: Object, configuration: Configuration) -> int:
    devices = traits.devices(vmi)
    total = 0
    if devices.get("autoattachGraphicsDevice") is not False:
        total += _GRAPHICS
    if (vmi["spec"].get("architecture") or configuration.architecture) == "arm64":
        total += _ARM64_FIRMWARE
    passed_through = devices.get("gpus") or devices.get("hostDevices")
    if passed_through or any(traits.has(entry, "sriov") for entry in traits.interfaces(vmi)):
        total += _VFIO
    tpm = devices.get("tpm")
    if tpm is not None and tpm.get("enabled") is not False:
        total += _TPM
    if any(traits.has(volume, "downwardMetrics") for volume in traits.volumes(vmi)):
        total += _DOWNWARD_METRICS
    return total


def _wishes(vmi: Object) -> int:
    probes = (vmi["spec"].get(name) or {} for name in ("livenessProbe", "readinessProbe"))
    commands = sum(traits.has(probe, "exec") for probe in probes)
    total = _PROBES + _PROBE * commands if commands else 0
    security = traits.domain(vmi).get("launchSecurity") or {}
    if traits.has(security, "sev") or traits.has(security, "snp"):
        total += _SEV
    if traits.is_exact(vmi):
        total += _EXACT
    reserved = (traits.memory(vmi).get("reservedOverhead") or {}).get("addedOverhead")
    return total if reserved is None else total + quantity.parse(reserved)


def _network(vmi: Object, configuration: Configuration) -> int:
    interfaces = traits.interfaces(vmi)
    total = _PASST if any(traits.has(entry, "passtBinding") for entry in interfaces) else 0
    for name in {entry["binding"]["name"] for entry in interfaces if traits.has(entry, "binding")}:
        plugin = configuration.network_bindings.get(name) or {}
        requests = (plugin.get("computeResourceOverhead") or {}).get("requests") or {}
        total += quantity.parse(requests.get(MEMORY) or 0)
    return total

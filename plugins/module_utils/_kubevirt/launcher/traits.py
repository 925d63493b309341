# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several parts of a launcher pod ask of a VMI.

Follows kubevirt.io/api/core/v1/types.go (WantsToHaveQOSGuaranteed), pkg/util/util.go and pkg/util/hardware/hw_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY

KERNEL_BOOT = "kernel-boot-volume"


def domain(vmi: Object) -> Object:
    return vmi["spec"].get("domain") or {}


def devices(vmi: Object) -> Object:
    return domain(vmi).get("devices") or {}


def interfaces(vmi: Object) -> Sequence[Object]:
    return devices(vmi).get("interfaces") or ()


def volumes(vmi: Object) -> Sequence[Object]:
    return vmi["spec"].get("volumes") or ()


def memory(vmi: Object) -> Object:
    return domain(vmi).get("memory") or {}


def has(part: Object, name: str) -> bool:
    """Whether a field is there; an empty object counts, as it often is all that switches something on."""
    return part.get(name) is not None


def amount(vmi: Object, side: str, name: str) -> int:
    """Of the VMI's own `requests` or `limits`, in billionths; 0 if it is not given."""
    given = ((domain(vmi).get("resources") or {}).get(side) or {}).get(name)
    return 0 if given is None else quantity.parse(given)


def is_dedicated(vmi: Object) -> bool:
    return bool((domain(vmi).get("cpu") or {}).get("dedicatedCpuPlacement"))


def is_exact(vmi: Object) -> bool:
    """Whether nothing of the pod may request less than its limit: dedicated CPUs, or quality of service Guaranteed."""
    if is_dedicated(vmi):
        return True
    requested, limit = amount(vmi, "requests", MEMORY), amount(vmi, "limits", MEMORY)
    cpu = amount(vmi, "requests", CPU)
    return (requested or limit) == limit > 0 and cpu == amount(vmi, "limits", CPU) > 0


def virtual_cpus(cpu: Object) -> int:
    """Of a topology; a number that is not given does not count. 0 if there is none at all."""
    numbers = [cpu[name] for name in ("cores", "sockets", "threads") if cpu.get(name)]
    product = 1 if numbers else 0
    for number in numbers:
        product *= number
    return product


def io_threads(vmi: Object) -> int:
    """How many have CPUs of their own."""
    return int((domain(vmi).get("ioThreads") or {}).get("supplementalPoolThreadCount") or 0)


def container_disks(vmi: Object) -> list[tuple[str, Object]]:
    """Name of the volume and its source, with the image that the guest's kernel comes from as the last."""
    found = [
        (volume["name"], volume["containerDisk"])
        for volume in volumes(vmi)
        if has(volume, "containerDisk") and volume["name"] != KERNEL_BOOT
    ]
    kernel = ((domain(vmi).get("firmware") or {}).get("kernelBoot") or {}).get("container")
    return [*found, (KERNEL_BOOT, kernel)] if kernel is not None else found


def file_systems(vmi: Object) -> list[str]:
    """Names of volumes whose files the guest shares, but for those of `container_paths`."""
    return [volume["name"] for volume in _shared(vmi) if not has(volume, "containerPath")]


def container_paths(vmi: Object) -> list[str]:
    """Names of volumes that share a path of the guest's container with the guest."""
    return [volume["name"] for volume in _shared(vmi) if has(volume, "containerPath")]


def _shared(vmi: Object) -> Iterator[Object]:
    names = {entry["name"] for entry in devices(vmi).get("filesystems") or ()}
    return (volume for volume in volumes(vmi) if volume["name"] in names)


def needs_state(vmi: Object) -> bool:
    """Whether something outlives the pod on a claim that KubeVirt makes: a vTPM, EFI variables, changed blocks."""
    tpm = devices(vmi).get("tpm")
    if tpm is not None and tpm.get("enabled") is not False and tpm.get("persistent"):
        return True
    efi = ((domain(vmi).get("firmware") or {}).get("bootloader") or {}).get("efi") or {}
    tracking = ((vmi.get("status") or {}).get("changedBlockTracking") or {}).get("state")
    return bool(efi.get("persistent")) or tracking in ("Initializing", "Enabled")

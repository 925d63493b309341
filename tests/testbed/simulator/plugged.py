# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPUs and memory that were plugged into a running VM: a guest gets them in the target pod of its next migration.

Follows hotplugCPU and hotplugMemory in pkg/virt-handler/migration-target.go, and updateMemoryInfo in vm.go. Until then
virt-controller does not take the migration for finished.
"""

from __future__ import annotations

from typing import Any

from testbed.simulator.facts import Raw, Vmi

_CPUS, _MEMORY = "HotVCPUChange", "HotMemoryChange"
_TOPOLOGY = ("cores", "sockets", "threads")
# What virt-controller noted of the target pod, for virt-handler alone.
_LABELS = (
    "kubevirt.io/vmi-pod-cpu-resource-limits",
    "kubevirt.io/vmi-pod-memory-resource-requests",
    "kubevirt.io/memory-hotplug-overhead-ratio",
)


def arrived(vmi: Vmi) -> tuple[dict[str, Any], dict[str, None]]:
    """Changes of the status, and of the labels."""
    pending = {condition["type"] for condition in vmi.conditions} & {_CPUS, _MEMORY}
    status: dict[str, Any] = {}
    domain: Raw = vmi.spec["domain"]
    if _CPUS in pending:
        status["currentCPUTopology"] = {name: domain["cpu"][name] for name in _TOPOLOGY if name in domain["cpu"]}
    if _MEMORY in pending:
        guest = domain["memory"]["guest"]
        status["memory"] = {"guestRequested": guest, "guestCurrent": guest}
    if pending:
        status["conditions"] = [condition for condition in vmi.conditions if condition["type"] not in pending]
    return status, dict.fromkeys(label for label in _LABELS if label in vmi.labels)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of two vendors and three generations in three zones, on which every guest finds more than one place."""

from __future__ import annotations

from testbed.api import Object
from testbed.nodes import ICELAKE, ROME, SKYLAKE, fake_node

ZONE = "topology.kubernetes.io/zone"
TSC_FREQUENCY = 2_500_000_000
_HYPERV = ("frequencies", "ipi", "reenlightenment", "reset", "runtime", "synic", "synictimer", "tlbflush", "vpindex")
# What the node labeller and an administrator may have found out about a host.
_ABILITIES = {
    "kubevirt.io/cpumanager": "true",
    "kubevirt.io/realtime": "true",
    "cpu-timer.node.kubevirt.io/tsc-frequency": str(TSC_FREQUENCY),
    "cpu-timer.node.kubevirt.io/tsc-scalable": "true",
    f"scheduling.node.kubevirt.io/tsc-frequency-{TSC_FREQUENCY}": "true",
    "cpu-feature.node.kubevirt.io/invtsc": "true",
    **{f"hyperv.node.kubevirt.io/{name}": "true" for name in _HYPERV},
}
# Zone and CPU of each node.
_LAYOUT = {
    "sky-a1": ("a", SKYLAKE),
    "sky-a2": ("a", SKYLAKE),
    "sky-b1": ("b", SKYLAKE),
    "ice-b2": ("b", ICELAKE),
    "ice-c1": ("c", ICELAKE),
    "rome-a3": ("a", ROME),
    "rome-c2": ("c", ROME),
}


def hosts() -> list[Object]:
    return [
        fake_node(
            name,
            cpu=64,
            memory="256Gi",
            labels={ZONE: zone, "vendor": cpu.vendor, "pool": "vms", **_ABILITIES},
            cpu_model=cpu.model,
            devices={"hugepages-2Mi": 64 * 2**30, "devices.kubevirt.io/vhost-vsock": 1000, "vendor.com/vf": 64},
        )
        for name, (zone, cpu) in _LAYOUT.items()
    ]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each amount is that of a pod which KubeVirt 1.8.4 made, or the difference that one field made to it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.overhead import memory_overhead

from unit.plugins.module_utils._kubevirt.launcher.vms import machine

MI = 2**20
PLAIN = (25 + 100 + 25 + 40 + 30 + 8 + 8 + 32) * MI


def overhead(item: Any, **configuration: Any) -> int:
    nanos = memory_overhead(item, Configuration(**configuration))
    assert nanos % 10**9 == 0
    return nanos // 10**9


def test_of_a_plain_vm() -> None:
    assert overhead(machine()) == PLAIN


MORE: list[tuple[Any, int]] = [
    (machine({"cpu": {"cores": 3, "threads": 2}}), 5 * 8 * MI),
    (machine({"resources": {"limits": {"cpu": "2500m"}}}), 2 * 8 * MI),
    (machine({"resources": {"requests": {"memory": "1Gi"}}}), 1073742000 // 512),
    (machine({"resources": {"requests": {"memory": "1000"}}}), 1),
    (machine({}, {"autoattachGraphicsDevice": False}), -32 * MI),
    (machine({}, {"gpus": [{"name": "g"}]}), 1024 * MI),
    (machine({}, {"hostDevices": [{"name": "g"}]}), 1024 * MI),
    (machine({}, {"interfaces": [{"name": "a", "sriov": {}}]}), 1024 * MI),
    (machine({}, {"interfaces": [{"name": "a", "passtBinding": {}}]}), 250 * MI),
    (machine({}, {"tpm": {}}), 53 * MI),
    (machine({}, {"tpm": {"enabled": False}}), 0),
    (machine({"cpu": {"dedicatedCpuPlacement": True}}), 100 * MI),
    (machine({"launchSecurity": {"sev": {}}}), 256 * MI),
    (machine({"launchSecurity": {"snp": {}}}), 256 * MI),
    (machine({"launchSecurity": {"tdx": {}}}), 0),
    (machine({"memory": {"guest": "1Gi", "reservedOverhead": {"addedOverhead": "7M"}}}), 7 * 10**6),
    (machine(volumes=[{"name": "m", "downwardMetrics": {}}]), MI),
    (machine(livenessProbe={"exec": {}}), 110 * MI),
    (machine(livenessProbe={"exec": {}}, readinessProbe={"exec": {}}), 120 * MI),
    (machine(livenessProbe={"guestAgentPing": {}}), 0),
    (machine(architecture="arm64"), 128 * MI),
]


@pytest.mark.parametrize(("item", "more"), MORE)
def test_what_adds_to_it(item: Any, more: int) -> None:
    assert overhead(item) == PLAIN + more


def test_a_ratio_multiplies_whole_kilobytes() -> None:
    kilobytes = -(-PLAIN // 1000)
    assert overhead(machine(), memory_overhead_ratio=1.337) == PLAIN + int(kilobytes * (1.337 - 1.0)) * 1000


def test_each_binding_counts_once_and_is_not_multiplied() -> None:
    interfaces = [{"name": name, "binding": {"name": plugin}} for name, plugin in (("a", "p"), ("b", "p"), ("c", "q"))]
    plugins = {"p": {"computeResourceOverhead": {"requests": {"memory": "10Mi"}}}, "q": {}}
    item = machine({}, {"interfaces": interfaces})
    assert overhead(item, memory_overhead_ratio=1.0, network_bindings=plugins) == PLAIN + 10 * MI

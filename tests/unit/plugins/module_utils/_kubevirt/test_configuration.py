# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    SupportContainer,
    configuration,
)


def read(given: dict[str, Any], **more: Any) -> Configuration:
    kubevirt = {
        "metadata": {"name": "kubevirt"},
        "spec": {"configuration": given},
        "status": {"phase": "Deployed", "defaultArchitecture": "amd64"},
        **more,
    }
    return configuration({"kubevirts": [kubevirt]})


@pytest.mark.parametrize(
    "more",
    [
        {"status": {}},
        {"metadata": {"name": "kubevirt", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_an_object_that_does_not_count(more: dict[str, Any]) -> None:
    assert read({"cpuModel": "Haswell"}, **more) == Configuration()


def test_an_empty_object_is_as_good_as_none() -> None:
    assert read({}) == configuration({}) == Configuration()


CASES: list[tuple[dict[str, Any], str, object]] = [
    ({"developerConfiguration": {"cpuAllocationRatio": 0}}, "cpu_allocation_ratio", 10),
    ({"developerConfiguration": {"cpuAllocationRatio": 4}}, "cpu_allocation_ratio", 4),
    ({"developerConfiguration": {"memoryOvercommit": 150}}, "memory_overcommit", 150),
    ({"developerConfiguration": {"nodeSelectors": {"a": "b"}}}, "node_selectors", {"a": "b"}),
    ({"additionalGuestMemoryOverheadRatio": "1.5"}, "memory_overhead_ratio", 1.5),
    ({"additionalGuestMemoryOverheadRatio": "much"}, "memory_overhead_ratio", None),
    ({"permittedHostDevices": {"usb": [{"resourceName": "u/s"}]}}, "permitted_devices", frozenset({"u/s"})),
    ({"virtualMachineOptions": {"disableSerialConsoleLog": {}}}, "serial_console_log", False),
    ({"virtualMachineOptions": {}}, "serial_console_log", True),
    ({"hypervisors": [{"name": "hyperv-direct"}]}, "hypervisor", "kvm"),
    (
        {
            "hypervisors": [{"name": "hyperv-direct"}],
            "developerConfiguration": {"featureGates": ["ConfigurableHypervisor"]},
        },
        "hypervisor",
        "hyperv-direct",
    ),
    (
        {"supportContainerResources": [{"type": "sidecar", "resources": {"limits": {"cpu": "1"}}}]},
        "support_containers",
        {"sidecar": SupportContainer({}, {"cpu": "1"})},
    ),
    ({"cpuRequest": 1}, "cpu_request", "1"),
    ({"liveUpdateConfiguration": {"maxGuest": "8Gi"}}, "max_guest", "8Gi"),
]


@pytest.mark.parametrize(("given", "name", "value"), CASES)
def test_what_is_given_lies_over_the_defaults(given: dict[str, Any], name: str, value: object) -> None:
    assert getattr(read(given), name) == value


MIGRATIONS: list[tuple[dict[str, Any], str, object]] = [
    ({}, "parallel_per_cluster", 5),
    ({"parallelMigrationsPerCluster": 0}, "parallel_per_cluster", 0),
    ({"parallelOutboundMigrationsPerNode": 7}, "parallel_outbound_per_node", 7),
    ({"bandwidthPerMigration": "64Mi"}, "bandwidth", 64 * 2**20),
    ({"allowPostCopy": True}, "allow_workload_disruption", True),
    ({"allowPostCopy": True, "allowWorkloadDisruption": False}, "allow_workload_disruption", False),
    ({}, "match_selinux_level", True),
    ({"matchSELinuxLevelOnMigration": False}, "match_selinux_level", False),
    ({}, "drain_taint_key", "kubevirt.io/drain"),
]


@pytest.mark.parametrize(("given", "name", "value"), MIGRATIONS)
def test_migrations(given: dict[str, Any], name: str, value: object) -> None:
    assert getattr(read({"migrations": given}).migrations, name) == value


def test_machine_types() -> None:
    own = read({"architectureConfiguration": {"arm64": {"machineType": "virt-9"}}})
    types = [own.default_machine_type(name) for name in ("amd64", "arm64", "s390x", "riscv64")]
    assert types == ["q35", "virt-9", "s390-ccw-virtio", "q35"]
    assert read({"machineType": "pc"}).default_machine_type("arm64") == "pc"


def test_feature_gates_are_off_unless_named() -> None:
    given = read({"developerConfiguration": {"featureGates": ["VSOCK"], "disabledFeatureGates": ["ImageVolume"]}})
    assert given.enabled("VSOCK")
    assert not given.enabled("ImageVolume")

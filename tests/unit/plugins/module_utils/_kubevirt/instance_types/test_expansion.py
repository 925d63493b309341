# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs with what instance types and preferences give them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from unit.plugins.module_utils._kubevirt.instance_types.machines import NAME, SIZE, Object, of, spec_of, vm


def preferring(domain: Object | None, preference: Object, **spec: Any) -> Any:
    """The spec of a VM with a size of its own that prefers this."""
    return spec_of(of(vm(domain, named={"preference": NAME}, **spec), preference=preference))


def test_a_vm_that_names_nothing_stays_as_it_is() -> None:
    machine = vm(named={})
    assert of(machine).vm is machine


def test_nothing_of_what_is_given_changes() -> None:
    machine = vm({"devices": {"interfaces": [{"name": "default"}]}}, named={"instancetype": NAME, "preference": NAME})
    preference = {"devices": {"preferredInterfaceModel": "e1000"}, "cpu": {"preferredCPUFeatures": [{"name": "aes"}]}}
    before = copy.deepcopy((machine, preference))
    assert of(machine, preference=preference).vm != machine
    assert (machine, preference) == before


TOPOLOGIES: list[tuple[int, Object | None, tuple[int, int, int]]] = [
    # CPUs; the preference; sockets, cores, threads
    (4, None, (4, 1, 1)),
    (1, {"cpu": {"preferredCPUTopology": "cores"}}, (1, 1, 1)),
    (4, {"cpu": {"preferredCPUTopology": "cores"}}, (1, 4, 1)),
    (4, {"cpu": {"preferredCPUTopology": "preferThreads"}}, (1, 1, 4)),
    (4, {"cpu": {"preferredCPUTopology": "preferAny"}}, (4, 1, 1)),
    (4, {"cpu": {"preferredCPUTopology": "of tomorrow"}}, (1, 1, 1)),
    (4, {"cpu": {"preferredCPUTopology": "spread"}}, (2, 2, 1)),
    (8, {"cpu": {"preferredCPUTopology": "preferSpread"}, "preferSpreadSocketToCoreRatio": 4}, (2, 4, 1)),
    (8, {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "CoresThreads"}}}, (1, 4, 2)),
    (
        8,
        {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "SocketsCoresThreads", "ratio": 4}}},
        (1, 4, 2),
    ),
    (4, {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "of tomorrow"}}}, (1, 1, 1)),
]


@pytest.mark.parametrize(("cpus", "preference", "expected"), TOPOLOGIES)
def test_topologies(cpus: int, preference: Object | None, expected: tuple[int, int, int]) -> None:
    named = {"instancetype": NAME, **({"preference": NAME} if preference else {})}
    size = {**SIZE, "cpu": {"guest": cpus}}
    cpu = spec_of(of(vm(named=named), size, preference))["domain"]["cpu"]
    assert (cpu["sockets"], cpu["cores"], cpu["threads"]) == expected


def test_all_that_an_instance_type_may_set() -> None:
    size = {
        "cpu": {
            "guest": 2,
            "model": "Haswell",
            "dedicatedCPUPlacement": True,
            "isolateEmulatorThread": True,
            "numa": {"guestMappingPassthrough": {}},
            "realtime": {},
            "maxSockets": 8,
        },
        "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}, "maxGuest": "4Gi", "overcommitPercent": 50},
        "nodeSelector": {"pool": "large"},
        "schedulerName": "other",
        "ioThreadsPolicy": "supplementalPool",
        "ioThreads": {"supplementalPoolThreadCount": 3},
        "launchSecurity": {"sev": {}},
        "gpus": [{"name": "g", "deviceName": "v/g"}],
        "hostDevices": [{"name": "h", "deviceName": "v/h"}],
        "annotations": {"kubevirt.io/a": "1"},
    }
    found = of(vm({"cpu": {"features": [{"name": "aes"}]}}, tolerations=[{"operator": "Exists"}]), size)
    spec = spec_of(found)
    assert {name: spec[name] for name in ("nodeSelector", "schedulerName", "tolerations")} == {
        "nodeSelector": {"pool": "large"},
        "schedulerName": "other",
        "tolerations": [{"operator": "Exists"}],
    }
    assert spec["domain"] == {
        "cpu": {
            "features": [{"name": "aes"}],
            "model": "Haswell",
            "dedicatedCpuPlacement": True,
            "isolateEmulatorThread": True,
            "numa": {"guestMappingPassthrough": {}},
            "realtime": {},
            "maxSockets": 8,
            "sockets": 2,
            "cores": 1,
            "threads": 1,
        },
        "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}, "maxGuest": "4Gi"},
        "resources": {"requests": {"memory": str(2**29)}},
        "ioThreadsPolicy": "supplementalPool",
        "ioThreads": {"supplementalPoolThreadCount": 3},
        "launchSecurity": {"sev": {}},
        "devices": {
            "interfaces": [{"name": "default", "bridge": {}}],
            "gpus": [{"name": "g", "deviceName": "v/g"}],
            "hostDevices": [{"name": "h", "deviceName": "v/h"}],
        },
    }
    assert found.vm["spec"]["template"]["metadata"]["annotations"] == {"kubevirt.io/a": "1"}


# As virt-controller reckons, in single precision: 1 GiB less 15 % is not 912680550.
@pytest.mark.parametrize(("percent", "requested"), [(15, "912680576"), (17, "891205696"), (50, "536870912")])
def test_memory_that_is_overcommitted(percent: int, requested: str) -> None:
    size = {"cpu": {"guest": 1}, "memory": {"guest": "1Gi", "overcommitPercent": percent}}
    assert spec_of(of(vm(), size))["domain"]["resources"]["requests"] == {"memory": requested}


PREFERRED: list[tuple[Object, Object, Object]] = [
    # a VM's domain, the preference, what of the domain it becomes
    ({}, {"devices": {"preferredTPM": {"persistent": True}}}, {"tpm": {"persistent": True}}),
    ({"devices": {"tpm": {}}}, {"devices": {"preferredTPM": {"persistent": True}}}, {"tpm": {}}),
    ({}, {"devices": {"preferredAutoattachGraphicsDevice": False}}, {"autoattachGraphicsDevice": False}),
    (
        {"devices": {"autoattachSerialConsole": True}},
        {"devices": {"preferredAutoattachSerialConsole": False}},
        {"autoattachSerialConsole": True},
    ),
    (
        {},
        {"devices": {"preferredInterfaceModel": "e1000"}},
        {"interfaces": [{"name": "default", "bridge": {}, "model": "e1000"}]},
    ),
    (
        {"devices": {"interfaces": [{"name": "a", "model": "virtio"}, {"name": "b"}]}},
        {"devices": {"preferredInterfaceModel": "e1000"}},
        {"interfaces": [{"name": "a", "model": "virtio"}, {"name": "b", "model": "e1000"}]},
    ),
    (
        {"features": {"hyperv": {"vapic": {"enabled": False}, "synic": None}}},
        {"features": {"preferredHyperv": {"vapic": {}, "synic": {}, "evmcs": {}}}},
        {"hyperv": {"vapic": {"enabled": False}, "synic": {}, "evmcs": {}}},
    ),
    ({}, {"firmware": {"preferredUseEfi": True}}, {"bootloader": {"efi": {}}}),
    (
        {},
        {"firmware": {"preferredUseEfi": True, "preferredEfi": {"persistent": True}}},
        {"bootloader": {"efi": {"persistent": True}}},
    ),
    (
        {},
        {"firmware": {"preferredUseBios": True, "preferredEfi": {"persistent": True}}},
        {"bootloader": {"bios": {}}},
    ),
    (
        {"firmware": {"bootloader": {"bios": {}}}},
        {"firmware": {"preferredEfi": {"persistent": True}}},
        {"bootloader": {"bios": {}}},
    ),
    ({}, {"machine": {"preferredMachineType": "pc-q35-9.2"}}, {"type": "pc-q35-9.2"}),
    ({"machine": {"type": "q35"}}, {"machine": {"preferredMachineType": "pc-q35-9.2"}}, {"type": "q35"}),
    (
        {"cpu": {"features": [{"name": "aes", "policy": "optional"}]}},
        {"cpu": {"preferredCPUFeatures": [{"name": "aes"}, {"name": "vmx"}]}},
        {"features": [{"name": "aes", "policy": "optional"}, {"name": "vmx"}]},
    ),
]


@pytest.mark.parametrize(("domain", "preference", "expected"), PREFERRED)
def test_preferences_of_the_domain(domain: Object, preference: Object, expected: Object) -> None:
    (part,) = preference
    found = preferring(domain, preference)["domain"][part]
    assert {name: found[name] for name in expected} == expected


def test_other_preferences() -> None:
    preference: Object = {"preferredArchitecture": "arm64", "preferredTerminationGracePeriodSeconds": 9}
    open_ = preferring({}, preference, architecture="")
    assert (open_["architecture"], open_["terminationGracePeriodSeconds"]) == ("arm64", 9)
    said = preferring({}, preference, architecture="amd64", terminationGracePeriodSeconds=0)
    assert (said["architecture"], said["terminationGracePeriodSeconds"]) == ("amd64", 0)


def test_no_network_comes_by_itself_where_it_is_not_preferred() -> None:
    found = preferring({}, {"devices": {"preferredAutoattachPodInterface": False}})
    assert "networks" not in found


def test_annotations_are_added_and_the_vm_wins_over_a_preference() -> None:
    machine = vm(named={"instancetype": NAME, "preference": NAME})
    machine["spec"]["template"]["metadata"] = {"annotations": {"a": "vm"}, "labels": {"app": "db"}}
    found = of(
        machine, {**SIZE, "annotations": {"a": "vm", "b": "size"}}, {"annotations": {"a": "x", "b": "x", "c": "x"}}
    )
    assert found.vm["spec"]["template"]["metadata"] == {
        "annotations": {"a": "vm", "b": "size", "c": "x"},
        "labels": {"app": "db"},
    }

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instance types, preferences and VMs that name them, in all combinations that say something."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from testbed.api import Object

GROUP = "instancetype.kubevirt.io/v1beta1"
TYPE, CLUSTER_TYPE = "VirtualMachineInstancetype", "VirtualMachineClusterInstancetype"
PREFERENCE, CLUSTER_PREFERENCE = "VirtualMachinePreference", "VirtualMachineClusterPreference"
# Of the KubeVirt object, without which some of the cases are refused.
CONFIGURATION: Object = {
    "permittedHostDevices": {"pciHostDevices": [{"pciVendorSelector": "8086:6F54", "resourceName": "vendor.com/card"}]},
    "developerConfiguration": {
        "featureGates": [
            "GPU",
            "HostDevices",
            "CPUManager",
            "NUMA",
            "Sidecar",
            "WorkloadEncryptionSEV",
            "VMPersistentState",
        ]
    },
}


def memory(guest: str, **more: object) -> Object:
    return {"guest": guest, **more}


def cpu(guest: int, **more: object) -> Object:
    return {"guest": guest, **more}


TYPES: dict[str, Object] = {
    "one": {"cpu": cpu(1), "memory": memory("1Gi")},
    "many": {"cpu": cpu(8), "memory": memory("3000Mi", maxGuest="6000Mi")},
    "overcommitted": {"cpu": cpu(4, maxSockets=16), "memory": memory("7Gi", overcommitPercent=17)},
    "pages": {"cpu": cpu(4), "memory": memory("2Gi", hugepages={"pageSize": "2Mi"})},
    "dedicated": {
        "cpu": cpu(2, dedicatedCPUPlacement=True, isolateEmulatorThread=True, model="Haswell"),
        "memory": memory("2Gi"),
        "ioThreadsPolicy": "supplementalPool",
        "ioThreads": {"supplementalPoolThreadCount": 3},
    },
    "numa": {
        "cpu": cpu(2, dedicatedCPUPlacement=True, numa={"guestMappingPassthrough": {}}, realtime={}),
        "memory": memory("1Gi", hugepages={"pageSize": "1Gi"}),
    },
    "placed": {
        "cpu": cpu(2),
        "memory": memory("1Gi"),
        "nodeSelector": {"pool": "large"},
        "schedulerName": "another-scheduler",
        "annotations": {"hooks.kubevirt.io/hookSidecars": '[{"image": "registry:5000/hook:1"}]', "note": "x"},
    },
    "devices": {
        "cpu": cpu(2),
        "memory": memory("1Gi"),
        "gpus": [{"name": "g", "deviceName": "vendor.com/card"}],
        "hostDevices": [{"name": "h", "deviceName": "vendor.com/card"}],
    },
    "secured": {"cpu": cpu(2), "memory": memory("1Gi"), "launchSecurity": {"sev": {}}},
}
SMM: Object = {"features": {"preferredSmm": {"enabled": True}}}
PREFERENCES: dict[str, Object] = {
    "cores": {"cpu": {"preferredCPUTopology": "cores", "preferredCPUFeatures": [{"name": "aes", "policy": "require"}]}},
    "old": {"cpu": {"preferredCPUTopology": "preferThreads"}, "firmware": {"preferredUseEfi": True}, **SMM},
    "efi": {"cpu": {}, "firmware": {"preferredEfi": {"secureBoot": False}}},
    "spread": {"cpu": {"preferredCPUTopology": "spread"}, "preferSpreadSocketToCoreRatio": 1},
    "any": {
        "cpu": {"preferredCPUTopology": "any"},
        "requirements": {"cpu": {"guest": 1}, "memory": {"guest": "512Mi"}, "architecture": "amd64"},
        "preferredArchitecture": "amd64",
    },
    "bare": {
        "devices": {
            "preferredAutoattachGraphicsDevice": False,
            "preferredAutoattachPodInterface": False,
            "preferredAutoattachSerialConsole": False,
            "preferredAutoattachMemBalloon": False,
        },
        "preferredTerminationGracePeriodSeconds": 90,
    },
    "windows": {
        "clock": {"preferredClockOffset": {"utc": {}}, "preferredTimer": {"hyperv": {}}},
        "devices": {
            "preferredInterfaceModel": "e1000",
            "preferredTPM": {"persistent": True},
            "preferredDiskBus": "sata",
        },
        "features": {
            "preferredHyperv": {"reenlightenment": {"enabled": True}, "synictimer": {"enabled": True}, "relaxed": {}},
            "preferredSmm": {"enabled": True},
        },
        "firmware": {"preferredEfi": {"persistent": True, "secureBoot": True}},
        "machine": {"preferredMachineType": "pc-q35-9.2"},
        "annotations": {"hooks.kubevirt.io/hookSidecars": '[{"image": "registry:5000/other:1"}]'},
    },
}
# Of VMs that leave all that an instance type may set to it: domain, and the rest of the spec.
SHAPES: tuple[tuple[Object, Object], ...] = (
    ({}, {}),
    (
        {
            "cpu": {"features": [{"name": "aes", "policy": "optional"}]},
            "devices": {"tpm": {}, "interfaces": [{"name": "default", "masquerade": {}, "model": "virtio"}]},
            "features": {"hyperv": {"reenlightenment": {"enabled": False}}},
            "firmware": {"bootloader": {"bios": {}}},
            "machine": {"type": "q35"},
        },
        {"networks": [{"name": "default", "pod": {}}], "terminationGracePeriodSeconds": 5},
    ),
    (
        {
            "devices": {
                "autoattachGraphicsDevice": True,
                "autoattachPodInterface": True,
                "autoattachSerialConsole": True,
                "interfaces": [{"name": "default", "bridge": {}}],
            },
            "resources": {"overcommitGuestOverhead": True},
        },
        {"networks": [{"name": "default", "pod": {}}], "tolerations": [{"operator": "Exists"}]},
    ),
)
# For VMs without an instance type.
OWN_SIZE: Object = {"cpu": {"cores": 2, "sockets": 2, "threads": 1}, "memory": {"guest": "1Gi"}}


def objects(namespace: str) -> list[Object]:
    """The types and preferences, half of them in the namespace."""
    made = [(TYPE, CLUSTER_TYPE, name, spec) for name, spec in TYPES.items()]
    made += [(PREFERENCE, CLUSTER_PREFERENCE, name, spec) for name, spec in PREFERENCES.items()]
    return [
        item(own if is_own(name) else whole, name, spec, namespace if is_own(name) else "")
        for own, whole, name, spec in made
    ]


def is_own(name: str) -> bool:
    """Whether it is the namespace's, not the cluster's."""
    return [*TYPES, *PREFERENCES].index(name) % 2 == 1


def item(kind: str, name: str, spec: Object, namespace: str = "") -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def vm(name: str, namespace: str, domain: Object, spec: Object | None = None, **more: object) -> Object:
    """more: of the VM's spec."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runStrategy": "Always",
            **more,
            "template": {
                "metadata": {"labels": {"test.virtops/case": name}},
                "spec": {"domain": {"devices": {}, **domain}, **(spec or {})},
            },
        },
    }


def vms(namespace: str) -> Iterator[Object]:
    """Each type with each preference, and with none of either, in turns with the shapes."""
    pairs = list(product([None, *TYPES], [None, *PREFERENCES]))[1:]
    for number, (size, preference) in enumerate(pairs):
        if size == "secured" and preference != "efi":
            continue
        domain, spec = SHAPES[0 if size == "secured" else number % len(SHAPES)]
        if size is None:
            cpus = {**OWN_SIZE["cpu"], **domain.get("cpu", {})}
            domain = {**OWN_SIZE, **domain, "cpu": cpus}
        names = {
            "instancetype": size and {"name": size, **({"kind": TYPE} if is_own(size) else {})},
            "preference": preference and {"name": preference, **({"kind": PREFERENCE} if is_own(preference) else {})},
        }
        named = {field: value for field, value in names.items() if value}
        yield vm(f"{size or 'own'}-{preference or 'none'}", namespace, domain, spec, **named)

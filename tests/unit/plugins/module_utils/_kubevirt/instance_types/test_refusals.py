# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instance type or preference counts for a VM, and why KubeVirt does not start some VMs."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.catalog import InstanceTypes
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.expansion import (
    expanded,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError

from unit.plugins.module_utils._kubevirt.instance_types.machines import (
    NAME,
    SIZE,
    SMALL,
    Object,
    item,
    of,
    revision,
    spec_of,
    vm,
)

OWN = "VirtualMachineInstancetype"
STORED = {"instancetypeRef": {"name": "u1", "controllerRevisionRef": {"name": "db-u1"}}}
REVISIONS = [revision("db-u1", OWN, SMALL), revision("old", OWN, {**SMALL, "cpu": {"guest": 7}}, of="other")]
WHICH: list[tuple[Object, Object, int]] = [
    # what the VM names, its status, CPUs
    ({"name": "u1"}, {}, 4),
    ({"name": "u1", "kind": "VirtualMachineClusterInstancetype"}, {}, 4),
    ({"name": "u1", "kind": "virtualmachineclusterinstancetypes"}, {}, 4),
    ({"name": "u1", "kind": OWN}, {}, 2),
    ({"name": "u1", "kind": "virtualmachineinstancetype"}, {}, 2),
    ({"name": "u1"}, STORED, 1),
    # What is stored is of another one than the VM names now.
    ({"name": "u2", "kind": OWN}, STORED, 3),
    ({"name": "u1", "revisionName": "old"}, STORED, 7),
]


@pytest.mark.parametrize(("named", "status", "cpus"), WHICH)
def test_which_one_counts(named: Object, status: Object, cpus: int) -> None:
    own = [item(name, {**SIZE, "cpu": {"guest": guest}}, "shop") for name, guest in (("u1", 2), ("u2", 3))]
    own.append(item("u1", {**SIZE, "cpu": {"guest": 9}}, "bank"))
    found = of(vm(status=status, named={"instancetype": named}), instancetypes=own, controllerrevisions=REVISIONS)
    assert spec_of(found)["domain"]["cpu"]["sockets"] == cpus


REPORTED = {"conditions": [{"type": "Failure", "status": "True", "reason": "FailedFindPreference"}]}
MISSING: list[tuple[Object, Object, Object, str]] = [
    # what the VM names, its status, other lists, the reason in virt-controller's words
    (
        {"instancetype": {"name": "u2"}},
        {},
        {},
        'virtualmachineclusterinstancetypes.instancetype.kubevirt.io "u2" not found (FailedFindInstancetype). Create '
        "it, or correct spec.instancetype of the VM.",
    ),
    (
        {"preference": {"name": "u1", "kind": "VirtualMachinePreference"}},
        {},
        {},
        'virtualmachinepreferences.instancetype.kubevirt.io "u1" not found (FailedFindPreference)',
    ),
    ({"instancetype": {"name": "u1", "kind": "VM"}}, {}, {}, "got unexpected kind in InstancetypeMatcher: VM"),
    ({"preference": {"name": "u1", "kind": "VM"}}, {}, {}, "got unexpected kind in PreferenceMatcher: VM"),
    (
        {"instancetype": {"name": "u1", "revisionName": "gone"}},
        {},
        {"controllerrevisions": REVISIONS},
        'controllerrevisions.apps "gone" not found',
    ),
    (
        {"instancetype": {"name": "u1"}},
        STORED,
        {"controllerrevisions": [revision("db-u1", "VirtualMachinePreference", {"machine": {}})]},
        "unexpected type in ControllerRevision shop/db-u1: VirtualMachinePreference",
    ),
    (
        {"instancetype": {"name": "u1"}},
        STORED,
        {"controllerrevisions": [revision("db-u1", OWN, None)]},
        "unexpected type in ControllerRevision",
    ),
    # virt-controller has said it, though the lists may not be known.
    (
        {"preference": {"name": "u3"}},
        REPORTED,
        {"clusterinstancetypes": [], "clusterpreferences": []},
        'virtualmachineclusterpreferences.instancetype.kubevirt.io "u3" not found',
    ),
]


@pytest.mark.parametrize(("named", "status", "lists", "words"), MISSING)
def test_what_is_missing(named: Object, status: Object, lists: Object, words: str) -> None:
    with pytest.raises(LauncherError) as raised:
        of(vm(status=status, named=named), **lists)
    assert str(raised.value).startswith("KubeVirt does not start shop/db: ")
    assert words in str(raised.value)


UNKNOWN: list[tuple[Object, Object, Object, str]] = [
    ({"instancetype": {"name": "u1"}}, {}, {"clusterinstancetypes": []}, "instancetype u1 of the VM, which sets CPUs"),
    ({"preference": {"name": "u1"}}, {}, {"clusterpreferences": []}, "preference u1 of the VM, which sets machine"),
    (
        {"instancetype": {"inferFromVolume": "root"}},
        {},
        {},
        "instancetype of the VM, which volume root tells when the VM is created",
    ),
    (
        {"instancetype": {"name": "u1"}},
        STORED,
        {"clusterinstancetypes": [item("u1", SIZE)]},
        "instancetype u1 as ControllerRevision db-u1 has it of the VM",
    ),
]


@pytest.mark.parametrize(("named", "status", "lists", "phrase"), UNKNOWN)
def test_what_is_not_known_is_said_and_nothing_applied(
    named: Object, status: Object, lists: Object, phrase: str
) -> None:
    machine = vm(status=status, named=named)
    found = expanded(machine, InstanceTypes(lists if "clusterinstancetypes" in lists else {}), Configuration())
    assert found.vm is machine
    assert [text.startswith(phrase) for text in found.open] == [True]


FULL: Object = {
    **SIZE,
    "cpu": {
        "guest": 1,
        "model": "Skylake",
        "dedicatedCPUPlacement": False,
        "isolateEmulatorThread": False,
        "numa": {},
        "realtime": {},
    },
    "nodeSelector": {},
    "schedulerName": "x",
    "ioThreadsPolicy": "shared",
    "ioThreads": {"supplementalPoolThreadCount": 1},
    "launchSecurity": {},
    "gpus": [{}],
    "hostDevices": [{}],
}
CONFLICTS: list[tuple[Object, Object, list[str]]] = [
    # domain, the rest of the template's spec, paths below it
    ({"cpu": {"sockets": 1}}, {}, ["domain.cpu.sockets"]),
    (
        {"cpu": {"threads": 1, "cores": 1, "model": "Haswell", "dedicatedCpuPlacement": True}},
        {},
        ["domain.cpu.cores", "domain.cpu.threads", "domain.cpu.model", "domain.cpu.dedicatedCPUPlacement"],
    ),
    (
        {"cpu": {"isolateEmulatorThread": True, "numa": {}, "realtime": {}}},
        {},
        ["domain.cpu.isolateEmulatorThread", "domain.cpu.numa", "domain.cpu.realtime"],
    ),
    ({"cpu": {"dedicatedCpuPlacement": False, "model": "", "cores": 0}}, {}, []),
    # Of memory only the first.
    (
        {"memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "1Gi"}}},
        {},
        ["domain.memory.guest"],
    ),
    (
        {"resources": {"requests": {"memory": "1Gi", "cpu": "0"}, "limits": {"cpu": "1"}}},
        {},
        ["domain.resources.requests.cpu", "domain.resources.limits.cpu", "domain.resources.requests.memory"],
    ),
    ({"resources": {"limits": {"memory": "1Gi"}}}, {}, ["domain.resources.limits.memory"]),
    (
        {"ioThreads": {"supplementalPoolThreadCount": 0}, "ioThreadsPolicy": "auto", "launchSecurity": {}},
        {"nodeSelector": {"a": "b"}, "schedulerName": "y"},
        [
            "nodeSelector",
            "schedulerName",
            "domain.ioThreads.supplementalPoolThreadCount",
            "domain.ioThreadsPolicy",
            "domain.launchSecurity",
        ],
    ),
    ({"devices": {"gpus": [{}], "hostDevices": [{}]}}, {}, ["domain.devices.gpus", "domain.devices.hostDevices"]),
    ({"devices": {"gpus": []}, "ioThreads": {}}, {"nodeSelector": {}, "schedulerName": ""}, []),
]


@pytest.mark.parametrize(("domain", "spec", "paths"), CONFLICTS)
def test_conflicts(domain: Object, spec: Object, paths: list[str]) -> None:
    if not paths:
        of(vm(domain, **spec), FULL)
        return
    for status, prefix, words in (
        ({}, "spec.template.spec", "VM field(s) {} conflicts with selected instance type."),
        (STORED, "spec", "VMI conflicts with instancetype spec in fields: [{}]."),
    ):
        with pytest.raises(LauncherError) as raised:
            of(vm(domain, status, **spec), FULL, controllerrevisions=[revision("db-u1", OWN, FULL)])
        assert words.format(", ".join(f"{prefix}.{path}" for path in paths)) in str(raised.value)


def test_conflicts_of_annotations_and_of_what_memory_may_be() -> None:
    memory = {"guest": "1Gi", "maxGuest": "2Gi", "hugepages": {}}
    for domain, path in (({"memory": {"hugepages": {}}}, "hugepages"), ({"memory": {"maxGuest": "1Gi"}}, "maxGuest")):
        with pytest.raises(LauncherError, match=f"spec.template.spec.domain.memory.{path} conflicts"):
            of(vm(domain), {**SIZE, "memory": memory})
        of(vm(domain), SIZE)
    machine = vm()
    machine["spec"]["template"]["metadata"] = {"annotations": {"a": "1"}}
    with pytest.raises(LauncherError, match=r"VM field\(s\) annotations.a conflicts"):
        of(machine, {**SIZE, "annotations": {"a": "2"}})


def test_virt_api_looks_at_what_is_created_or_changed_and_nothing_else() -> None:
    preference = {"requirements": {"cpu": {"guest": 6}}}
    machine = vm(named={"instancetype": NAME, "preference": NAME})
    of(machine, preference=preference)
    halted = {**machine, "spec": {**machine["spec"], "runStrategy": "Halted"}}
    new = {**machine, "metadata": {"name": "db", "namespace": "shop"}}
    for changed in (halted, new):
        with pytest.raises(LauncherError, match="KubeVirt does not take shop/db: failure checking preference req"):
            of(changed, preference=preference)
        of(changed, preference={"requirements": {"cpu": {"guest": 4}, "memory": {"guest": "2Gi"}}})

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import EVEN_PARITY, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import (
    WorkloadError,
    kind_of,
    vmi_of,
)

from unit.plugins.module_utils._kubevirt.launcher.vms import machine

Object = dict[str, Any]


def new(domain: Object | None = None, devices: Object | None = None, **spec: Any) -> Object:
    """A VMI as a user writes it."""
    whole = {**(domain or {}), "devices": devices or {}}
    return {"metadata": {"name": "db", "namespace": "shop"}, "spec": {"domain": whole, **spec}}


def defaulted(item: Object, **configuration: Any) -> Any:
    return vmi_of(item, Configuration(**configuration))["spec"]


def test_a_vmi_that_the_cluster_has_keeps_the_defaults_of_its_time() -> None:
    old = machine()
    assert vmi_of(old, Configuration(cpu_model="Haswell", cpu_request="1")) == old


@pytest.mark.parametrize(
    ("architecture", "machine_type", "model"),
    [("", "q35", "host-model"), ("arm64", "virt", "host-passthrough"), ("s390x", "s390-ccw-virtio", "host-model")],
)
def test_architectures(architecture: str, machine_type: str, model: str) -> None:
    spec = defaulted(new(architecture=architecture))
    assert spec["architecture"] == (architecture or "amd64")
    assert (spec["domain"]["machine"]["type"], spec["domain"]["cpu"]["model"]) == (machine_type, model)


def test_what_is_said_stays() -> None:
    given = {
        "cpu": {"model": "Haswell", "cores": 2},
        "machine": {"type": "pc"},
        "memory": {"guest": "3Gi"},
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    }
    spec = defaulted(new(given, architecture="amd64", evictionStrategy="None"), cpu_model="Skylake", cpu_request="9")
    assert {name: spec["domain"][name] for name in given} == given
    assert spec["evictionStrategy"] == "None"


MEMORY: list[tuple[Object, str | None]] = [
    ({"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}}, "1Gi"),
    ({"resources": {"limits": {"memory": "2Gi"}}}, "2Gi"),
    ({"resources": {"requests": {"memory": "0"}, "limits": {"memory": "2Gi"}}}, "2Gi"),
    ({"memory": {"hugepages": {"pageSize": "2Mi"}}}, "2Mi"),
    ({}, None),
]


@pytest.mark.parametrize(("domain", "guest"), MEMORY)
def test_the_guest_s_memory(domain: Object, guest: str | None) -> None:
    assert defaulted(new(domain))["domain"]["memory"].get("guest") == guest


@pytest.mark.parametrize(
    ("resources", "sockets"),
    [({}, 1), ({"limits": {"cpu": "1500m"}}, 2), ({"requests": {"cpu": 3}, "limits": {"cpu": 4}}, 4)],
)
def test_the_topology(resources: Object, sockets: int) -> None:
    cpu = defaulted(new({"resources": resources}))["domain"]["cpu"]
    assert (cpu["sockets"], cpu["cores"], cpu["threads"]) == (sockets, 1, 1)


CPU_REQUESTS: list[tuple[Object, str | None, str | None]] = [
    ({"resources": {"limits": {"cpu": "2"}}}, None, "2"),
    ({}, "250m", "250m"),
    ({}, "0.1", None),
    ({"cpu": {"dedicatedCpuPlacement": True}}, "250m", None),
]


@pytest.mark.parametrize(("domain", "default", "requested"), CPU_REQUESTS)
def test_cpu_requests(domain: Object, default: str | None, requested: str | None) -> None:
    resources = defaulted(new(domain), cpu_request=default)["domain"]["resources"]
    assert resources["requests"].get("cpu") == requested


def test_the_network() -> None:
    spec = defaulted(new(), default_network_interface="masquerade")
    assert spec["domain"]["devices"]["interfaces"] == [{"name": "default", "masquerade": {}}]
    assert spec["networks"] == [{"name": "default", "pod": {}}]
    assert "networks" not in defaulted(new({}, {"autoattachPodInterface": False}))
    assert defaulted(new(networks=[{"name": "a"}]))["networks"] == [{"name": "a"}]


def test_enlightenments_bring_what_they_need() -> None:
    found = defaulted(new({"features": {"hyperv": {"synictimer": {}, "evmcs": {}, "ipi": {"enabled": False}}}}))
    states = found["domain"]["features"]["hyperv"]
    assert {name for name, state in states.items() if state["enabled"]} == {
        "synictimer",
        "synic",
        "vpindex",
        "evmcs",
        "vapic",
    }
    assert found["domain"]["cpu"]["features"] == [{"name": "vmx", "policy": "require"}]


def test_an_even_number_of_cpus_is_noted() -> None:
    item = new({"cpu": {"isolateEmulatorThread": True}})
    found = vmi_of(item, Configuration(emulator_even_parity=True))
    assert found["metadata"]["annotations"] == {EVEN_PARITY: ""}


def test_of_a_vm() -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": new()["spec"]}
    item = {"metadata": {"name": "db", "namespace": "shop"}, "spec": {"running": True, "template": template}}
    found = vmi_of(item, Configuration())
    assert kind_of(item) == "VirtualMachine"
    assert found["metadata"]["name"] == "db"
    assert found["metadata"]["labels"] == {"app": "db"}
    assert found["metadata"]["ownerReferences"][0]["kind"] == "VirtualMachine"


def test_of_a_replica_set_each_has_a_name_and_a_uid() -> None:
    item = {"metadata": {"name": "db"}, "spec": {"replicas": 2, "template": {"spec": new()["spec"]}}}
    found = [vmi_of(item, Configuration(), number)["metadata"] for number in (0, 1, 1)]
    assert [one["name"] for one in found] == ["db0", "db1", "db1"]
    assert found[0]["uid"] != found[1]["uid"] == found[2]["uid"]


@pytest.mark.parametrize(
    "item", [{}, {"metadata": {"name": "a"}, "spec": {"containers": []}}, {"spec": {"domain": {}}}]
)
def test_other_objects_are_refused(item: Object) -> None:
    with pytest.raises(WorkloadError, match="is expected"):
        kind_of(item)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    SupportContainer,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError, launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces

from unit.plugins.module_utils._kubevirt.launcher.vms import annotated, listed, machine

Object = dict[str, Any]
EXACT = {"cpu": {"cores": 2, "dedicatedCpuPlacement": True}}
DISKS = {
    "firmware": {"kernelBoot": {"container": {"image": "k:1"}}},
    "volumes": [{"name": "a", "containerDisk": {"image": "a:1"}}, {"name": "b", "emptyDisk": {"capacity": "1Gi"}}],
}


def spec(item: Object, lists: Any = None, **configuration: Any) -> Any:
    return launcher_pod(item, Configuration(**configuration), Namespaces(lists or {}).named("shop"))["spec"]


def names(containers: list[Object]) -> list[str]:
    return [container["name"] for container in containers]


def with_disks() -> Object:
    return machine({"firmware": DISKS["firmware"]}, volumes=DISKS["volumes"])


class TestContainers:
    def test_of_disks_and_kernel_beside_the_guest(self) -> None:
        found = spec(with_disks())
        assert names(found["containers"]) == ["compute", "volumea", "volumekernel-boot-volume"]
        assert names(found["initContainers"]) == [
            "guest-console-log",
            "container-disk-binary",
            "volumea-init",
            "volumekernel-boot-volume-init",
        ]
        assert found["containers"][2]["image"] == "k:1"

    def test_of_images_as_volumes(self) -> None:
        found = spec(with_disks(), feature_gates=frozenset({"ImageVolume"}))
        assert names(found["containers"]) == ["compute"]
        assert names(found["initContainers"]) == ["guest-console-log", "volumea", "volumekernel-boot-volume"]
        assert names(found["volumes"]) == ["a", "kernel-boot-volume", "launcher-volume"]

    @pytest.mark.parametrize(
        ("devices", "by_default", "logged"),
        [
            ({}, True, True),
            ({}, False, False),
            ({"logSerialConsole": True}, False, True),
            ({"logSerialConsole": False}, True, False),
            ({"autoattachSerialConsole": False, "logSerialConsole": True}, True, False),
        ],
    )
    def test_of_the_console(self, devices: Object, by_default: bool, logged: bool) -> None:
        found = spec(machine({}, devices), serial_console_log=by_default)["initContainers"]
        assert [container.get("restartPolicy") for container in found] == (["Always"] if logged else [])

    def test_of_shared_files(self) -> None:
        volumes = [
            {"name": "p", "containerPath": {"path": "/a"}},
            {"name": "u", "containerPath": {"path": "/b"}},
            {"name": "s", "secret": {}},
        ]
        item = machine({}, {"filesystems": [{"name": "p"}, {"name": "s"}]}, volumes=volumes)
        found = spec(annotated(item, hooks="[{}]"))["containers"]
        assert names(found) == ["compute", "virtiofs-s", "hook-sidecar-0", "virtiofs-p"]
        assert found[1]["resources"] == found[3]["resources"]

    def test_of_hooks_and_bindings(self) -> None:
        interfaces = [
            {"name": name, "binding": {"name": plugin}} for name, plugin in (("a", "p"), ("b", "p"), ("c", "q"))
        ]
        item = annotated(machine({}, {"interfaces": interfaces}), hooks='[{"image": "h:1", "pvc": {"name": "c"}}, {}]')
        found = spec(item, network_bindings={"p": {"sidecarImage": "b:1"}, "q": {}})
        assert [container.get("image") for container in found["containers"][1:]] == ["h:1", None, "b:1"]
        assert found["volumes"] == [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]


SIZES: list[tuple[Object, str, Object, Object]] = [
    # domain, container, requests, limits
    ({}, "guest-console-log", {"cpu": "5m", "memory": "35M"}, {"cpu": "15m", "memory": "60M"}),
    (EXACT, "guest-console-log", {"cpu": "15m", "memory": "60M"}, {"cpu": "15m", "memory": "60M"}),
    ({}, "volumea", {"cpu": "1m", "memory": "1M", "ephemeral-storage": "50M"}, {"cpu": "10m", "memory": "40M"}),
    (EXACT, "volumea", {"cpu": "10m", "memory": "40M", "ephemeral-storage": "50M"}, {"cpu": "10m", "memory": "40M"}),
    ({}, "container-disk-binary", {"cpu": "10m", "memory": "1M"}, {"cpu": "100m", "memory": "40M"}),
    (EXACT, "container-disk-binary", {"cpu": "10m", "memory": "40M"}, {"cpu": "10m", "memory": "40M"}),
    ({}, "virtiofs-a", {"cpu": "10m", "memory": "1M"}, {"cpu": "100m", "memory": "80M"}),
    (EXACT, "virtiofs-a", {"cpu": "100m", "memory": "80M"}, {"cpu": "100m", "memory": "80M"}),
    ({}, "hook-sidecar-0", {}, {}),
    (EXACT, "hook-sidecar-0", {"cpu": "200m", "memory": "64M"}, {"cpu": "200m", "memory": "64M"}),
]


@pytest.mark.parametrize(("domain", "name", "requests", "limits"), SIZES)
def test_sizes_of_containers(domain: Object, name: str, requests: Object, limits: Object) -> None:
    item = machine(domain, {"filesystems": [{"name": "a"}]}, volumes=DISKS["volumes"])
    found = spec(annotated(item, hooks="[{}]"))
    sizes = {one["name"]: one["resources"] for one in (*found["containers"], *found["initContainers"])}
    assert (sizes[name].get("requests", {}), sizes[name].get("limits", {})) == (requests, limits)


def test_sizes_by_configuration() -> None:
    given = {"sidecar": SupportContainer({"cpu": "7m", "memory": "0"}, {"memory": "70M", "example.com/a": 1})}
    found = spec(annotated(machine(), hooks="[{}]"), support_containers=given)["containers"][1]["resources"]
    assert found == {"requests": {"cpu": "7m", "memory": "70M"}, "limits": {"memory": "70M"}}


class TestVolumes:
    def test_those_that_tie_to_nodes(self) -> None:
        volumes = [
            {"name": "a", "persistentVolumeClaim": {"claimName": "x", "readOnly": True}},
            {"name": "b", "dataVolume": {"name": "y"}},
            {"name": "c", "ephemeral": {"persistentVolumeClaim": {"claimName": "z"}}},
            {"name": "d", "hostDisk": {"path": "/data/disk.img", "type": "Disk"}},
            {"name": "e", "persistentVolumeClaim": {"claimName": "v", "hotpluggable": True}},
            {"name": "f", "cloudInitNoCloud": {}},
        ]
        assert spec(machine(volumes=volumes))["volumes"] == [
            {"name": "a", "persistentVolumeClaim": {"claimName": "x", "readOnly": True}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "y"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "z"}},
            {"name": "d", "hostPath": {"path": "/data", "type": "Directory"}},
        ]

    @pytest.mark.parametrize(
        ("claims", "found"),
        [
            ([], None),
            ([listed("persistent-state-for-db")], "persistent-state-for-db"),
            ([listed("persistent-state-for-db", "other")], None),
        ],
    )
    def test_of_the_vm_s_state(self, claims: list[Object], found: str | None) -> None:
        volumes = spec(machine({}, {"tpm": {"persistent": True}}), {"pvcs": claims}).get("volumes", [])
        assert [volume["persistentVolumeClaim"]["claimName"] for volume in volumes] == ([found] if found else [])

    def test_of_the_vm_s_state_by_label(self) -> None:
        labelled = listed("new")
        labelled["metadata"]["labels"] = {"persistent-state-for": "db"}
        item = machine({"firmware": {"bootloader": {"efi": {"persistent": True}}}})
        lists = {"pvcs": [listed("persistent-state-for-db"), labelled]}
        assert spec(item, lists)["volumes"][0]["persistentVolumeClaim"]["claimName"] == "new"


class TestPlacement:
    def test_wishes_of_the_vm(self) -> None:
        found = spec(
            machine(nodeSelector={"a": "b"}, schedulerName="s", priorityClassName="p", terminationGracePeriodSeconds=0)
        )
        assert found["nodeSelector"]["a"] == "b"
        assert (found["schedulerName"], found["priorityClassName"]) == ("s", "p")
        assert (found["terminationGracePeriodSeconds"], found["restartPolicy"]) == (30, "Never")

    @pytest.mark.parametrize(("given", "hertz"), [(None, 2100), (1900, 1900)])
    def test_the_counter_s_frequency(self, given: int | None, hertz: int) -> None:
        label = "cpu-timer.node.kubevirt.io/tsc-frequency"
        frequencies = {"a": ("2500", "true"), "b": ("2100", "true"), "c": ("1800", "false"), "d": ("2000", "false")}
        nodes = [
            {"metadata": {"name": name, "labels": {label: frequency, "kubevirt.io/schedulable": schedulable}}}
            for name, (frequency, schedulable) in frequencies.items()
        ]
        item = machine({"features": {"hyperv": {"reenlightenment": {"enabled": True}}}})
        found = spec(item, {"nodes": nodes}, minimum_tsc_frequency=given)["nodeSelector"]
        assert found[f"scheduling.node.kubevirt.io/tsc-frequency-{hertz}"] == "true"

    def test_the_counter_s_frequency_of_busy_nodes_counts(self) -> None:
        label = "cpu-timer.node.kubevirt.io/tsc-frequency"
        lists = {
            "nodes": [{"metadata": {"name": "a", "labels": {label: "1800"}}}],
            "vmis": [listed("other", status={"nodeName": "a"})],
        }
        item = machine({"cpu": {"features": [{"name": "invtsc", "policy": "require"}]}})
        assert "scheduling.node.kubevirt.io/tsc-frequency-1800" in spec(item, lists)["nodeSelector"]


class TestLabels:
    def test_they_name_the_vm(self) -> None:
        item = machine(hostname="h")
        item["metadata"] |= {"name": "a.b", "labels": {"app": "x"}, "annotations": {"sidecar.istio.io/inject": "true"}}
        assert launcher_pod(item, Configuration(), Namespace())["metadata"]["labels"] == {
            "app": "x",
            "kubevirt.io": "virt-launcher",
            "kubevirt.io/created-by": "u1",
            "vm.kubevirt.io/name": "h",
            "vmi.kubevirt.io/id": "a.b",
            "sidecar.istio.io/inject": "true",
        }

    def test_a_name_that_is_too_long(self) -> None:
        item = machine()
        item["metadata"]["name"] = "a-name-longer-than-a-label-may-be-so-that-it-has-to-be-shortened-by-someone"
        labels = launcher_pod(item, Configuration(), Namespace())["metadata"]["labels"]
        assert labels["vm.kubevirt.io/name"] == item["metadata"]["name"][:63]
        assert labels["vmi.kubevirt.io/id"] == "a-name-longer-than-a-label-may-be-so-that-it-has-to-be-cc0f6952"


class TestRefusals:
    def test_devices_that_are_not_permitted(self) -> None:
        item = machine({}, {"hostDevices": [{"name": "a", "deviceName": "v/a"}]})
        with pytest.raises(LauncherError, match="v/a is not among the permittedHostDevices"):
            spec(item, permitted_devices=frozenset())
        assert spec(item, permitted_devices=frozenset({"v/a"}))

    @pytest.mark.parametrize("text", ["", "{", '["a"]', "3"])
    def test_hooks_that_cannot_be_read(self, text: str) -> None:
        with pytest.raises(LauncherError, match="is no JSON list of objects"):
            spec(annotated(machine(), hooks=text))

    def test_an_unknown_binding(self) -> None:
        with pytest.raises(LauncherError, match="has no network binding 'p'"):
            spec(machine({}, {"interfaces": [{"name": "a", "binding": {"name": "p"}}]}))


def test_the_image_is_that_of_other_launchers() -> None:
    other = listed("other", spec={"containers": [{"name": "compute", "image": "launcher:9"}]})
    other["metadata"]["labels"] = {"kubevirt.io": "virt-launcher"}
    assert spec(machine(), {"pods": [listed("x", spec={}), other]})["containers"][0]["image"] == "launcher:9"


@pytest.mark.parametrize(
    ("emulated", "model", "found"),
    [
        (False, None, {"tun", "vhost-net", "kvm"}),
        (False, "e1000e", {"tun", "kvm"}),
        (True, None, {"tun"}),
    ],
)
def test_devices_of_the_hypervisor(emulated: bool, model: str | None, found: set[str]) -> None:
    item = machine({}, {"interfaces": [{"name": "a", "masquerade": {}, "model": model}]})
    limits = spec(item, use_emulation=emulated)["containers"][0]["resources"]["limits"]
    assert {name.removeprefix("devices.kubevirt.io/") for name in limits} == found


def test_rarer_devices() -> None:
    devices = {"autoattachVSOCK": True, "autoattachPodInterface": False, "disks": [{"lun": {"reservation": True}}]}
    limits = spec(machine({"launchSecurity": {"sev": {}}}, devices), hypervisor="hyperv-direct")["containers"][0]
    names = {name.removeprefix("devices.kubevirt.io/") for name in limits["resources"]["limits"]}
    assert names == {"mshv", "vhost-vsock", "pr-helper", "sev"}

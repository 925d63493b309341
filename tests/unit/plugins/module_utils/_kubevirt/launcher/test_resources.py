# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import EVEN_PARITY, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.overhead import memory_overhead
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.resources import compute_resources
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity

from unit.plugins.module_utils._kubevirt.launcher.vms import listed, machine

Object = dict[str, Any]
GI = 2**30


def resources(item: Object, lists: Any = None, **configuration: Any) -> tuple[Object, Object]:
    """Requests and limits; of memory what is beyond the overhead, in bytes."""
    settings = Configuration(**configuration)
    found = compute_resources(item, settings, Namespaces(lists or {}).named("shop"))
    overhead = memory_overhead(item, settings)
    for side in ("requests", "limits"):
        if "memory" in found[side]:
            found[side]["memory"] = (quantity.parse(found[side]["memory"]) - overhead) // 10**9
    return found["requests"], found["limits"]


MEMORY: list[tuple[Object, int, int | None, int | None]] = [
    # domain, overcommit, requested, limit
    ({"memory": {"guest": "1Gi"}}, 100, GI, None),
    ({"memory": {"guest": "1Gi"}}, 150, GI * 100 // 150, None),
    ({"memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "2Gi"}}}, 150, 2 * GI, None),
    ({"memory": {"guest": "1Gi"}, "resources": {"limits": {"memory": "2Gi"}}}, 150, 2 * GI, 2 * GI),
    ({"memory": {}, "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}}, 100, GI, 2 * GI),
    ({"memory": {"guest": "1Gi"}, "cpu": {"cores": 2, "dedicatedCpuPlacement": True}}, 100, GI, GI),
    ({"memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}}, 100, 0, None),
    (
        {
            "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}},
            "resources": {"requests": {"memory": "3Gi"}, "limits": {"memory": "4Gi"}},
        },
        100,
        2 * GI,
        3 * GI,
    ),
]


@pytest.mark.parametrize(("domain", "overcommit", "requested", "limit"), MEMORY)
def test_memory(domain: Object, overcommit: int, requested: int | None, limit: int | None) -> None:
    requests, limits = resources(machine(domain), memory_overcommit=overcommit)
    assert (requests.get("memory"), limits.get("memory")) == (requested, limit)


def test_an_overhead_that_is_not_requested() -> None:
    found = compute_resources(
        machine({"resources": {"overcommitGuestOverhead": True, "limits": {"memory": "1Gi"}}}),
        Configuration(),
        Namespace(),
    )
    assert found["requests"]["memory"] == "1Gi"
    assert quantity.parse(found["limits"]["memory"]) > quantity.parse("1Gi")


CPUS: list[tuple[Object, int, str | None, str | None]] = [
    # domain, allocation ratio, requested, limit
    ({}, 10, "100m", None),
    ({"cpu": {"cores": 4, "sockets": 2}}, 10, "800m", None),
    ({"cpu": {"cores": 4, "sockets": 4}}, 10, "1600m", None),
    ({"cpu": {"cores": 1}}, 7, "142857143n", None),
    ({"cpu": {"cores": 3}}, 1, "3", None),
    ({"cpu": {"cores": 2}, "ioThreads": {"supplementalPoolThreadCount": 3}}, 10, "500m", None),
    ({"cpu": {"cores": 2}, "resources": {"requests": {"cpu": "1"}}}, 10, "1", None),
    ({"cpu": {"cores": 2, "dedicatedCpuPlacement": True}}, 10, "2", "2"),
    ({"cpu": {"cores": 2, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}}, 10, "3", "3"),
    ({"cpu": {"dedicatedCpuPlacement": True}, "resources": {"limits": {"cpu": "4"}}}, 10, None, "4"),
]


@pytest.mark.parametrize(("domain", "ratio", "requested", "limit"), CPUS)
def test_cpus(domain: Object, ratio: int, requested: str | None, limit: str | None) -> None:
    requests, limits = resources(machine(domain), cpu_allocation_ratio=ratio)
    assert (requests.get("cpu"), limits.get("cpu")) == (requested, limit)


@pytest.mark.parametrize(
    ("cores", "policy", "threads", "total"),
    [(2, None, 0, "4"), (3, None, 0, "4"), (2, "supplementalPool", 3, "7"), (2, "auto", 3, "6")],
)
def test_an_even_number_of_dedicated_cpus(cores: int, policy: str | None, threads: int, total: str) -> None:
    cpu = {"cores": cores, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    item = machine({"cpu": cpu, "ioThreadsPolicy": policy, "ioThreads": {"supplementalPoolThreadCount": threads}})
    item["metadata"]["annotations"] = {EVEN_PARITY: ""}
    assert resources(item)[1]["cpu"] == total


def test_devices_of_the_vm_itself_win() -> None:
    devices = {"gpus": [{"name": "a", "deviceName": "v/gpu"}, {"name": "b", "deviceName": "v/gpu"}]}
    requests, limits = resources(machine({}, devices))
    assert requests["v/gpu"] == limits["v/gpu"] == "2"
    requests, limits = resources(machine({"resources": {"limits": {"v/gpu": "5"}}}, devices))
    assert (requests["v/gpu"], limits["v/gpu"]) == ("2", "5")


def test_ephemeral_storage_is_added() -> None:
    requests, limits = resources(machine({"resources": {"limits": {"ephemeral-storage": "1G"}}}))
    assert (requests["ephemeral-storage"], limits["ephemeral-storage"]) == ("50M", "1050M")


QUOTA = {"resourcequotas": [listed("q", spec={"hard": {"limits.memory": "9Gi", "limits.cpu": "9"}})]}
RATIO = "alpha.kubevirt.io/auto-memory-limits-ratio"


@pytest.mark.parametrize(
    ("label", "ratio"), [(None, 2.0), ("1.5", 1.5), ("0.5", 2.0), ("much", 2.0), ("inf", 2.0), ("nan", 2.0)]
)
def test_a_quota_of_limits(label: str | None, ratio: float) -> None:
    namespace = {"metadata": {"name": "shop", "labels": {RATIO: label} if label else {}}}
    item = machine({"cpu": {"cores": 3}})
    found = compute_resources(item, Configuration(), Namespaces({**QUOTA, "namespaces": [namespace]}).named("shop"))
    requested = quantity.units(quantity.parse(found["requests"]["memory"]))
    assert quantity.units(quantity.parse(found["limits"]["memory"])) == int(requested * ratio)
    assert found["limits"]["cpu"] == "3"


def test_a_quota_of_another_namespace_or_a_limit_of_its_own() -> None:
    elsewhere = {"resourcequotas": [listed("q", "other", spec=QUOTA["resourcequotas"][0]["spec"])]}
    assert "cpu" not in resources(machine(), elsewhere)[1]
    own = machine({"resources": {"limits": {"cpu": "7"}}})
    assert resources(own, QUOTA)[1]["cpu"] == "7"


@pytest.mark.parametrize(("labels", "limited"), [({"a": "b"}, True), ({"a": "c"}, False)])
def test_cpu_limits_by_the_namespace_s_labels(labels: dict[str, str], limited: bool) -> None:
    lists = {"namespaces": [{"metadata": {"name": "shop", "labels": labels}}]}
    found = resources(machine(), lists, auto_cpu_limit_namespaces={"matchLabels": {"a": "b"}})
    assert ("cpu" in found[1]) is limited


def test_devices_by_claim_need_their_gate() -> None:
    item = machine({}, {"gpus": [{"name": "g", "claimName": "c", "requestName": "r"}]})
    assert "claims" not in compute_resources(item, Configuration(), Namespace())
    gate = Configuration(feature_gates=frozenset({"GPUsWithDRA"}))
    assert compute_resources(item, gate, Namespace())["claims"] == [{"name": "c", "request": "r"}]


def definition(name: str, device: str = "", namespace: str = "shop") -> Object:
    annotations = {"k8s.v1.cni.cncf.io/resourceName": device} if device else {}
    return {"metadata": {"namespace": namespace, "name": name, "annotations": annotations}}


DEFINITIONS = [
    definition("blue"),
    definition("red", "vendor.com/vf"),
    definition("red", "vendor.com/other", "nets"),
    definition("green", "vendor.com/vf"),
]
NETWORKS: list[tuple[list[str], Object]] = [
    (["blue"], {}),
    (["red"], {"vendor.com/vf": "1"}),
    (["red", "green"], {"vendor.com/vf": "2"}),
    (["red", "red"], {"vendor.com/vf": "2"}),
    (["shop/red", "nets/red"], {"vendor.com/vf": "1", "vendor.com/other": "1"}),
    (["unknown", "nets/blue"], {}),
]


@pytest.mark.parametrize(("names", "expected"), NETWORKS)
def test_devices_of_networks(names: list[str], expected: Object) -> None:
    networks = [{"name": f"n{number}", "multus": {"networkName": name}} for number, name in enumerate(names)]
    item = machine(networks=[{"name": "default", "pod": {}}, *networks])
    for found in resources(item, {"networkattachmentdefinitions": DEFINITIONS}):
        assert {name: amount for name, amount in found.items() if name.startswith("vendor.com/")} == expected
    gate = frozenset({"ExternalNetResourceInjection"})
    for found in resources(item, {"networkattachmentdefinitions": DEFINITIONS}, feature_gates=gate):
        assert not any(name.startswith("vendor.com/") for name in found)

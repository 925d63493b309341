# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes of target pods. That these are KubeVirt's is proved by tests/integration/test_migration_targets.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import rendered_containers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.target_resources import resized

from unit.plugins.module_utils._kubevirt.machines import vmi

Object = dict[str, Any]
KNOWN, OLDER = Configuration(version="v1.8.4"), Configuration(version="v1.7.0")
TOPOLOGY = {"cores": 1, "sockets": 2, "threads": 1}
# What an older release asked for the guest below as it was: as this one does, but for the memory.
OTHER_OVERHEAD = "1350Mi"


def guest(*, sockets: int = 2, memory: str = "1Gi", **domain: Any) -> Object:
    """One that was started with two sockets and 1Gi, whatever it is to have now."""
    return vmi(
        domain={"cpu": {**TOPOLOGY, "sockets": sockets}, "memory": {"guest": memory, "maxGuest": "4Gi"}, **domain},
        status={"currentCPUTopology": TOPOLOGY, "memory": {"guestRequested": "1Gi"}},
    )


def source(machine: Object | None = None, memory: str = "", **more: Object) -> Object:
    """The spec of the pod that was made for a guest."""
    compute = rendered_containers(machine or guest(), KNOWN, Namespace())["containers"]["compute"]["resources"]
    if memory:
        compute = {**compute, "requests": {**compute["requests"], "memory": memory}}
    return {"containers": [{"name": "compute", "image": "launcher", "resources": compute}, *more.values()]}


def requests(machine: Object, spec: Object, configuration: Configuration, **lists: Any) -> Object:
    found: Object = resized(spec, machine, configuration, Namespaces(lists).named("shop"))["containers"][0][
        "resources"
    ]["requests"]
    return found


@pytest.mark.parametrize("configuration", [KNOWN, OLDER, Configuration()])
def test_plugged_cpus_arrive(configuration: Configuration) -> None:
    assert requests(guest(), source(), configuration)["cpu"] == "200m"
    assert requests(guest(sockets=8), source(), configuration)["cpu"] == "800m"


@pytest.mark.parametrize("own", [None, "1Gi"])
def test_plugged_memory_arrives(own: str | None) -> None:
    grown: Object = {} if own is None else {"resources": {"requests": {"memory": "2Gi"}}}
    first: Object = {} if own is None else {"resources": {"requests": {"memory": own}}}
    before, now = guest(**first), guest(memory="2Gi", **grown)
    expected = rendered_containers(now, KNOWN, Namespace())["containers"]["compute"]["resources"]["requests"]
    assert requests(now, source(before), KNOWN) == expected
    assert requests(now, source(before), OLDER) == expected
    # Page tables for what the VMI itself requests take two of a thousand bytes.
    more = "2374Mi" if own is None else "2376Mi"
    assert requests(now, source(before, OTHER_OVERHEAD), OLDER)["memory"] == more


def test_changed_ratios_count_where_the_rules_are_known() -> None:
    changed = Configuration(version="v1.8.4", cpu_allocation_ratio=4, memory_overcommit=200)
    found = requests(guest(), source(), changed)
    assert found["cpu"] == "500m"
    assert found == rendered_containers(guest(), changed, Namespace())["containers"]["compute"]["resources"]["requests"]


def test_another_release_keeps_its_own_overhead() -> None:
    assert requests(guest(), source(memory=OTHER_OVERHEAD), OLDER)["memory"] == OTHER_OVERHEAD
    assert requests(guest(), source(memory=OTHER_OVERHEAD), KNOWN)["memory"] != OTHER_OVERHEAD


def test_what_others_have_injected_stays() -> None:
    sidecar = {"name": "mesh", "resources": {"requests": {"cpu": "1"}}}
    assert resized(source(mesh=sidecar), guest(), KNOWN, Namespace())["containers"][1] == sidecar


@pytest.mark.parametrize("configuration", [KNOWN, OLDER])
def test_a_quota_that_is_younger_than_the_pod_gives_it_limits(configuration: Configuration) -> None:
    quota = {"metadata": {"namespace": "shop", "name": "q"}, "spec": {"hard": {"limits.cpu": "9"}}}
    found = resized(source(), guest(), configuration, Namespaces({"resourcequotas": [quota]}).named("shop"))[
        "containers"
    ][0]["resources"]
    assert found["limits"]["cpu"] == "2"


def test_all_stays_where_kubevirt_could_make_no_pod() -> None:
    spec, device = source(), {"name": "g", "deviceName": "vendor.example/gpu"}
    strict = Configuration(version="v1.8.4", permitted_devices=frozenset())
    broken = guest(sockets=8, devices={"gpus": [device]})
    broken["metadata"]["annotations"] = {"hooks.kubevirt.io/hookSidecars": "no list"}
    assert resized(spec, broken, strict, Namespace()) == {}


def test_containers_come_and_go_with_the_configuration() -> None:
    silent = Configuration(version="v1.8.4", serial_console_log=False)
    spec = {**source(), "initContainers": [{"name": "mesh"}]}
    with_log = {**spec, **resized(spec, guest(), KNOWN, Namespace())}
    assert [entry["name"] for entry in with_log["initContainers"]] == ["mesh", "guest-console-log"]
    assert with_log["initContainers"][1]["restartPolicy"] == "Always"
    assert [entry["name"] for entry in resized(with_log, guest(), silent, Namespace())["initContainers"]] == ["mesh"]
    assert [entry["name"] for entry in resized(spec, guest(), OLDER, Namespace())["initContainers"]] == ["mesh"]


CARD = "vendor.com/vf"


def networked(*names: str) -> Object:
    machine = guest()
    machine["spec"]["networks"] = [{"name": name, "multus": {"networkName": name}} for name in names]
    return machine


def definition(name: str, device: str) -> Object:
    annotations = {"k8s.v1.cni.cncf.io/resourceName": device}
    return {"metadata": {"namespace": "shop", "name": name, "annotations": annotations}}


RED = definition("red", CARD)
CARDS: list[tuple[list[str], list[Object], str, str | None]] = [
    # networks, definitions that are known, what the running pod has, what the next one has
    (["red"], [RED], "1", "1"),
    (["red", "blue"], [RED, definition("blue", CARD)], "1", "2"),
    (["red"], [RED], "2", "1"),
    (["red"], [], "1", "1"),
    (["red", "blue"], [RED], "2", "2"),
    (["red", "blue"], [RED], "0", "1"),
    ([], [RED], "1", None),
]


@pytest.mark.parametrize(("names", "known", "before", "after"), CARDS)
def test_devices_of_networks_stay_where_definitions_are_not_known(
    names: list[str], known: list[Object], before: str, after: str | None
) -> None:
    spec = source()
    for side in ("requests", "limits"):
        spec["containers"][0]["resources"][side][CARD] = before
    namespace = Namespaces({"networkattachmentdefinitions": known}).named("shop")
    found = resized(spec, networked(*names), KNOWN, namespace)["containers"][0]["resources"]
    assert [found[side].get(CARD) for side in ("requests", "limits")] == [after, after]


def test_devices_of_networks_stay_with_another_release() -> None:
    spec = source()
    spec["containers"][0]["resources"]["requests"][CARD] = "1"
    for known in ([], [RED]):
        assert requests(networked("red"), spec, OLDER, networkattachmentdefinitions=known)[CARD] == "1"


def test_kubevirts_own_devices_follow_its_configuration() -> None:
    emulated = Configuration(version="v1.8.4", use_emulation=True)
    kvm = "devices.kubevirt.io/kvm"
    assert kvm in source()["containers"][0]["resources"]["requests"]
    assert kvm not in requests(networked("red"), source(), emulated)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of VMs with instance types and preferences, and why some do not start, against the real virt-controller."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import NextPod, pod_of_start
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

from integration.launcher import cluster, instance_types
from integration.launcher.cases import Surroundings
from integration.launcher.comparing import differences, view
from integration.launcher.instance_types import PREFERENCE, TYPE, item, objects, vm, vms
from integration.launcher.lists import read
from testbed.api import Api, ApiError, Object, object_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

GIVEN = Surroundings("instance types", instance_types.CONFIGURATION)
CLUSTER_KINDS = ("clusterinstancetypes", "clusterpreferences")
SMALL, LARGE = instance_types.TYPES["one"], instance_types.TYPES["many"]


@pytest.fixture(scope="module")
def where(testbed: RunningTestbed) -> Iterator[str]:
    """A namespace of a cluster that has the types and preferences, and no others."""
    with cluster.cluster(testbed.api), cluster.configured(testbed, GIVEN), cluster.namespace(testbed, GIVEN) as name:
        made = objects(name)
        for one in made:
            testbed.api.apply(one)
        yield name
        for one in made:
            testbed.api.delete(object_path(one))


def test_pods_are_as_foretold(testbed: RunningTestbed, where: str) -> None:
    manifests = list(vms(where))
    assert len(manifests) > 60
    before = read(testbed.api)
    cluster.start(testbed.api, manifests)
    after = read(testbed.api)
    # KubeVirt makes claims for the state of some VMs before it makes their pods.
    before["pvcs"] = after["pvcs"]
    as_projected = {name: [BY_NAME[name].project(one) for one in items] for name, items in after.items()}
    wrong = []
    for manifest in manifests:
        for source, lists, asked in (
            ("the manifest", before, manifest),
            ("the cluster", after, title(manifest)),
            ("a snapshot", as_projected, title(manifest)),
        ):
            found = compared(foretold(lists, asked), after, title(manifest))
            wrong += [f"{title(manifest)}, by {source}: {line}" for line in found]
    assert not wrong, "\n".join(wrong)


def foretold(lists: Any, asked: Any) -> NextPod:
    found = pod_of_start(asked, surroundings(lists))
    assert not [phrase for phrase in found.open if "instancetype" in phrase or "preference" in phrase]
    return found


def compared(said: NextPod, lists: Any, name: str) -> list[str]:
    """Differences to the pod of the VMI that runs."""
    workloads = Workloads(lists)
    vmi = workloads.vmi(name)
    assert vmi
    pod = workloads.source_pod(vmi)
    assert pod
    # Made up, as the VMI did not exist.
    labels = {**said.pod["metadata"]["labels"], "kubevirt.io/created-by": vmi["metadata"]["uid"]}
    expected = {**said.pod, "metadata": {**said.pod["metadata"], "labels": labels}}
    return differences(view(expected, images=False), view(pod, images=False))


def test_what_is_stored_with_a_vm_counts(testbed: RunningTestbed, where: str) -> None:
    """Though the type has changed since, until the VM names another one."""
    api = testbed.api
    for name, spec in (("changing", SMALL), ("other", SMALL)):
        api.apply(item(TYPE, name, spec, where))
    stopped = vm("stored", where, {}, instancetype={"name": "changing", "kind": TYPE}, runStrategy="Halted")
    moved = vm("moved", where, {}, instancetype={"name": "other", "kind": TYPE}, runStrategy="Halted")
    for one in (stopped, moved):
        api.create(object_path(one).rsplit("/", 1)[0], one)
        wait_for("the revision", partial(has_revision, api, one), 60)
    api.delete(object_path(item(TYPE, "changing", {}, where)))
    for name in ("changing", "third"):
        api.apply(item(TYPE, name, LARGE, where))
    # As long as virt-controller has not seen that, the VM's status still names what was stored before.
    before = read(api)
    for one in before["vms"]:
        if one["metadata"]["name"] == "moved":
            one["spec"]["instancetype"]["name"] = "third"
    said = {title(one): foretold(before, title(one)) for one in (stopped, moved)}
    for one, name in ((stopped, "changing"), (moved, "third")):
        change = {"spec": {"runStrategy": "Always", "instancetype": {"name": name}}}
        api.patch(object_path(one), change)
        wait_for("the pod", partial(has_pod, api, one), 60)
    after = read(api)
    for name, found in said.items():
        assert compared(found, after, name) == []


def has_revision(api: Api, one: Object) -> bool:
    reference = api.get(object_path(one)).get("status", {}).get("instancetypeRef", {})
    return bool(reference.get("controllerRevisionRef"))


def has_pod(api: Api, one: Object) -> bool:
    lists = read(api)
    vmi = Workloads(lists).vmi(title(one))
    return vmi is not None and Workloads(lists).source_pod(vmi) is not None


# What a VM names that virt-controller then does not find, or that is made only when the VM is there.
FAILURES: dict[str, tuple[Object, Object]] = {
    "no-type": ({}, {"instancetype": {"name": "nowhere"}}),
    "no-own-type": ({}, {"instancetype": {"name": "nowhere", "kind": "virtualmachineinstancetypes"}}),
    "no-preference": (instance_types.OWN_SIZE, {"preference": {"name": "nowhere"}}),
    "no-own-preference": (instance_types.OWN_SIZE, {"preference": {"name": "nowhere", "kind": PREFERENCE}}),
    "strange-type": ({}, {"instancetype": {"name": "one", "kind": "VirtualMachine"}}),
    "strange-preference": (instance_types.OWN_SIZE, {"preference": {"name": "any", "kind": "VirtualMachine"}}),
    "no-revision": ({}, {"instancetype": {"name": "one", "revisionName": "nowhere"}}),
    "guest": ({"memory": {"guest": "1Gi"}}, {"instancetype": {"name": "later", "kind": TYPE}}),
    "much": (
        {
            "cpu": {"cores": 2, "threads": 1, "sockets": 1, "model": "Haswell", "dedicatedCpuPlacement": True},
            "memory": {"hugepages": {"pageSize": "2Mi"}, "guest": "64Mi"},
            "ioThreadsPolicy": "auto",
        },
        {"instancetype": {"name": "later-all", "kind": TYPE}},
    ),
    "requests": (
        {"resources": {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"memory": "1Gi", "cpu": "1"}}},
        {"instancetype": {"name": "later", "kind": TYPE}},
    ),
}
LATER: dict[str, Object] = {
    "later": SMALL,
    "later-all": {
        "cpu": {"guest": 1, "model": "Skylake", "dedicatedCPUPlacement": False, "isolateEmulatorThread": False},
        "memory": {"guest": "1Gi", "hugepages": {"pageSize": "1Gi"}},
        "ioThreadsPolicy": "shared",
        "nodeSelector": {"pool": "large"},
    },
}


def test_why_vms_do_not_start(testbed: RunningTestbed, where: str) -> None:
    api = testbed.api
    assert not {"later", "later-all"} & names(api, where)
    failing = [vm(name, where, domain, **more) for name, (domain, more) in FAILURES.items()]
    for one in failing:
        api.create(object_path(one).rsplit("/", 1)[0], one)
    # virt-controller changes a VM before it looks for its type, which virt-api would then refuse.
    wait_for("all to be looked at", lambda: all(failure(api, one) for one in failing), 60)
    for name, spec in LATER.items():
        api.apply(item(TYPE, name, spec, where))
    wrong = []
    for one in failing:
        wait_for(f"the failure of {title(one)}", partial(has_settled, api, one), 60)
        message = failure(api, one)
        words = message.rsplit("controllerRevisions: ", 1)[-1]
        with pytest.raises(LauncherError) as raised:
            pod_of_start(title(one), surroundings(read(api)))
        wrong += [] if words in str(raised.value) else [f"{title(one)}: said {raised.value}, is {message}"]
    assert not wrong, "\n".join(wrong)


def names(api: Api, where: str) -> set[str]:
    path = object_path(item(TYPE, "any", {}, where)).rsplit("/", 1)[0]
    return {one["metadata"]["name"] for one in api.items(path)}


def has_settled(api: Api, one: Object) -> bool:
    """Once it does not only miss what is made when it is there already."""
    message = failure(api, one)
    return bool(message) and not any(f'"{name}" not found' in message for name in LATER)


def failure(api: Api, one: Object) -> str:
    conditions = api.get(object_path(one)).get("status", {}).get("conditions") or ()
    return next((str(entry["message"]) for entry in conditions if entry["type"] == "Failure"), "")


DEMANDING: Object = {"requirements": {"cpu": {"guest": 6}, "memory": {"guest": "2Gi"}}}
SPREAD: Object = {"cpu": {"preferredCPUTopology": "spread"}}
# What virt-api refuses: a preference, and the VM.
REFUSED: dict[str, tuple[Object, Object, Object]] = {
    "type-cpus": (DEMANDING, {}, {"instancetype": {"name": "overcommitted"}}),
    "type-memory": ({"requirements": {"memory": {"guest": "8Gi"}}}, {}, {"instancetype": {"name": "overcommitted"}}),
    "architecture": ({"requirements": {"architecture": "arm64"}}, {}, {"instancetype": {"name": "one"}}),
    "sockets": (DEMANDING, {"cpu": {"sockets": 2}, "memory": {"guest": "4Gi"}}, {}),
    "cores": (
        {**DEMANDING, "cpu": {"preferredCPUTopology": "cores"}},
        {"cpu": {"cores": 2}, "memory": {"guest": "4Gi"}},
        {},
    ),
    "any": (
        {**DEMANDING, "cpu": {"preferredCPUTopology": "preferAny"}},
        {"cpu": {"cores": 2, "sockets": 2, "threads": 1}, "memory": {"guest": "4Gi"}},
        {},
    ),
    "spread": ({**DEMANDING, **SPREAD}, {"cpu": {"cores": 2, "sockets": 2}, "memory": {"guest": "4Gi"}}, {}),
    "memory": ({"requirements": {"memory": {"guest": "8Gi"}}}, {"memory": {"guest": "4Gi"}}, {}),
    "uneven": (SPREAD, {}, {"instancetype": {"name": "one"}}),
    "uneven-threads": (
        {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "CoresThreads"}}},
        {},
        {"instancetype": {"name": "one"}},
    ),
    "uneven-all": (
        {"cpu": {"preferredCPUTopology": "spread", "spreadOptions": {"across": "SocketsCoresThreads", "ratio": 4}}},
        {},
        {"instancetype": {"name": "overcommitted"}},
    ),
    "conflict": ({}, {"memory": {"guest": "1Gi"}}, {"instancetype": {"name": "one"}}),
}


def test_what_virt_api_refuses(testbed: RunningTestbed, where: str) -> None:
    api, wrong = testbed.api, []
    for name, (preference, domain, more) in REFUSED.items():
        api.apply(item(PREFERENCE, f"refused-{name}", preference, where))
        named = {**more, "preference": {"name": f"refused-{name}", "kind": PREFERENCE}}
        one = vm(name, where, domain, **named)
        with pytest.raises(ApiError) as refused:
            api.create(object_path(one).rsplit("/", 1)[0], one)
        with pytest.raises(LauncherError) as raised:
            pod_of_start(one, surroundings(read(api)))
        words = str(raised.value).split(": ", 1)[1].rsplit(". ", 1)[0]
        wrong += [] if words in str(refused.value) else [f"{name}: said {words}, is {refused.value}"]
    assert not wrong, "\n".join(wrong)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Target pods of migrations: what the collection foretells, against what virt-controller makes, field for field."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod

from integration.clusters import KUBEVIRT, MIGRATIONS, UNSCHEDULABLE_TIMEOUT, VMIS, loaded
from integration.configured import ALL_AT_ONCE, configure, configured
from integration.launcher.cluster import network
from integration.migration import guests, state
from integration.migration.comparing import Foresight, differences, read
from integration.migration.guests import VM, Guest, objects
from integration.migration.hosts import hosts
from integration.migration.target_pods import watched_target_pods
from testbed.api import Api, Object, object_path, plural, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios.generator.storage import storage_classes
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

NAMESPACE = "targets"
GUESTS = (*guests.GUESTS, *state.GUESTS)
FEWEST = 90
FEWEST_TWICE = 12
TIMEOUT = 300.0
PARALLEL = 4
VIRT_HANDLER = "system:serviceaccount:kubevirt:kubevirt-handler"
# Guests for which KubeVirt can make no target pod as soon as virt-handler reports this.
STUCK = {
    "alone": {"selinuxContext": ""},
    "labelled": {"selinuxContext": "s0:c1"},
}
# What each pod gets of the class that KubeVirt is configured with.
RUNTIME_CLASSES: dict[str, Object] = {
    "boxed": {
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"pool": "vms"},
            "tolerations": [{"key": "boxed", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
    "light": {
        "overhead": {"podFixed": {"memory": "10Mi"}},
        "scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    },
}
CONFIGURATION = {
    "migrations": ALL_AT_ONCE,
    "defaultRuntimeClass": "boxed",
    "developerConfiguration": {"featureGates": ["HypervStrictCheck", "CPUManager", "ContainerPathVolumes"]},
}
# What an administrator may change while VMs run; it counts for the next pod of each.
CHANGED = {
    "migrations": ALL_AT_ONCE,
    "defaultRuntimeClass": "light",
    "virtualMachineOptions": {"disableSerialConsoleLog": {}},
    "developerConfiguration": {
        "cpuAllocationRatio": 4,
        "memoryOvercommit": 150,
        "featureGates": ["CPUManager", "ContainerPathVolumes"],
        "nodeSelectors": {"kubernetes.io/os": "linux", "pool": "vms"},
    },
}
IMAGE_VOLUMES = {"migrations": ALL_AT_ONCE, "developerConfiguration": {"featureGates": ["ImageVolume"]}}


@dataclass
class Lab:
    api: Api

    def vmis(self) -> dict[str, Object]:
        """By the name of their guest."""
        found = self.api.items(resource_path(KUBEVIRT, VMIS, NAMESPACE))
        return {vmi["metadata"]["labels"]["app"]: vmi for vmi in found}

    def migrations(self) -> list[Object]:
        return self.api.items(resource_path(KUBEVIRT, MIGRATIONS, NAMESPACE))

    def migrate(self, vmi: Object, added: Mapping[str, str]) -> Object:
        name = vmi["metadata"]["name"]
        return self.api.create(
            resource_path(KUBEVIRT, MIGRATIONS, NAMESPACE),
            {
                "apiVersion": KUBEVIRT,
                "kind": "VirtualMachineInstanceMigration",
                "metadata": {
                    "name": f"{name}-{uuid.uuid4().hex[:8]}",
                    "namespace": NAMESPACE,
                    # Some pods find no node, which is of no concern here: they are not to be waited for.
                    "annotations": {UNSCHEDULABLE_TIMEOUT: "1"},
                },
                "spec": {"vmiName": name, "addedNodeSelector": dict(added)},
            },
        )

    def report(self, guest: str, status: Object) -> None:
        """Patch the status of a VMI, as virt-handler would."""
        if status:
            name = self.vmis()[guest]["metadata"]["name"]
            with Api(self.api.kubeconfig, impersonate=VIRT_HANDLER) as api:
                api.patch(resource_path(KUBEVIRT, VMIS, NAMESPACE, name), {"status": status})

    def rest(self) -> None:
        """Wait until no migration is under way."""

        def resting() -> bool:
            return all(one.get("status", {}).get("phase") in ("Succeeded", "Failed") for one in self.migrations())

        wait_for("the end of all migrations", resting, TIMEOUT)


@pytest.fixture(scope="module")
def lab(testbed: RunningTestbed) -> Iterator[Lab]:
    with runtime_classes(testbed.api), configured(testbed.api, CONFIGURATION), loaded(testbed.api, scenario(), TIMEOUT):
        yield Lab(testbed.api)


@contextmanager
def runtime_classes(api: Api) -> Iterator[None]:
    made: list[Object] = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name, **fields}
        for name, fields in RUNTIME_CLASSES.items()
    ]
    for item in made:
        api.apply(item)
    try:
        yield
    finally:
        for item in made:
            api.delete(object_path(item))


def scenario() -> Scenario:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    made = (item for guest in GUESTS for item in objects(guest, NAMESPACE))
    networks = (network(NAMESPACE, name, device) for name, device in guests.NETWORKS.items())
    cluster = (namespace, *networks, *hosts(), *storage_classes(), *state.storage(NAMESPACE))
    return Scenario("targets", (*cluster, *made), Settled(pods=0, vmis=len(GUESTS)))


def test_target_pods_are_as_foretold(lab: Lab) -> None:
    compared, wrong = compare(lab, {guest.name: guest.first for guest in GUESTS})
    lab.rest()
    for guest in GUESTS:
        change(lab, guest)
    configure(lab.api, CHANGED)
    compared_again, wrong_again = compare(lab, {guest.name: guest.second for guest in GUESTS if guest.twice})
    assert wrong + wrong_again == []
    assert compared + compared_again >= FEWEST
    lab.rest()
    assert moved_twice(lab) >= FEWEST_TWICE, "the second pods of those that never moved prove less"


def test_devices_of_networks_are_kept_where_definitions_are_not_shown(lab: Lab) -> None:
    lists, vmis = read(lab.api), lab.vmis()
    known = Foresight(lists)
    unknown = Foresight({name: items for name, items in lists.items() if name != "networkattachmentdefinitions"})
    said = {guest.name: known.target_pod(vmis[guest.name], {}) for guest in guests.NETWORKED}
    assert said == {name: unknown.target_pod(vmis[name], {}) for name in said}
    assert isinstance(said["two-devices"], dict)
    (compute, *_others) = said["two-devices"]["spec"]["containers"]
    assert compute["resources"]["requests"]["vendor.com/vf"] == "2"


def test_no_target_pod_where_none_is_foretold(lab: Lab) -> None:
    for guest, status in STUCK.items():
        lab.report(guest, status)
    foresight, vmis = Foresight(read(lab.api)), lab.vmis()
    for guest in STUCK:
        assert isinstance(foresight.target_pod(vmis[guest], {}), NoTargetPod), guest
    with watched_target_pods(lab.api, NAMESPACE) as pods:
        stuck = [lab.migrate(vmis[guest], {}) for guest in STUCK]
        other = lab.migrate(vmis["plain"], {})
        wait_for("the target pod of a VM that is not stuck", lambda: other["metadata"]["uid"] in pods.born, TIMEOUT)
        # Long enough for virt-controller to have tried the others, too.
        time.sleep(2)
        assert [one["metadata"]["name"] for one in stuck if one["metadata"]["uid"] in pods.born] == []
    pending = {one["metadata"]["name"] for one in lab.migrations() if one["status"]["phase"] == "Pending"}
    assert pending == {one["metadata"]["name"] for one in stuck}
    for migration in stuck:
        # KubeVirt would never finish it once the VMI is gone.
        lab.api.delete(object_path(migration))
    lab.rest()


def test_images_that_are_volumes(lab: Lab) -> None:
    """A first migration learns the digests, a second one has them."""
    names = [guest.name for guest in guests.IMAGES]
    with configured(lab.api, IMAGE_VOLUMES), started(lab, guests.IMAGES):
        for _round in range(2):
            compared, wrong = compare(lab, {name: {} for name in names})
            assert wrong == []
            assert compared == len(names)
            lab.rest()
        moved = Counter(one["spec"]["vmiName"] for one in lab.migrations() if one["status"]["phase"] == "Succeeded")
        assert {name: moved[name] for name in names} == dict.fromkeys(names, 2)


@contextmanager
def started(lab: Lab, chosen: Sequence[Guest]) -> Iterator[None]:
    """These guests beside those of the scenario, running."""
    made = [item for guest in chosen for item in objects(guest, NAMESPACE)]
    for item in made:
        lab.api.apply(item)

    def running() -> bool:
        vmis = lab.vmis()
        return all(vmis.get(guest.name, {}).get("status", {}).get("phase") == "Running" for guest in chosen)

    try:
        wait_for("the guests with images", running, TIMEOUT)
        yield
    finally:
        for item in made:
            lab.api.delete(object_path(item))


def compare(lab: Lab, wishes: Mapping[str, Mapping[str, str]]) -> tuple[int, list[str]]:
    """Migrate the guests with these additions to their node selectors: how many pods were made, and what is wrong."""
    foresight, vmis = Foresight(read(lab.api)), lab.vmis()
    foretold = {guest: foresight.target_pod(vmis[guest], added) for guest, added in wishes.items()}

    def begin(guest: str) -> str:
        return str(lab.migrate(vmis[guest], wishes[guest])["metadata"]["uid"])

    with watched_target_pods(lab.api, NAMESPACE) as pods:
        with ThreadPoolExecutor(PARALLEL) as pool:
            jobs = dict(zip(wishes, pool.map(begin, wishes), strict=True))
        wait_for("all target pods", lambda: pods.born.keys() >= set(jobs.values()), TIMEOUT)
    wrong = []
    for guest, said in foretold.items():
        if isinstance(said, NoTargetPod):
            wrong.append(f"{guest}: {said}")
        else:
            wrong += [f"{guest}{line}" for line in differences(said, pods.born[jobs[guest]])]
    return len(jobs), wrong


def change(lab: Lab, guest: Guest) -> None:
    """Change the VM, and wait until virt-controller has changed the running VMI."""
    lab.report(guest.name, guest.status)
    if guest.relabel:
        name = lab.vmis()[guest.name]["metadata"]["name"]
        lab.api.patch(resource_path(KUBEVIRT, VMIS, NAMESPACE, name), {"metadata": {"labels": guest.relabel}})
    if not guest.change:
        return
    path = resource_path(KUBEVIRT, plural(VM), NAMESPACE, guest.name)
    lab.api.patch(path, {"spec": {"template": {"spec": guest.change}}})

    def arrived() -> bool:
        return agrees(lab.vmis()[guest.name]["spec"], guest.change)

    wait_for(f"the change of {guest.name}", arrived, TIMEOUT)


def agrees(found: Object, patch: Object) -> bool:
    """Whether a merge patch would change nothing."""
    return all(
        agrees(found.get(key) or {}, value) if isinstance(value, dict) else found.get(key) == value
        for key, value in patch.items()
    )


def moved_twice(lab: Lab) -> int:
    succeeded = Counter(one["spec"]["vmiName"] for one in lab.migrations() if one["status"]["phase"] == "Succeeded")
    return sum(count > 1 for count in succeeded.values())

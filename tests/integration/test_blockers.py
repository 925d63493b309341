# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said to stand against a migration really does: each is asked for, and KubeVirt refuses it, or holds it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import (
    Surroundings,
    blockers,
    surroundings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB

from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS, evict, remove_deserted
from integration.configured import ALL_AT_ONCE, configured
from integration.fate.watching import lists, projected
from integration.simulator.lab import new_vmi
from testbed.api import Api, ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.waiting import wait_for

NODES = ("blockers-0", "blockers-1")
CONTROLLER = "system:serviceaccount:kubevirt:kubevirt-controller"
READY, MIGRATED = 120.0, 60.0
# A migration that is not held has its target pod, and a node for it, within a second.
STEADY = 4.0
# What waits for a backup takes the places of others.
CLUSTER: Object = {"developerConfiguration": {"featureGates": ["UtilityVolumes"]}, "migrations": ALL_AT_ONCE}
GOES_ON, HELD, REFUSED = "goes on", "held", "refused"


def backup(completed: bool) -> Object:
    status = {"backupName": "nightly", "startTimestamp": "2026-01-01T00:00:00Z", "completed": completed}
    return {"changedBlockTracking": {"state": "Disabled", "backupStatus": status}}


@dataclass(frozen=True)
class Case:
    """A VMI and what is done to it before it is to migrate. ids: of the blockers, with spaces between.

    status, spec: laid over the running VMI's, as KubeVirt itself would. image: what its pod's status says of its
    container disk. quota, limit: of its namespace, in which it is alone. second: whether a second pod of it is there.
    evacuated: whether its pod has been evicted.
    """

    ids: str
    expected: str
    vmi: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    quota: Mapping[str, str] | None = None
    limit: Mapping[str, Any] | None = None
    second: bool = False
    evacuated: bool = False
    starts: bool = True
    selector: Mapping[str, str] | None = None


BRIDGE = {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}, "memory": {"guest": "64Mi"}}
DISK = {"volumes": [{"name": "root", "containerDisk": {"image": "registry/disk:1"}}]}
CASES = (
    Case("", GOES_ON),
    Case("", GOES_ON, quota={"pods": "2", "requests.memory": "2Gi", "count/pods": "2"}),
    Case("", GOES_ON, DISK),
    Case("", GOES_ON, status=backup(completed=True)),
    Case("interface-not-live-migratable", REFUSED, {"domain": BRIDGE}),
    Case("not-running", HELD, {"nodeSelector": {"there": "is-none"}}, starts=False),
    Case("", GOES_ON, {"evictionStrategy": "External"}, evacuated=True),
    Case(
        # The backup keeps KubeVirt's own migration from ending before the test looks at it.
        "migration-in-flight evacuation-in-progress backup-in-progress",
        REFUSED,
        {"evictionStrategy": "LiveMigrate"},
        status=backup(completed=False),
        evacuated=True,
    ),
    Case("selinux-context-unknown", HELD, status={"selinuxContext": None}),
    Case("backup-in-progress", HELD, status=backup(completed=False)),
    Case(
        "utility-volumes hotplug-volume-not-attached",
        HELD,
        spec={"utilityVolumes": [{"name": "dump", "claimName": "dump"}]},
    ),
    Case("several-launcher-pods", HELD, second=True),
    Case("image-digest-unknown", HELD, DISK, image="registry/disk"),
    Case("quota-exceeded", HELD, quota={"pods": "1"}),
    Case("quota-exceeded", HELD, quota={"requests.memory": "300Mi"}),
    # KubeVirt adds limits where a quota wants them, though the running pod has none.
    Case("quota-exceeded", HELD, quota={"limits.cpu": "1"}),
    Case("", GOES_ON, quota={"limits.cpu": "2", "limits.memory": "2Gi"}),
    Case("", GOES_ON, limit={"type": "Container", "min": {"cpu": "1m"}, "max": {"cpu": "4"}}),
    Case("", GOES_ON, limit={"type": "Pod", "min": {"cpu": "10m"}, "max": {"memory": "1Gi"}}),
    Case("limit-range-violated", HELD, limit={"type": "Pod", "max": {"memory": "200Mi"}}),
    Case("limit-range-violated", HELD, limit={"type": "Container", "min": {"cpu": "50m"}}),
    Case("limit-range-violated", HELD, limit={"type": "Container", "max": {"memory": "40M"}}),
    Case("limit-range-violated", HELD, limit={"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
    # No rule of the LimitRange, but the pod would request more than its limit.
    Case("limit-range-violated", HELD, limit={"type": "Container", "default": {"memory": "70M"}}),
    Case(
        "added-selector-ignored",
        GOES_ON,
        {"nodeSelector": {"kubernetes.io/os": "linux"}},
        selector={"kubernetes.io/os": "x"},
    ),
    Case("prefer-no-eviction", GOES_ON, annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}),
)


@dataclass(frozen=True)
class Subject:
    """A case's VMI, or the one a test asks about."""

    case: Case
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return resource_path(KUBEVIRT, VMIS, self.namespace, self.name)


@pytest.fixture(scope="module")
def subjects(testbed: RunningTestbed) -> Iterator[list[Subject]]:
    api, shared = testbed.api, testbed.namespace()
    for name in NODES:
        api.create("/api/v1/nodes", fake_node(name))
    found = [
        Subject(case, testbed.namespace() if case.quota or case.limit else shared, f"vm-{number}")
        for number, case in enumerate(CASES)
    ]
    try:
        together(found, lambda subject: start(api, subject))
        wait_for("the VMs to run", lambda: all(is_ready(api, subject) for subject in found), READY, 0.5)
        with configured(api, CLUSTER), Api(testbed.kubeconfig, impersonate=CONTROLLER) as kubevirt:
            together(found, lambda subject: prepare(api, kubevirt, subject))
            yield found
    finally:
        together(found, lambda subject: api.delete(subject.path))
        remove_deserted(api, NODES)
        for namespace in {subject.namespace for subject in found}:
            testbed.drop_namespace(namespace)


def together(subjects: list[Subject], act: Any) -> list[Any]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(act, subjects))


def start(api: Api, subject: Subject) -> None:
    vmi = new_vmi(subject.namespace, subject.name, "64Mi", **subject.case.vmi)
    vmi["metadata"]["annotations"] = dict(subject.case.annotations)
    api.create(resource_path(KUBEVIRT, VMIS, subject.namespace), vmi)


def is_ready(api: Api, subject: Subject) -> bool:
    status = api.get(subject.path).get("status", {})
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}
    if not subject.case.starts:
        return bool(status.get("phase") == "Scheduling")
    return "LiveMigratable" in conditions and conditions.get("Ready") == "True"


def prepare(api: Api, kubevirt: Api, subject: Subject) -> None:
    case = subject.case
    if case.status or case.spec:
        change = {"spec": dict(case.spec), "status": dict(case.status)}
        # virt-api refuses a field until it knows of its feature gate.
        wait_for("the VMI to be changed", lambda: bool(kubevirt.patch(subject.path, change)))
    if case.image is not None:
        (pod,) = launchers(api, subject)
        statuses = [
            {**entry, "imageID": case.image} if entry["name"].startswith("volume") else entry
            for entry in pod["status"]["containerStatuses"]
        ]
        path = resource_path("v1", "pods", subject.namespace, pod["metadata"]["name"])
        api.patch(f"{path}/status", {"status": {"containerStatuses": statuses}})
    if case.evacuated:
        evacuate(api, subject)
    if case.second:
        (pod,) = launchers(api, subject)
        api.create(resource_path("v1", "pods", subject.namespace), like(pod))
    if case.limit:
        limit = {"metadata": {"name": "tight"}, "spec": {"limits": [dict(case.limit)]}}
        path = resource_path("v1", "limitranges", subject.namespace)
        api.create(path, {"apiVersion": "v1", "kind": "LimitRange", **limit})
    if case.quota:
        quota = {"metadata": {"name": "small"}, "spec": {"hard": dict(case.quota)}}
        path = resource_path("v1", "resourcequotas", subject.namespace)
        api.create(path, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
        wait_for("the quota to be counted", lambda: "used" in api.get(f"{path}/small").get("status", {}))


def evacuate(api: Api, subject: Subject) -> None:
    (pod,) = launchers(api, subject)
    with pytest.raises(ApiError, match="Eviction triggered evacuation"):
        evict(api, pod)
    if subject.case.expected == REFUSED:
        path = resource_path(KUBEVIRT, MIGRATIONS, subject.namespace)
        found = partial(api.items, path, labelSelector=f"kubevirt.io/vmi-name={subject.name}")
        wait_for("KubeVirt's own migration", lambda: bool(found()))


def like(pod: Object) -> Object:
    """A pod of the same VMI that never gets a node."""
    metadata = {
        "name": "another",
        "labels": pod["metadata"]["labels"],
        "ownerReferences": pod["metadata"]["ownerReferences"],
    }
    container = {"name": "compute", "image": "none"}
    spec = {"containers": [container], "nodeSelector": {"there": "is-none"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def launchers(api: Api, subject: Subject) -> list[Object]:
    return api.items(resource_path("v1", "pods", subject.namespace), labelSelector=f"app={subject.name}")


def migrate(api: Api, subject: Subject) -> str:
    """The uid of a new migration. Raises ApiError if it is refused."""
    spec: Object = {"vmiName": subject.name}
    if subject.case.selector:
        spec["addedNodeSelector"] = dict(subject.case.selector)
    migration = {"apiVersion": KUBEVIRT, "kind": "VirtualMachineInstanceMigration", "spec": spec}
    metadata = {"metadata": {"generateName": f"{subject.name}-", "namespace": subject.namespace}}
    made = api.create(resource_path(KUBEVIRT, MIGRATIONS, subject.namespace), {**migration, **metadata})
    return str(made["metadata"]["uid"])


def asked(api: Api, subject: Subject) -> str:
    """The uid of a new migration, empty if it is refused."""
    try:
        return migrate(api, subject)
    except ApiError:
        return ""


def outcomes(api: Api, uids: list[str]) -> list[str]:
    """Of migrations: a migration that is not held comes to its next phase."""
    found = api.items(f"/apis/{KUBEVIRT}/{MIGRATIONS}")
    phases = {item["metadata"]["uid"]: item.get("status", {}).get("phase", "") for item in found}
    return [REFUSED if not uid else HELD if phases[uid] in ("", "Pending") else GOES_ON for uid in uids]


def asked_of(around: Surroundings, subject: Subject) -> list[Blocker]:
    vmi = around.workloads.vmi(f"{subject.namespace}/{subject.name}")
    assert vmi is not None
    return blockers(around.candidate(vmi, subject.case.selector))


def foretold(found: list[Blocker]) -> str:
    effects = {blocker.effect for blocker in found}
    if Effect.REFUSED in effects:
        return REFUSED
    return HELD if Effect.HELD in effects else GOES_ON


def test_what_is_said_to_block_does(testbed: RunningTestbed, subjects: list[Subject]) -> None:
    api = testbed.api
    whole = lists(api)
    told = [
        [asked_of(around, subject) for subject in subjects] for around in map(surroundings, (whole, projected(whole)))
    ]
    assert told[0] == told[1]
    for subject, found in zip(subjects, told[0], strict=True):
        assert [blocker.id for blocker in found] == subject.case.ids.split(), subject
    uids = together(subjects, lambda subject: asked(api, subject))
    expected = [foretold(found) for found in told[0]]
    assert expected == [subject.case.expected for subject in subjects]
    with suppress(TestbedError):
        wait_for("the migrations", lambda: outcomes(api, uids) == expected, MIGRATED, 0.5)
    time.sleep(STEADY)
    results = zip(subjects, expected, outcomes(api, uids), strict=True)
    assert [(subject, result) for subject, right, result in results if result != right] == []
    pinned = next(index for index, subject in enumerate(subjects) if subject.case.selector)
    (pod,) = api.items("/api/v1/pods", labelSelector=f"{MIGRATION_JOB}={uids[pinned]}")
    assert pod["spec"]["nodeSelector"]["kubernetes.io/os"] == "linux"
    # Whatever is held is held by a migration, and that refuses the next one.
    held = [subject for subject, effect in zip(subjects, expected, strict=True) if effect == HELD]
    around = surroundings(projected(lists(api)))
    for subject in held:
        assert "migration-in-flight" in [blocker.id for blocker in asked_of(around, subject)]
        with pytest.raises(ApiError, match="in-flight migration detected"):
            migrate(api, subject)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason why a VMI cannot be migrated is found, alone, and told with its object, a sentence and a remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import blockers, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.registry import BLOCKER_RULES

from unit.plugins.module_utils._kubevirt.machines import kubevirt, launcher, metadata, migration, node, vmi

Object = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A VMI in a cluster, and the one blocker that is expected; `id` is empty for none.

    lists: besides its launcher pod and its node, which they may replace.
    """

    id: str
    vmi: Object = field(default_factory=vmi)
    effect: Effect = Effect.HELD
    object: str = "VirtualMachineInstance shop/db"
    says: str = ""
    lists: Object = field(default_factory=dict)
    selector: Object | None = None


def not_migratable(reason: str) -> Object:
    message = "in virt-handler's words"
    return vmi(
        status={"conditions": [{"type": "LiveMigratable", "status": "False", "reason": reason, "message": message}]}
    )


def with_claim(mode: str) -> Object:
    return {"pvcs": [{"metadata": metadata("data"), "spec": {"accessModes": [mode]}}]}


def with_image(image_id: str) -> Object:
    pod = launcher(DISK)
    pod["status"]["containerStatuses"] = [
        {"name": "compute", "imageID": ""},
        {"name": "volumeroot", "imageID": image_id},
    ]
    return {"pods": [pod]}


def with_quota(**hard: str) -> Object:
    used = dict.fromkeys(hard, "1")
    return {
        "resourcequotas": [
            {"metadata": metadata("small"), "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}
        ]
    }


def with_limit(**limit: Any) -> Object:
    return {"limitranges": [{"metadata": metadata("tight"), "spec": {"limits": [limit]}}]}


UNKNOWN: Object = {"conditions": None}
CLAIM: Object = {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]}
DATA_VOLUME: Object = {"volumes": [{"name": "disk", "dataVolume": {"name": "data"}}]}
DISK = vmi(volumes=[{"name": "root", "containerDisk": {"image": "registry/disk"}}])
HOTPLUGGED = {"name": "extra", "hotplugVolume": {}}
BACKUP = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}
EVACUATED = {"evacuationNodeName": "n1"}
DELETED = vmi()
DELETED["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
ANY_LEVEL = kubevirt(migrations={"matchSELinuxLevelOnMigration": False})

BLOCKED = [
    Case("being-deleted", DELETED, says="is being deleted"),
    Case("not-running", vmi(status={"phase": "Scheduling"}), says="The VMI is Scheduling, and only a running one"),
    Case("not-running", vmi(status={"phase": "Failed"}), Effect.REFUSED, says="The VMI is Failed"),
    Case("disks-not-live-migratable", not_migratable("DisksNotLiveMigratable"), Effect.REFUSED, says="on two nodes"),
    Case("interface-not-live-migratable", not_migratable("InterfaceNotLiveMigratable"), Effect.REFUSED, says="bound"),
    Case("hotplug-not-live-migratable", not_migratable("HotplugNotLiveMigratable"), Effect.REFUSED, says="hotplug"),
    Case("cpu-mode-not-live-migratable", not_migratable("CPUModeLiveMigratable"), Effect.REFUSED, says="host-model"),
    Case("virtiofs-not-live-migratable", not_migratable("VirtIOFSNotLiveMigratable"), Effect.REFUSED, says="virtiofs"),
    Case("host-device-not-live-migratable", not_migratable("HostDeviceNotLiveMigratable"), Effect.REFUSED),
    Case("sev-not-live-migratable", not_migratable("SEVNotLiveMigratable"), Effect.REFUSED, says="AMD SEV"),
    Case("secure-execution-not-live-migratable", not_migratable("SecureExecutionNotLiveMigratable"), Effect.REFUSED),
    Case("tdx-not-live-migratable", not_migratable("TDXNotLiveMigratable"), Effect.REFUSED, says="Intel TDX"),
    Case("tsc-frequency-not-live-migratable", not_migratable("NoTSCFrequencyNotLiveMigratable"), Effect.REFUSED),
    Case(
        "hyperv-passthrough-not-live-migratable", not_migratable("HypervPassthroughNotLiveMigratable"), Effect.REFUSED
    ),
    Case(
        "persistent-reservation-not-live-migratable",
        not_migratable("PersistentReservationNotLiveMigratable"),
        Effect.REFUSED,
    ),
    Case("not-live-migratable", not_migratable("Later"), Effect.REFUSED, says="(Later: in virt-handler's words)"),
    Case(
        "claim-not-shared",
        vmi(status=UNKNOWN, **CLAIM),
        Effect.REFUSED,
        "PersistentVolumeClaim shop/data",
        "whose access is ReadWriteOnce",
        with_claim("ReadWriteOnce"),
    ),
    Case(
        "claim-not-shared",
        vmi(status=UNKNOWN, **DATA_VOLUME),
        Effect.REFUSED,
        "PersistentVolumeClaim shop/data",
        lists=with_claim("ReadWriteOncePod"),
    ),
    Case(
        "migration-in-flight",
        vmi(),
        Effect.REFUSED,
        "VirtualMachineInstanceMigration shop/db-migration",
        "migrating the VMI already (Running)",
        {"migrations": [migration()], "pods": [launcher(vmi()), launcher(vmi(), "target", node="n2")]},
    ),
    Case("evacuation-in-progress", vmi(status=EVACUATED, evictionStrategy="LiveMigrate"), Effect.REFUSED, says="n1"),
    Case(
        "evacuation-in-progress",
        vmi(status=EVACUATED),
        Effect.REFUSED,
        lists={"kubevirts": [kubevirt(evictionStrategy="LiveMigrateIfPossible")]},
    ),
    Case("backup-in-progress", vmi(status=BACKUP), object="VirtualMachineBackup shop/nightly", says="nightly"),
    Case("utility-volumes", vmi(utilityVolumes=[{"name": "dump"}]), says="(dump), and KubeVirt waits until they are"),
    Case("utility-volumes", vmi(utilityVolumes=[{"name": "dump"}]), says="for 150 s at most"),
    Case(
        "several-launcher-pods",
        lists={"pods": [launcher(vmi()), launcher(vmi(), "before", node="n2")]},
        says="2 pods that have not ended (before, virt-launcher-db)",
    ),
    Case("image-digest-unknown", DISK, says="disk root", lists=with_image("")),
    Case("source-node-unknown", lists={"nodes": [node("n2")]}, says="its node n1 does not exist"),
    Case("selinux-context-unknown", vmi(status={"selinuxContext": None}), says="names no SELinux context"),
    Case(
        "host-model-unknown",
        vmi(domain={"cpu": {"model": "host-model"}}),
        says="its node n1 has no label host-model-cpu.node.kubevirt.io/<model>",
    ),
    Case(
        "limit-range-violated",
        object="LimitRange shop/tight",
        says="(cpu of the pod: a request of 100m, at least 2)",
        lists=with_limit(type="Pod", min={"cpu": "2"}),
    ),
    Case(
        "quota-exceeded",
        object="ResourceQuota shop/small",
        says="(pods: 1 on top of 1 of 1)",
        lists=with_quota(pods="1"),
    ),
    Case(
        "quota-exceeded",
        object="ResourceQuota shop/small",
        says="(limits.cpu: 1000m on top of 1 of 1500m)",
        lists=with_quota(**{"limits.cpu": "1500m"}),
    ),
    Case(
        "hotplug-volume-not-attached", vmi(status={"volumeStatus": [{**HOTPLUGGED, "phase": "Bound"}]}), says="(Bound)"
    ),
    Case(
        "added-selector-ignored",
        vmi(nodeSelector={"zone": "a"}),
        Effect.IGNORED,
        says="asks for nodes with zone=a, so KubeVirt would silently ignore the added zone=b",
        selector={"zone": "b"},
    ),
    Case(
        "added-selector-ignored",
        effect=Effect.IGNORED,
        selector={"rack": "2"},
        lists={"kubevirts": [kubevirt(developerConfiguration={"nodeSelectors": {"rack": "1"}})]},
    ),
    Case(
        "prefer-no-eviction",
        vmi(annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": "false"}),
        Effect.UNWANTED,
    ),
]

FREE = [
    Case("", vmi()),
    Case("", vmi(status={"conditions": [{"type": "Paused", "status": "True"}]})),
    Case("", vmi(status=UNKNOWN)),
    Case("", vmi(**CLAIM), lists=with_claim("ReadWriteOnce")),
    Case("", vmi(status=UNKNOWN, **CLAIM), lists=with_claim("ReadWriteMany")),
    Case("", vmi(status=UNKNOWN, **CLAIM)),
    Case(
        "",
        vmi(status={**UNKNOWN, "migratedVolumes": [{"volumeName": "disk"}]}, **CLAIM),
        lists=with_claim("ReadWriteOnce"),
    ),
    Case("", lists={"migrations": [migration(phase="Succeeded"), migration("other")]}),
    Case("", vmi(status=EVACUATED, evictionStrategy="External")),
    Case("", vmi(status=EVACUATED, evictionStrategy="None")),
    Case("", vmi(status={"evacuationNodeName": "n2"}, evictionStrategy="LiveMigrate")),
    Case("", vmi(status={"changedBlockTracking": {"backupStatus": {"backupName": "nightly", "completed": True}}})),
    Case("", lists={"pods": [launcher(vmi()), launcher(vmi(), "before", node="n2", phase="Succeeded")]}),
    Case("", DISK, lists=with_image("registry/disk@sha256:0123")),
    Case("", vmi(status={"selinuxContext": None}), lists={"kubevirts": [ANY_LEVEL]}),
    Case("", lists=with_quota(**{"requests.memory": "2Gi"})),
    Case("", lists=with_quota(**{"limits.cpu": "3"})),
    Case("", lists=with_limit(type="Pod", min={"cpu": "100m"})),
    Case("", vmi(status={"volumeStatus": [{**HOTPLUGGED, "phase": "Ready"}, {"name": "a", "phase": "Pending"}]})),
    Case("", vmi(nodeSelector={"zone": "a"}), selector={"rack": "1"}),
    Case("", lists={"nodes": []}),
    Case("", lists={"pods": []}),
]


def found(case: Case) -> list[Blocker]:
    lists = {"nodes": [node()], "pods": [launcher(case.vmi)], "vmis": [case.vmi], **case.lists}
    return blockers(surroundings(lists).candidate(case.vmi, case.selector))


@pytest.mark.parametrize("case", BLOCKED, ids=lambda case: case.id)
def test_what_blocks(case: Case) -> None:
    (blocker,) = found(case)
    assert (blocker.id, blocker.effect, blocker.object) == (case.id, case.effect, case.object)
    assert case.says in blocker.sentence
    assert blocker.sentence.endswith(".")
    assert blocker.remedy.endswith(".")


@pytest.mark.parametrize("case", FREE)
def test_what_does_not(case: Case) -> None:
    assert found(case) == []


def test_every_rule_is_met() -> None:
    met = {rule.__name__ for case in BLOCKED for rule in BLOCKER_RULES if list(rule(subject_of(case)))}
    assert met == {rule.__name__ for rule in BLOCKER_RULES}


def subject_of(case: Case) -> Any:
    lists = {"nodes": [node()], "pods": [launcher(case.vmi)], **case.lists}
    return surroundings(lists).candidate(case.vmi, case.selector)


def test_data_for_a_result_is_plain() -> None:
    (blocker,) = found(Case("", vmi(status=BACKUP)))
    assert blocker.to_json() == {
        "id": "backup-in-progress",
        "effect": "held",
        "object": "VirtualMachineBackup shop/nightly",
        "message": "Backup nightly of the VMI is in progress, and KubeVirt waits for it.",
        "remedy": "Wait until it is complete, or abort it.",
        "passing": True,
    }

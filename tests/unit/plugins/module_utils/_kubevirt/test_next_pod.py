# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import blockers, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import WorkloadError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import (
    NextPod,
    NoMigrationError,
    UnknownWorkloadError,
    next_pod,
    pod_of_migration,
    pod_of_start,
)

from unit.plugins.module_utils._kubevirt.machines import launcher, node, owned, vmi

Object = dict[str, Any]
VM: Object = {
    "kind": "VirtualMachine",
    "metadata": {"namespace": "shop", "name": "db"},
    "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"memory": {"guest": "2Gi"}}}}},
}
KIND = "VirtualMachineInstanceReplicaSet"
RUNNING = vmi()


def lists(**more: Any) -> Any:
    return {"vmis": [RUNNING], "vms": [VM], "pods": [launcher(RUNNING)], "nodes": [node()], **more}


def is_of_migration(pod: Any) -> bool:
    """By the rule that keeps it from the VM's own node."""
    return "podAntiAffinity" in pod["spec"]["affinity"]


@pytest.mark.parametrize("asked", ["shop/db", RUNNING, VM])
def test_of_what_runs_it_is_the_migration_s(asked: Any) -> None:
    found = next_pod(asked, surroundings(lists()))
    assert is_of_migration(found.pod)
    assert found.title == "shop/db"
    assert not is_of_migration(pod_of_start(asked, surroundings(lists())).pod)


@pytest.mark.parametrize("phase", ["Pending", "Scheduling", "Succeeded", "Failed"])
def test_of_what_does_not_run_it_is_the_first(phase: str) -> None:
    waiting = lists(vmis=[vmi(status={"phase": phase, "nodeName": None})])
    assert not is_of_migration(next_pod("shop/db", surroundings(waiting)).pod)


def memory(found: NextPod) -> str:
    amount: str = found.pod["spec"]["containers"][0]["resources"]["requests"]["memory"]
    return amount


@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Failed"])
def test_a_vmi_is_followed_by_one_of_its_vm(phase: str) -> None:
    small = vmi(status={"phase": phase}, domain={"memory": {"guest": "1Gi"}})
    around = lists(vmis=[small])
    assert (
        memory(pod_of_start("shop/db", surroundings(around)))
        == memory(pod_of_start(small, surroundings(around)))
        == memory(pod_of_start(VM, surroundings({})))
    )


def test_a_vmi_whose_start_has_begun_is_not_made_anew() -> None:
    small = vmi(status={"phase": "Pending", "nodeName": None}, domain={"memory": {"guest": "1Gi"}})
    around = lists(vmis=[small])
    assert (
        memory(pod_of_start("shop/db", surroundings(around)))
        == memory(next_pod("shop/db", surroundings(around)))
        != memory(pod_of_start(VM, surroundings({})))
    )


def test_what_the_status_of_a_vmi_says_ends_with_it() -> None:
    machine = vmi("alone", status={"machine": {"type": "pc-q35-9.2"}}, domain={"machine": {"type": "q35"}})
    found = pod_of_start("shop/alone", surroundings(lists(vmis=[machine]))).pod["spec"]["nodeSelector"]
    assert "machine-type.node.kubevirt.io/q35" in found
    assert "machine-type.node.kubevirt.io/pc-q35-9.2" not in found


def test_an_instance_type_counts_and_not_what_it_gave_the_vmi() -> None:
    template: Object = {"spec": {"domain": {}}}
    vm = {**VM, "spec": {"runStrategy": "Always", "instancetype": {"name": "u1"}, "template": template}}
    size = {"metadata": {"name": "u1"}, "spec": {"cpu": {"guest": 1}, "memory": {"guest": "2Gi"}}}
    around = lists(vms=[vm], clusterinstancetypes=[size], vmis=[vmi(domain={"memory": {"guest": "9Gi"}})])
    for asked in ("shop/db", vm, around["vmis"][0]):
        found = pod_of_start(asked, surroundings(around))
        assert memory(found) == memory(pod_of_start(VM, surroundings({})))
        assert not found.open


def test_what_an_instance_type_gives_is_told_by_the_vmi_if_by_nothing_else() -> None:
    template: Object = {"spec": {"domain": {}, "nodeSelector": {"rack": "2"}}}
    vm = {**VM, "spec": {"runStrategy": "Always", "instancetype": {"name": "u1"}, "template": template}}
    given = vmi(domain={"memory": {"guest": "2Gi"}}, nodeSelector={"rack": "1", "pool": "large"})
    found = pod_of_start("shop/db", surroundings(lists(vms=[vm], vmis=[given])))
    assert memory(found) == memory(pod_of_start(VM, surroundings({})))
    assert (found.pod["spec"]["nodeSelector"]["rack"], found.pod["spec"]["nodeSelector"]["pool"]) == ("2", "large")
    assert "instancetype u1" in found.open[0]


def test_a_replica_set_has_a_next_replica() -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"domain": {}}}
    item = {"metadata": {"namespace": "shop", "name": "set"}, "spec": {"replicas": 3, "template": template}}
    found = next_pod("shop/set", surroundings(lists(vmireplicasets=[item])))
    assert found.pod["metadata"]["labels"]["app"] == "db"
    assert memory(pod_of_start(owned(vmi("set-1"), KIND, "set"), surroundings(lists(vmireplicasets=[item])))) == memory(
        found
    )


def test_a_replica_set_s_migration_is_that_of_its_first_vmi_that_runs() -> None:
    item = {"metadata": {"namespace": "shop", "name": "set"}, "spec": {"template": {"spec": {"domain": {}}}}}
    ended = owned(vmi("set-1", status={"phase": "Failed"}), KIND, "set")
    third, second = (owned(vmi(name), KIND, "set") for name in ("set-3", "set-2"))
    other = owned(vmi("other-1"), KIND, "other")
    around = lists(vmireplicasets=[item], vmis=[third, ended, second, other], pods=[launcher(second), launcher(third)])
    assert pod_of_migration("shop/set", surroundings(around), {}).title == "shop/set-2"
    assert not is_of_migration(next_pod("shop/set", surroundings(around)).pod)
    with pytest.raises(NoMigrationError, match="VirtualMachineInstanceReplicaSet shop/set has no VirtualMachineInst"):
        pod_of_migration("shop/set", surroundings({**around, "vmis": [ended, other]}), {})


def test_a_migration_adds_to_the_selector() -> None:
    assert pod_of_migration("shop/db", surroundings(lists()), {"rack": "2"}).pod["spec"]["nodeSelector"]["rack"] == "2"


def by_hand(item: Any) -> Any:
    """Without what the API server would have added."""
    bare = copy.deepcopy(item)
    bare["metadata"].pop("uid", None)
    for owner in bare["metadata"].get("ownerReferences", ()):
        owner.pop("uid", None)
    return bare


def test_what_is_written_by_hand_needs_no_uid() -> None:
    bare = lists(vmis=[by_hand(RUNNING)], pods=[by_hand(launcher(RUNNING))])
    for asked in ("shop/db", by_hand(RUNNING), VM):
        found = next_pod(asked, surroundings(bare)).pod
        assert found["spec"] == next_pod("shop/db", surroundings(lists())).pod["spec"], (
            "the source pod's label tells the uid"
        )
    unlabelled = by_hand(launcher(RUNNING))
    del unlabelled["metadata"]["labels"]["kubevirt.io/created-by"]
    assert is_of_migration(next_pod("shop/db", surroundings({**bare, "pods": [unlabelled]})).pod)


def test_a_quota_charges_what_is_written_by_hand() -> None:
    status = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    full = {"metadata": {"namespace": "shop", "name": "small"}, "spec": {}, "status": status}
    vmi_by_hand = by_hand(RUNNING)
    around = surroundings(lists(vmis=[vmi_by_hand], pods=[by_hand(launcher(RUNNING))], resourcequotas=[full]))
    assert [blocker.id for blocker in blockers(around.candidate(vmi_by_hand))] == ["quota-exceeded"]


def quota(used: str, hard: str) -> Object:
    status = {"hard": {"requests.memory": hard}, "used": {"requests.memory": used}}
    return {"metadata": {"namespace": "shop", "name": "small"}, "spec": {}, "status": status}


LIMIT = {
    "metadata": {"namespace": "shop", "name": "tight"},
    "spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]},
}
REFUSED: list[tuple[Any, str]] = [
    ({"limitranges": [LIMIT]}, "LimitRange tight does not allow the pod with which shop/db would start (memory of the"),
    # The VM's own pod is gone by then, and its next one is larger.
    ({"resourcequotas": [quota("2Gi", "2Gi")]}, "ResourceQuota small does not allow the pod with which shop/db would"),
    ({"resourcequotas": [quota("2Gi", "4Gi")]}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("more", "clause"), REFUSED)
def test_a_start_that_the_api_server_refuses(more: Any, clause: str) -> None:
    refusals = pod_of_start("shop/db", surroundings(lists(**more))).refusals
    assert [text.startswith(clause) for text in refusals] == ([True] if clause else [])


PROBLEMS: list[tuple[Any, Any, type[Exception], str]] = [
    ("shop/nobody", lists(), UnknownWorkloadError, "There is no VirtualMachine, .* 'shop/nobody'"),
    ("db", lists(), UnknownWorkloadError, "Give namespace/name"),
    ({"metadata": {"name": "p"}, "spec": {}}, lists(), WorkloadError, "is expected"),
    ("shop/db", lists(pods=[]), NoMigrationError, "has no pod on n1 to migrate from"),
    ("shop/db", lists(nodes=[]), NoMigrationError, "KubeVirt makes no pod for a migration of shop/db: its node n1"),
    ("shop/db", lists(vmis=[], pods=[]), NoMigrationError, "VirtualMachine shop/db has no VirtualMachineInstance"),
]


@pytest.mark.parametrize(("asked", "given", "kind", "text"), PROBLEMS)
def test_problems_are_one_sentence(asked: Any, given: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        pod_of_migration(asked, surroundings(given), {})


def test_what_is_open_is_said() -> None:
    vm = {**VM, "spec": {**VM["spec"], "instancetype": {"name": "u1"}}}
    assert "instancetype u1" in next_pod(vm, surroundings({})).open[0]

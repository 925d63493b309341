# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads

VMI = {"metadata": {"namespace": "n", "name": "a", "uid": "u"}, "status": {"nodeName": "x"}}


def launcher(name: str, node: str = "x", phase: str = "Running", created: int = 0, uid: str | None = "u") -> Any:
    owner: dict[str, Any] = {"kind": "VirtualMachineInstance", "name": "a", "controller": True}
    if uid:
        owner["uid"] = uid
    metadata = {
        "namespace": "n",
        "name": name,
        "ownerReferences": [owner],
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
    }
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def names(pods: list[Any]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def test_objects_are_found_by_name_and_the_running_one_first() -> None:
    vm = {"metadata": {"namespace": "n", "name": "a"}, "spec": {}}
    rest = {"metadata": {"namespace": "n", "name": "b"}, "spec": {}}
    found = Workloads({"vmis": [VMI], "vms": [vm, rest], "vmireplicasets": [rest]})
    assert found.find("n/a") is VMI
    assert found.vm("n/a") is vm
    assert found.find("n/b") is rest
    assert found.find("n/c") is None
    assert found.find("m/a") is None


def test_vmis_are_found_by_the_replica_set_that_controls_them() -> None:
    def replica(name: str, kind: str) -> Any:
        owner = {"kind": kind, "name": "set", "uid": "s", "controller": True}
        return {"metadata": {"namespace": "n", "name": name, "ownerReferences": [owner]}}

    vmis = [replica("set-1", "VirtualMachineInstanceReplicaSet"), replica("other", "VirtualMachine"), VMI]
    found = Workloads({"vmis": vmis})
    assert found.vmis_of("n/set") == vmis[:1]
    assert found.vmis_of("m/set") == []


def test_pods_that_have_ended_are_not_active() -> None:
    found = Workloads({"pods": [launcher("old", phase="Succeeded"), launcher("new"), launcher("other", uid="v")]})
    assert names(found.pods(VMI)) == ["old", "new"]
    assert names(found.active_pods(VMI)) == ["new"]


def test_the_source_pod_is_the_newest_on_the_node() -> None:
    pods = [launcher("first"), launcher("second", created=5), launcher("target", node="y", created=9)]
    found = Workloads({"pods": pods})
    assert found.source_pod(VMI) is pods[1]
    assert found.source_pod({**VMI, "status": {}}) is pods[2]
    assert found.source_pod({**VMI, "status": {"nodeName": "z"}}) is None


def test_objects_without_uid_belong_together_by_name() -> None:
    pod = launcher("first", uid=None)
    assert Workloads({"pods": [pod]}).source_pod({"metadata": {"namespace": "n", "name": "a"}}) is pod


def test_a_copy_changes_by_itself() -> None:
    first, second = launcher("first"), launcher("second", created=5)
    moved = {**VMI, "status": {"nodeName": "y"}}
    found = Workloads({"vmis": [VMI], "pods": [first]})
    other = found.copy()
    other.take_vmi(moved)
    other.take_pod(second)
    assert (found.vmi("n/a"), found.pods(VMI)) == (VMI, [first])
    assert (other.vmi("n/a"), other.pods(VMI)) == (moved, [first, second])
    other.forget_pod(first)
    assert (found.pods(VMI), other.pods(VMI)) == ([first], [second])

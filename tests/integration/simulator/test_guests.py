# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs start, shut down and go."""

from __future__ import annotations

import pytest

from integration.simulator.lab import Lab, ended
from testbed.api import ApiError, Object, resource_path


def condition(vmi: Object, kind: str) -> Object:
    return next(c for c in vmi["status"]["conditions"] if c["type"] == kind)


def test_a_vm_starts(lab: Lab) -> None:
    vmi = lab.start()
    phases = [entry["phase"] for entry in vmi["status"]["phaseTransitionTimestamps"]]
    assert phases == ["Pending", "Scheduling", "Scheduled", "Running"]
    assert vmi["status"]["nodeName"] in lab.nodes
    assert condition(vmi, "LiveMigratable")["status"] == "True"
    assert condition(vmi, "StorageLiveMigratable")["status"] == "True"
    assert vmi["status"]["migrationMethod"] == "LiveMigration"
    assert vmi["metadata"]["labels"]["kubevirt.io/nodeName"] == vmi["status"]["nodeName"]


def test_a_vm_tells_why_it_cannot_migrate(lab: Lab) -> None:
    bridge = {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}, "memory": {"guest": "512Mi"}}
    found = condition(lab.start(domain=bridge), "LiveMigratable")
    assert (found["status"], found["reason"]) == ("False", "InterfaceNotLiveMigratable")
    with pytest.raises(ApiError, match="InterfaceNotLiveMigratable"):
        lab.migrate()


def test_a_local_disk_has_to_be_copied(lab: Lab) -> None:
    vmi = lab.start(volumes=[{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}])
    assert condition(vmi, "LiveMigratable")["status"] == "True"
    assert vmi["status"]["migrationMethod"] == "BlockMigration"


def test_a_guest_shuts_down(lab: Lab) -> None:
    lab.start("vm")
    lab.start("other")
    lab.inject("guest-shutdown", "--vmi", f"{lab.namespace}/vm")
    lab.wait("the VM to end", lambda: lab.phase() == "Succeeded")
    lab.wait("its pod to end", lambda: all(map(ended, lab.pods().values())))
    assert {pod["status"]["phase"] for pod in lab.pods().values()} == {"Succeeded"}
    assert lab.phase("other") == "Running"


def test_a_vm_is_deleted(lab: Lab) -> None:
    lab.start()
    lab.api.delete(resource_path("kubevirt.io/v1", "virtualmachineinstances", lab.namespace, "vm"))
    lab.wait("the VM to be gone", lambda: not lab.exists())
    lab.wait("its pod to be gone", lambda: not lab.pods())


def test_a_guest_whose_pod_is_deleted_shuts_down_first(lab: Lab) -> None:
    lab.start()
    (pod,) = lab.pods()
    lab.api.delete(resource_path("v1", "pods", lab.namespace, pod))
    lab.wait("the VM to end", lambda: lab.phase() in {"Succeeded", "Failed"})
    assert lab.phase() == "Succeeded"
    lab.wait("its pod to be gone", lambda: not lab.pods())

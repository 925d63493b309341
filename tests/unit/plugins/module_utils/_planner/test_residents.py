# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs on nodes, with the pods that hold their hotplugged volumes."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import residents

from unit.plugins.module_utils._planner.scene import Json, Scene, node


class Watched(dict[str, Any]):
    """A pod that counts how often it is looked at."""

    looks = 0

    def __getitem__(self, key: str) -> Any:
        self.looks += 1
        return super().__getitem__(key)


def attachment(scene: Scene, machine: str) -> Json:
    owner = {"kind": "Pod", "name": f"virt-launcher-{machine}", "uid": f"pod-{machine}", "controller": True}
    labels = {"kubevirt.io": "hotplug-disk"}
    return scene.pod(f"hp-{machine}", "a", metadata={"labels": labels, "ownerReferences": [owner]})


def test_a_machine_has_the_attachments_of_its_pod() -> None:
    scene = Scene(node("a"))
    for name in ("one", "two", "none"):
        scene.vm(name, "a")
    held = {name: attachment(scene, name) for name in ("one", "two")}
    found = residents(scene.lists["pods"], Workloads(scene.lists)).machines
    assert {machine.vmi["metadata"]["name"]: machine.attachments for machine in found} == {
        "none": (),
        "one": (held["one"],),
        "two": (held["two"],),
    }


def test_looks_at_a_pod_do_not_grow_with_the_machines() -> None:
    def looks(machines: int) -> int:
        scene = Scene(node("a"))
        for number in range(machines):
            scene.vm(f"vm-{number}", "a")
        pod = Watched(scene.pod("web-1", "a"))
        scene.lists["pods"][-1] = pod
        residents(scene.lists["pods"], Workloads(scene.lists))
        return pod.looks

    assert looks(20) == looks(1)

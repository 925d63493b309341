# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold when a run has ended well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from faults.scene import CONFIG_MAPS, ENDED, LEASES, NODES, RUN_LABEL, Scene, title
from integration.clusters import KUBEVIRT
from testbed.api import resource_path

_MARK, _STOPPED = "virtops.kubevirt/maintenance", "virtops.kubevirt/stopped-for"
_NOTE, _KEPT = "stopped.virtops.kubevirt/", "virtops.kubevirt/cordon-kept"


def left_behind(scene: Scene) -> Iterator[str]:
    """What the run has left in the cluster, a sentence each."""
    yield from _on_nodes(scene)
    for path, noun in ((LEASES, "Lease"), (CONFIG_MAPS, "ConfigMap")):
        new = [item["metadata"] for item in scene.api.items(path, labelSelector=RUN_LABEL)]
        yield from (f"{noun} {each['name']} is there" for each in new if each["uid"] not in scene.known)
    for item in scene.migrations():
        phase = item.get("status", {}).get("phase")
        if item["metadata"].get("labels", {}).get(RUN_LABEL) and phase not in ENDED:
            yield f"migration {title(item)} is {phase}"
    owners = ("virtualmachines", "virtualmachineinstancereplicasets")
    for item in (item for kind in owners for item in scene.api.items(resource_path(KUBEVIRT, kind))):
        if _STOPPED in item["metadata"].get("annotations", {}):
            yield f"{title(item)} carries the mark of a stopped VM"
    for vmi in scene.vmis():
        if vmi["status"].get("evacuationNodeName"):
            yield f"{title(vmi)} is being evacuated from {vmi['status']['evacuationNodeName']}"


def _on_nodes(scene: Scene) -> Iterator[str]:
    for node in scene.api.items(NODES):
        name = node["metadata"]["name"]
        if node["spec"].get("unschedulable"):
            yield f"{name} is cordoned"
        if {_MARK, _KEPT} & node["metadata"].get("annotations", {}).keys():
            yield f"{name} carries our mark"
        if any(key.startswith(_NOTE) for key in node["metadata"].get("annotations", {})):
            yield f"{name} notes a VM as stopped for it"


def off(scene: Scene) -> Iterator[str]:
    """VMs that ran, or their successors, and do not; and those that are off by their owner's will, and run."""
    running = {title(vmi) for vmi in scene.vmis() if vmi["status"].get("phase") == "Running"}
    for item in scene.api.items(resource_path(KUBEVIRT, "virtualmachines")):
        name = title(item)
        if name in scene.stopped and name in running:
            yield f"{name} was switched off by its owner, and runs"
        if name in scene.before and name not in running and name not in scene.touched:
            yield f"{name} does not run"
    for item in scene.api.items(resource_path(KUBEVIRT, "virtualmachineinstancereplicasets")):
        wanted, ready = item["spec"].get("replicas", 1), item.get("status", {}).get("readyReplicas", 0)
        if ready < wanted:
            yield f"{title(item)} has {ready} of {wanted} VMs"


def maintained(scene: Scene) -> Iterator[str]:
    """What the maintenance has found that must not be."""
    looks = scene.looks()
    for look in looks:
        if look["vms"]:
            yield f"{look['node']} was maintained with {', '.join(look['vms'])}"
        if not (look["cordoned"] and look["mark"]):
            yield f"{look['node']} was maintained without our cordon"
    times = Counter(look["node"] for look in looks)
    yield from (f"{node} was never maintained" for node in scene.nodes if not times[node])
    if not scene.killed:
        yield from (f"{node} was maintained {count / 2:g} times" for node, count in times.items() if count != 2)


def interrupted(scene: Scene, lost: set[tuple[str, str]]) -> Iterator[str]:
    """VMs that can migrate and were ended all the same, or ended twice."""
    times = Counter(name for name, _uid in lost if name not in scene.touched)
    yield from (f"{name} can migrate, and was ended" for name in times if name in scene.movable)
    yield from (f"{name} was ended {count} times" for name, count in times.items() if count > 1)

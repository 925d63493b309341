# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are lost, flap or change."""

from __future__ import annotations

from faults.disturbances.contract import later, name_of
from faults.invocation import Going
from faults.scene import ENDED, NODES, Scene, title
from testbed.api import Object

_TAINT: Object = {"key": "faults/somebody", "effect": "NoSchedule"}


def source_lost(scene: Scene, _going: Going) -> str:
    """The node that a VM is just leaving has a power cut."""
    return _lost(scene, "sourceNode")


def target_lost(scene: Scene, _going: Going) -> str:
    return _lost(scene, "targetNode")


def flaps(scene: Scene, _going: Going) -> str:
    """The virt-handler of a node is given up by KubeVirt, and is back, three times."""
    node = scene.random.choice(scene.nodes)
    for number in range(3):
        scene.testbed.inject("stale-heartbeat", "--node", node, "--after", f"{6 * number}s", "--for", "3s")
    return f"virt-handler of {node} comes and goes"


def handler_silent(scene: Scene, _going: Going) -> str:
    node, seconds = scene.random.choice(scene.nodes), scene.random.randint(5, 20)
    scene.testbed.inject("silent-handler", "--node", node, "--for", f"{seconds}s")
    return f"virt-handler of {node} silent for {seconds} s"


def tainted(scene: Scene, _going: Going) -> str:
    """A node takes no new pods for a while, though nobody has cordoned it."""
    node, seconds = scene.random.choice(scene.nodes), scene.random.uniform(5, 20)
    found = scene.api.get(f"{NODES}/{node}")
    _write_taints(scene, node, [*(found["spec"].get("taints") or ()), _TAINT])
    later(seconds, lambda: _untaint(scene, node))
    return f"{node} tainted for {seconds:.0f} s"


def relabelled(scene: Scene, _going: Going) -> str:
    node = scene.random.choice(scene.nodes)
    scene.api.patch(f"{NODES}/{node}", {"metadata": {"labels": {"faults/somebody": "was-here"}}})
    return f"{node} got a label"


def _lost(scene: Scene, end: str) -> str:
    states = ((item.get("status") or {}) for item in scene.migrations())
    flying = [state.get("migrationState") or {} for state in states if state.get("phase") not in ENDED]
    vmis = scene.vmis()
    flying += [
        vmi["status"]["migrationState"]
        for vmi in vmis
        if not (vmi["status"].get("migrationState") or {"completed": True}).get("completed")
    ]
    nodes = sorted({state[end] for state in flying if state.get(end)})
    if not nodes:
        return "nothing: no migration in flight"
    node = scene.random.choice(nodes)
    scene.testbed.inject("node-lost", "--node", node, "--for", "2s")
    # What runs there ends, and what is just arriving may.
    scene.touched |= {
        title(vmi)
        for vmi in vmis
        if node in (vmi["status"].get("nodeName"), (vmi["status"].get("migrationState") or {}).get("targetNode"))
    }
    return f"{node} lost power, the {end.removesuffix('Node')} of a migration"


def _untaint(scene: Scene, node: str) -> None:
    found = scene.api.get(f"{NODES}/{node}")
    _write_taints(scene, node, [taint for taint in found["spec"].get("taints") or () if taint["key"] != _TAINT["key"]])


def _write_taints(scene: Scene, node: str, taints: list[Object]) -> None:
    found = {name_of(item) for item in scene.api.items(NODES)}
    if node in found:
        scene.api.patch(f"{NODES}/{node}", {"spec": {"taints": taints}})

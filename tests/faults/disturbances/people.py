# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Others who work on the cluster, run by run or by hand."""

from __future__ import annotations

import contextlib
import subprocess
import time
from datetime import UTC, datetime

from faults.disturbances.contract import MARK, later, name_of, taken
from faults.invocation import Going, begin, give_up
from faults.scene import CONFIG_MAPS, LEASES, NODES, RUN_LABEL, Scene
from integration.clusters import delete
from testbed.api import ApiError, Object

# So long another process may take to be refused, in seconds: it watches the holder's Lease meanwhile.
_REFUSAL = 90.0


def uncordoned(scene: Scene, _going: Going) -> str:
    """Somebody gives a node back that the run has taken."""
    marked = taken(scene)
    if not marked:
        return "nothing: no node was taken"
    node = scene.random.choice(marked)
    scene.given_back.add(node)
    scene.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})
    return f"{node} uncordoned"


def cordoned(scene: Scene, _going: Going) -> str:
    """Somebody cordons a node for a while."""
    node, seconds = scene.random.choice(_free(scene)), scene.random.uniform(3, 15)
    _cordon(scene, node, seconds)
    return f"{node} cordoned by somebody for {seconds:.0f} s"


def drained_by_somebody(scene: Scene, _going: Going) -> str:
    """As `kubectl drain` does: a cordon, and evictions of what is there."""
    node, seconds = scene.random.choice(_free(scene)), scene.random.uniform(5, 20)
    _cordon(scene, node, seconds)
    here = [vmi for vmi in scene.vmis() if vmi["status"].get("nodeName") == node]
    for vmi in here:
        scene.evict(vmi)
    return f"{node} drained by somebody for {seconds:.0f} s: {len(here)} VMs evicted"


def under_medik8s(scene: Scene, _going: Going) -> str:
    """Another operator holds a node for a while."""
    node, seconds = scene.random.choice(_free(scene)), scene.random.uniform(5, 20)
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"node-{node}"},
        "spec": {
            "holderIdentity": "node-maintenance",
            "leaseDurationSeconds": 3600,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
    try:
        scene.api.create(LEASES, lease)
    except ApiError as error:
        return f"nothing: {error}"
    later(seconds, lambda: delete(scene.api, f"{LEASES}/node-{node}"))
    return f"{node} held by another operator for {seconds:.0f} s"


def leases_deleted(scene: Scene, _going: Going) -> str:
    """All of them, as somebody tidies up."""
    found = scene.api.items(LEASES)
    for lease in found:
        delete(scene.api, f"{LEASES}/{name_of(lease)}")
    return f"{len(found)} Leases deleted"


def memory_deleted(scene: Scene, _going: Going) -> str:
    """What the run remembers in the cluster."""
    found = scene.api.items(CONFIG_MAPS, labelSelector=RUN_LABEL)
    for item in found:
        delete(scene.api, f"{CONFIG_MAPS}/{name_of(item)}")
    return f"{len(found)} documents of the run deleted"


def same_run_again(scene: Scene, _going: Going) -> str:
    """A second person starts the same command."""
    log = scene.folder / f"second-{time.monotonic():.0f}.log"
    second = begin(scene, scene.run, log)
    try:
        code = second.wait(_REFUSAL)
    except subprocess.TimeoutExpired:
        scene.killed = True
        second.end()
        return "the same run started again, and ended by force"
    if code == 0:
        scene.killed = True
    return f"the same run started again, which exits with {code}"


def another_run(scene: Scene, _going: Going) -> str:
    """Another run maintains the same nodes until it has taken one, or has failed, and is given up."""
    other, log = f"other-{scene.random.randrange(10**6)}", scene.folder / f"other-{time.monotonic():.0f}.log"
    going, limit = begin(scene, other, log), time.monotonic() + _REFUSAL
    while going.poll() is None and not taken(scene, other) and time.monotonic() < limit:
        time.sleep(0.5)
    nodes = taken(scene, other)
    with contextlib.suppress(subprocess.TimeoutExpired):
        going.wait(scene.random.uniform(1, 10))
    code = going.end()
    undone = give_up(scene, other)
    return f"run {other} takes {', '.join(nodes) or 'no node'}, exit code {code}; given up with exit code {undone}"


def _free(scene: Scene) -> list[str]:
    return [name_of(node) for node in scene.api.items(NODES) if not node["spec"].get("unschedulable")]


def _cordon(scene: Scene, node: str, seconds: float) -> None:
    scene.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    later(seconds, lambda: _give_back(scene, node))


def _give_back(scene: Scene, node: str) -> None:
    found = scene.api.get(f"{NODES}/{node}")
    if MARK not in found["metadata"].get("annotations", {}):
        scene.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})

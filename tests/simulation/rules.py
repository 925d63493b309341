# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hard rules of the model, apart from its scheduler: what is broken now, and what a command would break.

A plan foresees neither whom others move, start, or let grow after it was made, nor where the scheduler puts what is
restarted. What stands in the way of a migration by what the plan knew is the run's own fault.

The reserve is what `_planner.reserve` means by it: room elsewhere for the VMs of one more zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan

from simulation.world import LARGE, OURS, ROOM, ZONES, World


def broken(world: World) -> frozenset[str]:
    """What is wrong with where pods of VMs are, a line each."""
    return frozenset(_broken(world))


def _broken(world: World) -> Iterator[str]:
    pods = [pod for pod in world.pods.values() if pod.machine and pod.node]
    taken = dict.fromkeys(ZONES, 0)
    zones: dict[tuple[str, str], str] = {}
    for pod in pods:
        taken[pod.node] += pod.size
        vmi = world.vmis.get(pod.owner_uid)
        if vmi is not None and vmi.picky and pod.node not in LARGE:
            yield f"{pod.uid} of {vmi.title} is not on a large node"
        if pod.group and zones.setdefault((pod.group, ZONES[pod.node]), pod.owner_uid) != pod.owner_uid:
            yield f"zone {ZONES[pod.node]} has two VMs of group {pod.group}"
    yield from (f"{node} has more than its room" for node, size in taken.items() if size > ROOM)


def hindrance(world: World, command: Migrate, plan: Plan) -> str:
    """Which rule the pod that a command brings would break by what its plan foresaw; empty if none."""
    vmi, node, snapshot = world.vmis[command.uid], command.target, world.snapshots[plan.snapshot.sha256]
    if vmi.uid in snapshot.moving:
        return ""
    if vmi.picky and node not in LARGE:
        return "that is no large node"
    sent = {(action.object.uid, action.target) for action in plan.actions if action.kind is ActionKind.MIGRATE}
    places = {(uid, place) for uid, place in _present(world) if (uid, place) in sent | snapshot.places.keys()}
    others = {(uid, place) for uid, place in places - world.left if uid != vmi.uid}
    for uid, place in others:
        other = world.vmis.get(uid)
        if other is not None and vmi.group and other.group == vmi.group and ZONES[place] == ZONES[node]:
            return f"{other.title} of its group is in zone {ZONES[node]}"
    here = {(uid, place) for uid, place in others if place == node} | {(vmi.uid, node)}
    sizes = (snapshot.places.get(each, snapshot.sizes.get(each[0], 0)) for each in here)
    return "there is no room for it" if sum(sizes) > ROOM else ""


def reserve(world: World, foreseen: Mapping[str, int]) -> int:
    """Room that is left when the worst zone fails and its VMs run elsewhere; negative if they do not all.

    foreseen: sizes of the VMs that the run knows, by name. A cordon of somebody else is not the run's doing.
    """
    room = dict.fromkeys(ZONES.values(), 0)
    for node, zone in ZONES.items():
        room[zone] += ROOM * (world.cordons.get(node) != OURS)
    names = {uid: vmi.name for uid, vmi in world.vmis.items()}
    staying = (pod for pod in world.pods.values() if pod.machine and pod.node and not pod.over)
    here = (names.get(pod.owner_uid, "") for pod in staying if world.cordons.get(pod.node) != OURS)
    # Of whatever fails the room is lost, and what it held has to find some in the rest.
    return sum(room.values()) - max(room.values()) - sum(foreseen.get(name, 0) for name in here)


def _present(world: World) -> Iterator[tuple[str, str]]:
    """VMIs by uid, and nodes where they have a pod or are about to get one by a migration of the run."""
    yield from ((pod.owner_uid, pod.node) for pod in world.pods.values() if pod.machine and pod.node)
    yield from ((moving.vmi.uid, moving.target) for moving in world.migrations.values() if moving.is_coming)

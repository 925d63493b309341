# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in the model by itself, one small step at a time, in any order: KubeVirt's and Kubernetes' controllers.

Follows pkg/virt-controller/watch/{migration,vm,replicaset,vmi} as far as the reducer can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone

from simulation.world import (
    CAP_CLUSTER,
    CAP_OUTBOUND,
    REPLICA_SET,
    VM,
    Moving,
    Owner,
    Pod,
    PodSet,
    Vmi,
    World,
)

Step = tuple[Callable[..., object], tuple[object, ...]]


def possible(world: World) -> list[Step]:
    """All steps that may come next."""
    return [*_migrations(world), *_pods(world), *_vmis(world), *_owners(world), *_sets(world)]


def take(world: World, choice: int) -> bool:
    """Take one of them; False if nothing can happen."""
    steps = possible(world)
    if steps:
        function, arguments = steps[choice % len(steps)]
        function(world, *arguments)
    return bool(steps)


def _migrations(world: World) -> Iterator[Step]:
    running = [entry for entry in world.migrations.values() if entry.unfinished and entry.phase != "Pending"]
    for entry in world.migrations.values():
        if not entry.unfinished:
            if entry.cancelled:
                yield _vanish, (entry,)
            continue
        if entry.vmi.uid not in world.vmis or entry.vmi.ending or not entry.vmi.alive:
            yield _drop if entry.vmi.uid not in world.vmis else _fail, (entry,)
        elif entry.cancelled and not entry.switched:
            yield _fail, (entry,)
        elif entry.phase == "Pending":
            outbound = sum(other.source == entry.source for other in running)
            busy = sum(1 for _pod in world.pods_of(entry.vmi.uid)) > 1
            if len(running) < CAP_CLUSTER and outbound < CAP_OUTBOUND and not busy:
                yield _start, (entry,)
        else:
            yield from _on_its_way(world, entry)


def _on_its_way(world: World, entry: Moving) -> Iterator[Step]:
    if entry.phase == "Scheduling":
        fits = world.fits(entry.vmi, entry.target)
        if fits:
            yield _place, (entry,)
        if not (fits and world.calm):
            yield _fail, (entry,)
    elif entry.switched:
        yield _succeed, (entry,)
    else:
        yield _switch, (entry,)
        if not world.calm:
            yield _fail, (entry,)


def reach(world: World, entry: Moving, phase: str) -> None:
    entry.phase = phase
    time = datetime.fromtimestamp(world.now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry.phases.append((phase, time))


def _start(world: World, entry: Moving) -> None:
    entry.pod = world.add_pod(entry.vmi.uid, "", machine=True, group=entry.vmi.group, size=entry.vmi.size).uid
    entry.source = entry.vmi.node
    reach(world, entry, "Scheduling")


def _place(world: World, entry: Moving) -> None:
    world.pods[entry.pod].node = entry.target
    reach(world, entry, "Running")


def _switch(world: World, entry: Moving) -> None:
    """The guest runs at its target; the pod at its source ends a little later."""
    for pod in world.pods_of(entry.vmi.uid):
        pod.over = pod.uid != entry.pod
    world.settle(entry.vmi, entry.target)
    entry.switched = True


def _succeed(world: World, entry: Moving) -> None:
    reach(world, entry, "Succeeded")


def _fail(world: World, entry: Moving) -> None:
    reach(world, entry, "Failed")
    if entry.pod in world.pods:
        world.pods[entry.pod].over = True


def _vanish(world: World, entry: Moving) -> None:
    del world.migrations[entry.uid]


def _drop(world: World, entry: Moving) -> None:
    """Of a VMI that is gone, KubeVirt deletes it."""
    entry.cancelled = True
    _fail(world, entry)


def _pods(world: World) -> Iterator[Step]:
    for pod in world.pods.values():
        if pod.ending or pod.over:
            yield _end_pod, (pod,)


def _end_pod(world: World, pod: Pod) -> None:
    world.remove_pod(pod)
    if pod.machine or pod.owner_uid in world.sets:
        return
    # A Deployment replaces it, where it may go.
    node = pod.node if pod.tolerates else next((name for name in ("n3", "n4") if name not in world.cordons), "n6")
    world.add_pod(pod.owner_uid, node, machine=False, tolerates=pod.tolerates)


def _vmis(world: World) -> Iterator[Step]:
    for vmi in world.vmis.values():
        pods = [pod for pod in world.pods.values() if pod.owner_uid == vmi.uid]
        if vmi.alive and vmi.ending:
            yield end_guest, (vmi,)
        elif not vmi.alive and not pods:
            if vmi.ending or not _is_kept(vmi.owner):
                yield _remove_vmi, (vmi,)
        elif vmi.phase == "Pending" and not vmi.ending:
            yield from _to_start(world, vmi, pods)
        elif vmi.phase == "Scheduled":
            yield _run, (vmi,)
            if world.frail:
                yield end_guest, (vmi,)


def _is_kept(owner: Owner | None) -> bool:
    """Whether a VMI stays for people to see when it has ended by itself."""
    return owner is not None and owner.strategy == "Manual"


def _to_start(world: World, vmi: Vmi, pods: list[Pod]) -> Iterator[Step]:
    if pods:
        yield _schedule, (vmi, pods[0])
    else:
        for node in _NODES:
            if world.fits(vmi, node):
                yield _bind, (vmi, node)


_NODES = ("n1", "n2", "n3", "n4", "n5", "n6")


def _bind(world: World, vmi: Vmi, node: str) -> None:
    world.add_pod(vmi.uid, node, machine=True, group=vmi.group, size=vmi.size)


def _schedule(world: World, vmi: Vmi, pod: Pod) -> None:
    world.settle(vmi, pod.node)
    vmi.phase = "Scheduled"


def _run(_world: World, vmi: Vmi) -> None:
    vmi.phase = "Running"
    if vmi.owner is not None:
        vmi.owner.ran.add(vmi.uid)


def end_guest(world: World, vmi: Vmi, phase: str = "Failed") -> None:
    """The guest is off; its pods go, then its object."""
    vmi.phase = phase
    for pod in world.pods_of(vmi.uid):
        pod.over = True


def _remove_vmi(world: World, vmi: Vmi) -> None:
    world.remove_vmi(vmi)


def _owners(world: World) -> Iterator[Step]:
    for owner in world.owners.values():
        namesake = world.vmi(owner.name) if owner.kind == VM else None
        if namesake is not None and namesake.owner is None and not namesake.ending:
            yield _adopt, (owner, namesake)
        if any(uid not in world.vmis or not world.vmis[uid].ending for uid in owner.stops):
            yield _obey, (owner,)
        # Requests are seen to in their order: a start that followed a stop waits for that to be done and taken off
        # (hasStartRequest in KubeVirt's pkg/virt-controller/watch/vm).
        if owner.strategy == "Halted" or (owner.strategy == "Manual" and (owner.stops or not owner.asked)):
            continue
        if owner.kind != REPLICA_SET and world.vmi(owner.name) is not None:
            continue  # also where somebody has made a VMI of its name: no two have one name
        own = sum(vmi.owner is owner and not (vmi.ending and owner.kind == REPLICA_SET) for vmi in world.vmis.values())
        if own < owner.replicas:
            yield _create, (owner,)


def _adopt(_world: World, owner: Owner, vmi: Vmi) -> None:
    """What is nobody's and has a VM's name is its own from then on (ClaimVirtualMachineInstanceByName).

    As if a VM that was deleted without it had left it behind: of one by hand a halted VM would end nothing.
    """
    vmi.owner = owner
    if owner.strategy == "Halted":
        vmi.ending = True
        return
    if vmi.alive:  # a start that was asked for has come about (isTrimFirstChangeRequestNeeded)
        owner.asked = False
    if vmi.node:
        owner.placed.add(vmi.uid)
    if vmi.phase == "Running":
        owner.ran.add(vmi.uid)


def _obey(world: World, owner: Owner) -> None:
    """What was asked to stop is told to end; that it has been asked is forgotten when it is gone."""
    owner.stops &= world.vmis.keys()
    for uid in owner.stops:
        world.vmis[uid].ending = True


def _create(world: World, owner: Owner) -> None:
    name = owner.name if owner.kind != REPLICA_SET else f"{owner.name}-{world.number}"
    owner.asked = False
    vmi = world.add_vmi(name, owner, "", migratable=owner.migratable, group=owner.group, picky=owner.picky)
    vmi.size = owner.size


def _sets(world: World) -> Iterator[Step]:
    """A ReplicaSet replaces a pod that is told to end, a StatefulSet only one that is gone, as it keeps its name."""
    for each in world.sets.values():
        own = list(world.pods_of(each.uid))
        yield from ((_serve, (pod,)) for pod in own if not pod.ready)
        keeps = each.kind == "StatefulSet"
        if not each.is_paused and sum(keeps or not pod.ending for pod in own) < each.replicas:
            yield add_pod, (each,)


def _serve(_world: World, pod: Pod) -> None:
    pod.ready = True


def add_pod(world: World, owner: PodSet, node: str = "", *, ready: bool = False) -> Pod:
    """Of a set, on any node that is free if it is not said where."""
    free = [name for name in _NODES if name not in world.cordons] or list(_NODES)
    pod = world.add_pod(owner.uid, node or free[world.number % len(free)], machine=False)
    taken = {other.name for other in world.pods_of(owner.uid)}
    ordinals = (f"{owner.name}-{number}" for number in range(owner.replicas))
    made_up = f"{owner.name}-{world.number:05}"
    pod.name = next(name for name in ordinals if name not in taken) if owner.kind == "StatefulSet" else made_up
    pod.ready, pod.created = ready, world.now
    return pod

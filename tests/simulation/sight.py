# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen of the model, as `_cluster` sees it of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    SeenPod,
    SeenReplicaSet,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

from simulation import planner
from simulation.world import (
    NAMESPACE,
    REPLICA_SET,
    RUN,
    VM,
    Moving,
    Owner,
    Pod,
    Vmi,
    World,
)


def see_vmi(vmi: Vmi) -> SeenVmi:
    owner = vmi.owner
    return SeenVmi(
        vmi.uid,
        NAMESPACE,
        vmi.name,
        vmi.node,
        vmi.phase,
        vmi.ending,
        *((owner.kind, owner.name, owner.uid) if owner else ("", "", "")),
        not vmi.migratable,
    )


def see_vmis(world: World, nodes: set[str]) -> Mapping[str, SeenVmi]:
    return {vmi.title: see_vmi(vmi) for vmi in world.vmis.values() if vmi.node in nodes}


def see_vms(world: World, titles: frozenset[str]) -> Mapping[str, SeenVm]:
    vms = {f"{NAMESPACE}/{owner.name}": owner for owner in world.owners.values() if owner.kind == VM}
    return {title: see_vm(owner) for title, owner in vms.items() if title in titles}


def see_vm(owner: Owner) -> SeenVm:
    return SeenVm(
        owner.uid,
        owner.strategy,
        start_requested=owner.asked,
        stops=frozenset(owner.stops),
        before={node: mark.before for node, mark in owner.stopped_for.items()},
    )


def see_replica_sets(world: World, titles: frozenset[str]) -> Mapping[str, SeenReplicaSet]:
    sets = {f"{NAMESPACE}/{owner.name}": owner for owner in world.owners.values() if owner.kind == REPLICA_SET}
    return {
        title: SeenReplicaSet(owner.uid, world.ready(owner), _wanted_again(owner), world.wanted(owner))
        for title, owner in sets.items()
        if title in titles
    }


def _wanted_again(owner: Owner) -> dict[str, int]:
    """By node, how many are to be ready when it is back."""
    stopped = sum(len(mark.vmis) for mark in owner.stopped_for.values())
    return {
        node: max(0, min(mark.ready, owner.replicas) - stopped + len(mark.vmis))
        for node, mark in owner.stopped_for.items()
    }


def see_pod(pod: Pod) -> SeenPod:
    return SeenPod(
        uid=pod.uid,
        namespace=NAMESPACE,
        name=pod.name,
        node=pod.node,
        ending=pod.ending,
        machine=pod.machine,
        stays=False,
        tolerates=pod.tolerates,
        owner_uid=pod.owner_uid,
    )


def see_pods(world: World, nodes: set[str]) -> Mapping[str, SeenPod]:
    return {pod.uid: see_pod(pod) for pod in world.pods.values() if pod.node in nodes}


def see_migration(moving: Moving) -> Migration:
    return Migration(
        namespace=NAMESPACE,
        name=moving.name,
        uid=moving.uid,
        vmi=moving.vmi.name,
        run=RUN if moving.ours else moving.run,
        node_selector={planner.HOSTNAME: moving.target},
        priority="",
        created="",
        phase=moving.phase,
        phases=tuple(moving.phases),
        blocked="",
        cancelled=moving.cancelled,
    )


def see_migrations(world: World, sources: Collection[str]) -> Mapping[str, tuple[Migration, ...]]:
    """Those of the run, by their VMI's title, that were to leave one of these nodes."""
    found: dict[str, tuple[Migration, ...]] = {}
    for moving in world.migrations.values():
        if moving.ours and moving.home in sources:
            found[moving.vmi.title] = (*found.get(moving.vmi.title, ()), see_migration(moving))
    return found

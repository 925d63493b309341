# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims and the volumes they have, or will get. Follows pkg/scheduler/framework/plugins/volumebinding.

The existing volume that a claim would get follows k8s.io/component-helpers/storage/volume/pv_helpers.go.

Binding a pod here binds no claim: a state's claims and volumes stay as they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import VolumeNodeAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.storage import (
    Claim,
    PersistentVolume,
    StorageClass,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import (
    FilterFailure,
    Prepared,
    Rejection,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


_NO_PROVISIONER = frozenset({"", "kubernetes.io/no-provisioner"})


@dataclass(frozen=True, slots=True)
class _Provisioning:
    """`possible`: nodes for which the class makes volumes. `sufficient`: nodes with the space for this one."""

    possible: BoolArray
    sufficient: BoolArray


class VolumeBinding:
    name = "VolumeBinding"

    def prepare(self, pod: Pod, state: ClusterState) -> Prepared | Rejection | None:
        claims = _claims(pod.occupant, state)
        if isinstance(claims, Rejection):
            return claims
        if not claims:
            return None
        bound = [claim for claim in claims if claim.bound]
        waiting = [claim for claim in claims if not claim.bound]
        if not all(_waits_for_consumer(claim, state) for claim in waiting):
            return Rejection(UNBOUND)
        return Prepared(lambda: [*_check_bound(bound, state), *_check_waiting(waiting, state)])


def _claims(occupant: Occupant, state: ClusterState) -> list[Claim] | Rejection:
    found = []
    for reference in occupant.volumes.claims:
        claim = state.storage.claims.get((occupant.namespace, reference.name))
        if claim is None:
            missing = f'persistentvolumeclaim "{reference.name}" not found'
            awaited = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{reference.name}"'
            return Rejection(awaited if reference.ephemeral else missing)
        if claim.lost:
            return Rejection(
                f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            )
        if claim.terminating:
            return Rejection(f'persistentvolumeclaim "{claim.name}" is being deleted')
        if reference.ephemeral and not claim.is_owned_by(occupant.uid):
            pod, pvc = occupant.key, f"{claim.namespace}/{claim.name}"
            return Rejection(f"PVC {pvc} was not created for pod {pod} (pod is not owner)")
        found.append(claim)
    return found


def _waits_for_consumer(claim: Claim, state: ClusterState) -> bool:
    """A claim that names its volume is not waiting: the volume controller is about to bind it."""
    storage_class = state.storage.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.waits_for_consumer and not claim.volume_name


def _check_bound(claims: Sequence[Claim], state: ClusterState) -> list[FilterFailure]:
    """The first claim that a node cannot serve gives its reason."""
    nodes = state.nodes
    failures = []
    left = nodes.all()
    for claim in claims:
        volume = state.storage.volumes.get(claim.volume_name)
        if volume is None:
            failures.append(FilterFailure(left, VOLUME_MISSING))
            break
        reached = _reached(volume, state)
        failures += [*_untranslated(volume, left, state), FilterFailure(left & ~reached, NODE_CONFLICT)]
        left = left & reached
    return failures


def _reached(volume: PersistentVolume, state: ClusterState) -> BoolArray:
    """Nodes from which a volume is reached. For one of a built-in type, nodes may go by its CSI driver's words."""
    here = _admitted(volume.topology, state)
    if volume.migration is None:
        return here
    migrated = state.nodes.named(state.storage.nodes_migrated_to(volume.migration.plugin))
    result: BoolArray = np.where(migrated, _admitted(volume.migration.topology, state), here)
    return result


def _untranslated(volume: PersistentVolume, left: BoolArray, state: ClusterState) -> list[FilterFailure]:
    if volume.migration is None or not volume.migration.error:
        return []
    migrated = state.nodes.named(state.storage.nodes_migrated_to(volume.migration.plugin))
    reason = f"the volume {volume.name} cannot be translated for its CSI driver: {volume.migration.error}"
    return [FilterFailure(left & migrated, reason, fatal=True)]


def _admitted(topology: VolumeNodeAffinity, state: ClusterState) -> BoolArray:
    return state.nodes.all() if topology is None else state.nodes.admitted_by_terms(topology, by_name=False)


def _check_waiting(claims: Sequence[Claim], state: ClusterState) -> list[FilterFailure]:
    """Claims without a volume find one that fits, or have one made for the node."""
    if not claims:
        return []
    nodes = state.nodes
    unbound, full = nodes.none(), nodes.none()
    chosen = [claim for claim in claims if claim.selected_node is not None]
    for claim in chosen:
        unbound |= ~nodes.named([claim.selected_node or ""])
    free = sorted((claim for claim in claims if claim.selected_node is None), key=lambda claim: claim.storage or 0)
    candidates = [candidates_for(claim, state) for claim in free]
    plans = {claim: _provisioning(claim, state) for claim in claims}
    for members, reachable in _alike(candidates, state):
        missing = unmatched_claims(free, candidates, reachable)
        no_volume, no_space = _provision([plans[claim] for claim in (*chosen, *missing)], members)
        unbound |= no_volume
        full |= no_space
    return [FilterFailure(unbound, BIND_CONFLICT), FilterFailure(full & ~unbound, NOT_ENOUGH_SPACE)]


def _alike(candidates: Sequence[Candidates], state: ClusterState) -> list[tuple[BoolArray, frozenset[str]]]:
    """Groups of nodes that reach the same volumes, with the names of those volumes."""
    volumes = {volume.name: volume for choice in candidates for volume in choice.all()}
    limited = {name: volume.topology for name, volume in volumes.items() if volume.topology is not None}
    anywhere = frozenset(volumes) - frozenset(limited)
    if not limited:
        return [(state.nodes.all(), anywhere)]
    reached = np.stack([state.nodes.admitted_by_terms(topology, by_name=False) for topology in limited.values()])
    patterns, group = np.unique(reached, axis=1, return_inverse=True)
    names = np.array(list(limited), dtype=object)
    return [
        (group.reshape(-1) == number, anywhere | frozenset(names[patterns[:, number]]))
        for number in range(patterns.shape[1])
    ]


def _provision(plans: Sequence[_Provisioning], members: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Nodes of a group where a volume cannot be made, and where there is no space for it: the first claim decides."""
    no_volume, no_space = np.zeros_like(members), np.zeros_like(members)
    left = members
    for plan in plans:
        no_volume |= left & ~plan.possible
        no_space |= left & plan.possible & ~plan.sufficient
        left = left & plan.possible & plan.sufficient
    return no_volume, no_space


def _provisioning(claim: Claim, state: ClusterState) -> _Provisioning:
    """Where a volume could be made for a claim. Follows checkVolumeProvisions of volumebinding/binder.go."""
    nodes = state.nodes
    storage_class = state.storage.classes[claim.storage_class]
    if storage_class.provisioner in _NO_PROVISIONER:
        return _Provisioning(nodes.none(), nodes.all())
    terms = storage_class.topologies
    return _Provisioning(
        possible=nodes.admitted_by_terms(terms) if terms else nodes.all(),
        sufficient=_sufficient(claim, storage_class, state),
    )


def _sufficient(claim: Claim, storage_class: StorageClass, state: ClusterState) -> BoolArray:
    """Drivers that do not publish their capacity are trusted to have it."""
    if claim.storage is None or storage_class.provisioner not in state.storage.tracking:
        return state.nodes.all()
    size = quantity.units(claim.storage)
    result = state.nodes.none()
    for capacity in state.storage.capacities:
        if (
            capacity.storage_class == storage_class.name
            and capacity.largest is not None
            and capacity.largest >= size
            and not capacity.nodes.nothing
        ):
            result |= state.nodes.matching(capacity.nodes.requirements)
    return result


@dataclass(frozen=True, slots=True)
class Candidates:
    """Volumes a claim could have wherever they can be reached.

    `reserved`: for this very claim, which then takes no other. `free`: the smallest first.
    """

    reserved: tuple[PersistentVolume, ...]
    free: tuple[PersistentVolume, ...]

    def all(self) -> Iterator[PersistentVolume]:
        yield from self.reserved
        yield from self.free

    def choose(self, reachable: frozenset[str], taken: frozenset[str]) -> PersistentVolume | None:
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if volume.name in reachable else None
        left = (volume for volume in self.free if volume.name in reachable and volume.name not in taken)
        return next(left, None)


def candidates_for(claim: Claim, state: ClusterState) -> Candidates:
    fitting = [volume for volume in state.storage.of_class(claim.storage_class) if _fits(claim, volume)]
    free = [volume for volume in fitting if volume.claim is None and _is_free_for(claim, volume)]
    return Candidates(
        reserved=tuple(volume for volume in fitting if volume.is_reserved_for(claim)),
        free=tuple(sorted(free, key=lambda volume: volume.capacity)),
    )


def unmatched_claims(
    claims: Sequence[Claim], candidates: Sequence[Candidates], reachable: frozenset[str]
) -> list[Claim]:
    """The claims, smallest first, for which no volume is left where these volumes are reachable."""
    taken: frozenset[str] = frozenset()
    unmatched = []
    for claim, choice in zip(claims, candidates, strict=True):
        volume = choice.choose(reachable, taken)
        if volume is None:
            unmatched.append(claim)
        else:
            taken |= {volume.name}
    return unmatched


def _fits(claim: Claim, volume: PersistentVolume) -> bool:
    return (
        volume.capacity >= (claim.storage or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )


def _is_free_for(claim: Claim, volume: PersistentVolume) -> bool:
    return (
        volume.available
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and claim.access_modes <= volume.access_modes
    )

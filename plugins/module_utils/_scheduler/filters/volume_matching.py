# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The existing volume a claim would get. Follows k8s.io/component-helpers/storage/volume/pv_helpers.go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.storage import Claim, PersistentVolume
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState


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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CSI volumes on each node: those of its pods, and those still attached to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import CsiVolume
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.storage_table import StorageTable


class AttachedVolumes:
    """A volume counts once for a node, however many pods use it there, and whether or not it is attached too."""

    def __init__(self, nodes: NodeTable, storage: StorageTable) -> None:
        self._size = len(nodes)
        self._storage = storage
        self._counts: dict[str, IntArray] = {}
        self._users: defaultdict[CsiVolume, Counter[int]] = defaultdict(Counter)
        self._strangers: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._attached = {
            (nodes.index[attachment.node], attachment.volume)
            for attachment in storage.attachments
            if attachment.node in nodes.index
        }
        for node, volume in self._attached:
            self.count(volume.driver)[node] += 1

    def count(self, driver: str) -> IntArray:
        """Volumes of a driver on each node."""
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = np.zeros(self._size, dtype=np.int64)
        return counts

    def users(self, volume: CsiVolume) -> list[int]:
        """Nodes with a pod that uses a volume."""
        return [node for node, pods in self._users.get(volume, Counter()).items() if pods]

    def of(self, occupant: Occupant) -> Iterator[CsiVolume]:
        """The CSI volumes a pod uses, each once. Claims that do not exist are left out."""
        found = set(occupant.volumes.inline)
        for reference in occupant.volumes.claims:
            claim = self._storage.claims.get((occupant.namespace, reference.name))
            volume = None if claim is None else self._storage.csi_volume(claim)
            if volume is not None:
                found.add(volume)
        yield from found

    def strangers(self) -> dict[str, list[int]]:
        """Generic ephemeral claims that pods use but do not own, with the nodes of these pods."""
        found = {claim: [node for node, pods in nodes.items() if pods] for claim, nodes in self._strangers.items()}
        return {claim: nodes for claim, nodes in found.items() if nodes}

    def update(self, occupant: Occupant, node: int, change: int) -> None:
        for volume in self.of(occupant):
            users = self._users[volume]
            before = users[node]
            users[node] += change
            if (before > 0) != (users[node] > 0) and (node, volume) not in self._attached:
                self.count(volume.driver)[node] += change
        for reference in occupant.volumes.claims:
            claim = self._storage.claims.get((occupant.namespace, reference.name))
            if claim is not None and reference.ephemeral and not claim.is_owned_by(occupant.uid):
                self._strangers[f"{claim.namespace}/{claim.name}"][node] += change

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The claims, volumes, classes and CSI objects of a cluster, found by name. They do not change with the state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import storage
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import (
    DRIVERS,
    UNCOUNTED,
    CsiVolume,
    Plugin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.storage import (
    Claim,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A volume that the attach-detach controller holds on a node."""

    node: str
    volume: CsiVolume


@dataclass(frozen=True, slots=True)
class StorageTable:
    """`by_class`: volumes by storage class. `limits`: most volumes by node and driver.

    `migrated`: nodes, by the built-in type of volumes for which they already ask the CSI driver.
    `tracking`: drivers that publish how much space they have.
    """

    claims: Mapping[tuple[str, str], Claim]
    volumes: Mapping[str, PersistentVolume]
    by_class: Mapping[str, Sequence[PersistentVolume]]
    classes: Mapping[str, StorageClass]
    capacities: tuple[StorageCapacity, ...]
    limits: Mapping[str, Mapping[str, int]]
    migrated: Mapping[str, frozenset[str]]
    tracking: frozenset[str]
    attachments: tuple[Attachment, ...]

    def of_class(self, name: str) -> Sequence[PersistentVolume]:
        return self.by_class.get(name, ())

    def nodes_migrated_to(self, plugin: Plugin) -> frozenset[str]:
        return self.migrated.get(plugin.name, frozenset())

    def csi_volume(self, claim: Claim) -> CsiVolume | None:
        """The driver that serves a claim, and its name for the volume; None if no CSI driver does.

        A claim without a volume yet counts as a volume of its own.
        """
        volume = self.volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is not None:
            return volume.csi or (volume.migration.csi if volume.migration else None)
        storage_class = self.classes.get(claim.storage_class)
        if storage_class is None or storage_class.provisioner in ("", *UNCOUNTED):
            return None
        driver = DRIVERS.get(storage_class.provisioner, storage_class.provisioner)
        return CsiVolume(driver, f"unbound {claim.namespace}/{claim.name}")


def storage_table(lists: Lists) -> StorageTable:
    """Parse the storage lists of a snapshot. Raises `SelectorError`, `QuantityError`."""
    claims = [storage.claim(raw) for raw in lists.get("pvcs") or ()]
    volumes = {raw["metadata"]["name"]: storage.persistent_volume(raw) for raw in lists.get("pvs") or ()}
    classes = [storage.storage_class(raw) for raw in lists.get("storageclasses") or ()]
    drivers = lists.get("csidrivers") or ()
    csi_nodes = lists.get("csinodes") or ()
    by_class: defaultdict[str, list[PersistentVolume]] = defaultdict(list)
    for volume in volumes.values():
        by_class[volume.storage_class].append(volume)
    return StorageTable(
        claims={(claim.namespace, claim.name): claim for claim in claims},
        volumes=volumes,
        by_class=by_class,
        classes={entry.name: entry for entry in classes},
        capacities=tuple(storage.storage_capacity(raw) for raw in lists.get("csistoragecapacities") or ()),
        limits={raw["metadata"]["name"]: storage.volume_limits(raw) for raw in csi_nodes},
        migrated={
            plugin: frozenset(raw["metadata"]["name"] for raw in csi_nodes if plugin in storage.migrated_plugins(raw))
            for plugin in DRIVERS
        },
        tracking=frozenset(
            raw["metadata"]["name"] for raw in drivers if (raw.get("spec") or {}).get("storageCapacity")
        ),
        attachments=tuple(_attachments(lists.get("volumeattachments") or (), volumes)),
    )


def _attachments(items: Sequence[Object], volumes: Mapping[str, PersistentVolume]) -> list[Attachment]:
    found = []
    for raw in items:
        spec = raw.get("spec") or {}
        volume = volumes.get((spec.get("source") or {}).get("persistentVolumeName") or "")
        if volume is not None and volume.csi is not None and spec.get("attacher"):
            found.append(Attachment(spec["nodeName"], CsiVolume(spec["attacher"], volume.csi.handle)))
    return found

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims, persistent volumes, storage classes and the CSI objects, parsed to what placement reads.

Follows k8s.io/component-helpers/storage/volume.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import csi_migration, quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import (
    CsiVolume,
    TranslatedVolume,
    VolumeNodeAffinity,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    label_selector,
    node_selector_term,
)

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"

_MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim. `storage`: billionths of bytes asked for, None if no size is asked.

    `owner`: uid of the controlling object.
    """

    namespace: str
    name: str
    uid: str
    owner: str
    terminating: bool
    lost: bool
    volume_name: str
    bind_completed: bool
    selected_node: str | None
    storage_class: str
    storage: int | None
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    selector: LabelSelector | None

    @property
    def bound(self) -> bool:
        return bool(self.volume_name) and self.bind_completed

    def is_owned_by(self, uid: str) -> bool:
        """Whether the controlling object is the one with this uid."""
        return bool(self.owner) and self.owner == uid


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """`claim`: namespace, name and uid (may be empty) of the claim it is reserved for."""

    name: str
    labels: Labels
    terminating: bool
    available: bool
    claim: tuple[str, str, str] | None
    storage_class: str
    capacity: int
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    topology: VolumeNodeAffinity
    csi: CsiVolume | None
    migration: TranslatedVolume | None

    def is_reserved_for(self, claim: Claim) -> bool:
        if self.claim is None or self.claim[:2] != (claim.namespace, claim.name):
            return False
        return not self.claim[2] or self.claim[2] == claim.uid


@dataclass(frozen=True, slots=True)
class StorageClass:
    """`topologies`: alternatives, each a set of requirements on labels; empty if any node will do."""

    name: str
    provisioner: str
    binding_mode: str | None
    topologies: tuple[NodeSelectorTerm, ...]

    @property
    def waits_for_consumer(self) -> bool:
        return self.binding_mode == "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """A CSIStorageCapacity: the largest volume in bytes that a class can make for the selected nodes."""

    storage_class: str
    largest: int | None
    nodes: LabelSelector


def claim(raw: Object) -> Claim:
    """Parse a v1.PersistentVolumeClaim."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    annotations = metadata.get("annotations") or {}
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return Claim(
        namespace=metadata.get("namespace") or "default",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        owner=(controller(raw) or {}).get("uid") or "",
        terminating=metadata.get("deletionTimestamp") is not None,
        lost=status.get("phase") == "Lost",
        volume_name=spec.get("volumeName") or "",
        bind_completed=_BIND_COMPLETED in annotations,
        selected_node=annotations.get(_SELECTED_NODE),
        storage_class=annotations.get(_BETA_CLASS, spec.get("storageClassName") or ""),
        storage=None if requested is None else quantity.parse(requested),
        access_modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        selector=None if spec.get("selector") is None else label_selector(spec["selector"]),
    )


def persistent_volume(raw: Object) -> PersistentVolume:
    """Parse a v1.PersistentVolume."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    reserved, csi = spec.get("claimRef"), spec.get("csi")
    required = (spec.get("nodeAffinity") or {}).get("required")
    topology = None if required is None else tuple(_terms(required.get("nodeSelectorTerms")))
    annotations = metadata.get("annotations") or {}
    return PersistentVolume(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        terminating=metadata.get("deletionTimestamp") is not None,
        available=status.get("phase") == "Available",
        claim=reserved and (reserved.get("namespace") or "", reserved.get("name") or "", reserved.get("uid") or ""),
        storage_class=annotations.get(_BETA_CLASS, spec.get("storageClassName") or ""),
        capacity=quantity.parse((spec.get("capacity") or {}).get("storage") or "0"),
        access_modes=frozenset(spec.get("accessModes") or ()),
        volume_mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        topology=topology,
        csi=CsiVolume(csi["driver"], csi["volumeHandle"]) if csi else None,
        migration=csi_migration.migration(spec, metadata.get("labels") or {}, topology),
    )


def storage_class(raw: Object) -> StorageClass:
    """Parse a storage.k8s.io/v1 StorageClass."""
    topologies = tuple(
        NodeSelectorTerm(
            tuple(
                Requirement(entry["key"], "In", tuple(entry.get("values") or ()))
                for entry in term.get("matchLabelExpressions") or ()
            )
        )
        for term in raw.get("allowedTopologies") or ()
    )
    mode = raw.get("volumeBindingMode")
    return StorageClass(raw["metadata"]["name"], raw.get("provisioner") or "", mode, topologies)


def storage_capacity(raw: Object) -> StorageCapacity:
    """Parse a storage.k8s.io/v1 CSIStorageCapacity. One without a topology serves no node."""
    limit = raw.get("maximumVolumeSize") or raw.get("capacity")
    return StorageCapacity(
        storage_class=raw.get("storageClassName") or "",
        largest=None if limit is None else quantity.units(quantity.parse(limit)),
        nodes=label_selector(raw.get("nodeTopology")),
    )


def volume_limits(raw: Object) -> dict[str, int]:
    """The most volumes by driver that a CSINode allows; a driver without a limit is absent."""
    return {
        driver["name"]: int(driver["allocatable"]["count"])
        for driver in (raw.get("spec") or {}).get("drivers") or ()
        if (driver.get("allocatable") or {}).get("count") is not None
    }


def migrated_plugins(raw: Object) -> frozenset[str]:
    """The built-in volume types for which the node of a CSINode already asks the CSI driver."""
    listed = (raw["metadata"].get("annotations") or {}).get(_MIGRATED_PLUGINS) or ""
    return frozenset(listed.split(","))


def _terms(terms: list[Object] | None) -> list[NodeSelectorTerm]:
    return [node_selector_term(term) for term in terms or ()]

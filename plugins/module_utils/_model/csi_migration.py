# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of built-in types, which CSI drivers have taken over: what a driver calls them, and where it finds them.

Follows k8s.io/csi-translation-lib/plugins, for the types that the scheduler counts and translates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    NodeSelectorTerm,
    Requirement,
)

# Node selector terms, any of which must hold; None: no condition at all.
VolumeNodeAffinity: TypeAlias = "tuple[NodeSelectorTerm, ...] | None"

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_SEPARATOR = "__"
_UNSPECIFIED = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


@dataclass(frozen=True, slots=True)
class CsiVolume:
    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """A built-in type. `field`: of a volume source. `zone_key`: the driver's own label for zones, if it has one."""

    name: str
    driver: str
    field: str
    zone_key: str = ""


PLUGINS = (
    Plugin("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "awsElasticBlockStore", "topology.ebs.csi.aws.com/zone"),
    Plugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azureDisk"),
    Plugin("kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", "topology.cinder.csi.openstack.org/zone"),
    Plugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gcePersistentDisk", "topology.gke.io/zone"),
    Plugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworxVolume"),
)
DRIVERS: Mapping[str, str] = {plugin.name: plugin.driver for plugin in PLUGINS}
# These types have a driver too, but the scheduler does not count their volumes.
UNCOUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})


@dataclass(frozen=True, slots=True)
class TranslatedVolume:
    """What has become of a volume. `csi` is None, with the `error`, where it cannot be translated."""

    plugin: Plugin
    csi: CsiVolume | None
    topology: VolumeNodeAffinity
    error: str = ""


def inline_volume(source: Object) -> CsiVolume | None:
    """A volume named in a pod; None for types that are not counted."""
    plugin = _plugin_of(source)
    return None if plugin is None else CsiVolume(plugin.driver, _handle(plugin, source[plugin.field], ()))


def migration(source: Object, labels: Labels, topology: VolumeNodeAffinity) -> TranslatedVolume | None:
    """The translation of a persistent volume with these labels and conditions on nodes; None for other types."""
    plugin = _plugin_of(source)
    if plugin is None:
        return None
    translated = _translate(plugin, labels, topology) if plugin.zone_key else topology
    zones = labels.get(_OLD_ZONE) or labels.get(_ZONE) or ""
    try:
        handle = _handle(plugin, source[plugin.field], tuple(zones.split(_SEPARATOR)) if zones else ())
    except ValueError as error:
        return TranslatedVolume(plugin, None, translated, str(error))
    return TranslatedVolume(plugin, CsiVolume(plugin.driver, handle), translated)


def _plugin_of(source: Object) -> Plugin | None:
    return next((plugin for plugin in PLUGINS if source.get(plugin.field)), None)


def _handle(plugin: Plugin, disk: Object, zones: tuple[str, ...]) -> str:
    """The driver's name for a disk. Raises `ValueError` for zones of which no region can be told."""
    if plugin.field == "gcePersistentDisk":
        return f"projects/{_UNSPECIFIED}/{_gce_place(zones)}/disks/{disk['pdName']}"
    if plugin.field == "azureDisk":
        return str(disk["diskURI"])
    handle = str(disk["volumeID"])
    if plugin.field == "awsElasticBlockStore" and handle.startswith("aws://"):
        found = _AWS_VOLUME.search(handle)
        return found[0] if found else handle
    return handle


def _gce_place(zones: tuple[str, ...]) -> str:
    if len(zones) < 2:
        return f"zones/{zones[0] if zones else _UNSPECIFIED}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        raise ValueError(f"the zones {', '.join(zones)} have no common region")
    return f"regions/{regions.pop()}"


def _translate(plugin: Plugin, labels: Labels, topology: VolumeNodeAffinity) -> VolumeNodeAffinity:
    """Conditions on zones in the driver's words: those there are, else the ones that labels tell."""
    keys = {requirement.key for term in topology or () for requirement in term.labels}
    known = (*keys, *labels)
    in_use = next((key for place in (keys, labels) for key in (_ZONE, _OLD_ZONE) if key in place), _ZONE)
    renamed = {in_use: plugin.zone_key, **({_OLD_REGION: _REGION} if in_use == _OLD_ZONE else {})}
    terms = tuple(
        replace(
            term,
            labels=tuple(replace(entry, key=renamed.get(entry.key, entry.key)) for entry in term.labels),
        )
        for term in topology or ()
    )
    if in_use in keys or in_use not in known:
        return None if topology is None else terms
    zones = sorted({zone.strip() for zone in labels[in_use].split(_SEPARATOR) if zone.strip()})
    if not zones:
        return None if topology is None else terms
    added = Requirement(plugin.zone_key, "In", tuple(zones))
    return tuple(replace(term, labels=(*term.labels, added)) for term in terms or (NodeSelectorTerm(),))

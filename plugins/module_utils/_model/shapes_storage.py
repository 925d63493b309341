# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of what is read of claims, volumes, storage classes and the CSI objects."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import each, record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes_core import (
    AMOUNTS,
    LABEL_SELECTOR,
    NODE_SELECTOR,
    RESOURCES,
    TEXTS,
    VOLUME_SOURCES,
    resource,
)

CLAIM = resource(
    spec=record(
        texts="volumeName volumeMode storageClassName volumeAttributesClassName",
        accessModes=TEXTS,
        resources=RESOURCES,
        selector=LABEL_SELECTOR,
    ),
    status=record(texts="phase", accessModes=TEXTS, capacity=AMOUNTS),
)
_VOLUME_SPEC = record(
    of=VOLUME_SOURCES,
    texts="persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName volumeMode",
    accessModes=TEXTS,
    capacity=AMOUNTS,
    claimRef=record(texts="namespace name uid"),
    csi=record("driver volumeHandle", texts="driver volumeHandle", flags="readOnly"),
    local=record("path", texts="path"),
    nodeAffinity=record(required=NODE_SELECTOR),
)
PERSISTENT_VOLUME = resource(spec=_VOLUME_SPEC, status=record(texts="phase"))
STORAGE_CLASS = resource(
    texts="provisioner volumeBindingMode reclaimPolicy",
    allowedTopologies=each(record(matchLabelExpressions=each(record("key", texts="key", values=TEXTS)))),
)
CSI_NODE = resource(
    spec=record(drivers=each(record("name", texts="name", allocatable=record(wholes="count"), topologyKeys=TEXTS)))
)
CSI_DRIVER = resource(spec=record(flags="attachRequired storageCapacity preventPodSchedulingIfMissing"))
CSI_STORAGE_CAPACITY = resource(
    texts="storageClassName", amounts="capacity maximumVolumeSize", nodeTopology=LABEL_SELECTOR
)
VOLUME_ATTACHMENT = resource(
    "spec",
    spec=record(
        "nodeName",
        texts="attacher nodeName",
        source=record(texts="persistentVolumeName", inlineVolumeSpec=_VOLUME_SPEC),
    ),
    status=record(flags="attached"),
)

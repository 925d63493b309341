# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of claims, volumes, storage classes and the CSI objects: what binds a pod's volumes to nodes."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import each, fields, keys, resource

_CLASS = "volume.beta.kubernetes.io/storage-class"

CLAIM = resource(
    annotations=keys(
        _CLASS,
        "pv.kubernetes.io/bind-completed",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
        "volume.beta.kubernetes.io/storage-provisioner",
    ),
    spec=fields("accessModes volumeName volumeMode storageClassName resources selector volumeAttributesClassName"),
    status=fields("phase accessModes capacity"),
)

VOLUME_SPEC = fields(
    "accessModes capacity nodeAffinity persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName "
    "volumeMode",
    claimRef=fields("namespace name uid"),
    csi=fields("driver volumeHandle readOnly"),
    local=fields("path"),
    awsElasticBlockStore=fields("volumeID partition readOnly"),
    azureDisk=fields("diskName diskURI readOnly"),
    azureFile=fields("shareName readOnly"),
    cinder=fields("volumeID readOnly"),
    gcePersistentDisk=fields("pdName partition readOnly"),
    portworxVolume=fields("volumeID readOnly"),
    vsphereVolume=fields("volumePath"),
)

PERSISTENT_VOLUME = resource(
    annotations=keys(_CLASS, "pv.kubernetes.io/migrated-to"), spec=VOLUME_SPEC, status=fields("phase")
)

STORAGE_CLASS = resource(
    "provisioner volumeBindingMode allowedTopologies reclaimPolicy",
    annotations=keys(
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.kubevirt.io/is-default-virt-class",
    ),
)

CSI_NODE = resource(
    annotations=keys("storage.alpha.kubernetes.io/migrated-plugins"),
    spec=fields(drivers=each(fields("name allocatable topologyKeys"))),
)

CSI_DRIVER = resource(spec=fields("attachRequired storageCapacity preventPodSchedulingIfMissing"))

CSI_STORAGE_CAPACITY = resource("nodeTopology storageClassName capacity maximumVolumeSize")

VOLUME_ATTACHMENT = resource(
    spec=fields("attacher nodeName", source=fields("persistentVolumeName", inlineVolumeSpec=VOLUME_SPEC)),
    status=fields("attached"),
)

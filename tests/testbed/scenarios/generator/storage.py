# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of generated VMs: volumes of a network storage that any node can reach, so that only access modes matter."""

from __future__ import annotations

from testbed.api import Object

DRIVER = "block.csi.example"
STORAGE_CLASS = "block"
SIZE = "10Gi"


def storage_classes() -> list[Object]:
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVER},
            # Nothing in a testbed attaches volumes; the attach controller must not wait for it.
            "spec": {"attachRequired": False},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "Immediate",
        },
    ]


def disk_claim(namespace: str, name: str, *, shared: bool) -> list[Object]:
    """A claim and the volume made for it; the volume controller binds them."""
    mode = "ReadWriteMany" if shared else "ReadWriteOnce"
    volume = f"{namespace}-{name}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": SIZE},
                "accessModes": [mode],
                "volumeMode": "Block",
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": DRIVER, "volumeHandle": volume},
                "claimRef": {"namespace": namespace, "name": name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [mode],
                "volumeMode": "Block",
                "storageClassName": STORAGE_CLASS,
                "volumeName": volume,
                "resources": {"requests": {"storage": SIZE}},
            },
        },
    ]

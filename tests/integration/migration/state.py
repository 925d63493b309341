# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests with a state of their own: on a claim that KubeVirt makes anew for each migration, and on a shared one."""

from __future__ import annotations

from integration.migration.guests import Guest
from testbed.api import Object
from testbed.scenarios.generator.storage import DRIVER

STORAGE_CLASS = "state"
# One for the claim that the guest starts with, one for each of its migrations.
VOLUMES = 3
STATE = "persistent-state-for"

ANYWHERE = {"kubernetes.io/os": "linux"}
MOVED, SHARED = "tpm-with-state", "efi-with-state"
GUESTS = (
    Guest(MOVED, domain={"devices": {"tpm": {"persistent": True}}}, second=ANYWHERE),
    Guest(
        SHARED,
        domain={"firmware": {"bootloader": {"efi": {"secureBoot": False, "persistent": True}}}},
        second=ANYWHERE,
    ),
)


def storage(namespace: str) -> list[Object]:
    """What KubeVirt makes claims from, and a claim that it finds."""
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubevirt.io/is-default-virt-class": "true"},
            },
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        *(volume(f"{STORAGE_CLASS}-{number}", "ReadWriteOnce") for number in range(VOLUMES)),
        volume(f"{STORAGE_CLASS}-shared", "ReadWriteMany"),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "shared-state", "namespace": namespace, "labels": {STATE: SHARED}},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": "10Mi"}},
            },
        },
    ]


def volume(name: str, mode: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
        },
    }

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of a launcher pod that tie it to nodes, and images that a node may hold.

Follows pkg/virt-controller/services/rendervolumes.go and pkg/storage/backend-storage/backend-storage.go. Left out is
what a node has for any pod: empty directories, secrets, configuration.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.containers import IMAGE_VOLUME, Hook
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

Volume = JsonObject

# Name of the volume with what outlives the pod.
STATE = "vm-state"
_STATE_OF = "persistent-state-for"
_HOST_PATH_TYPES = {"Disk": "Directory", "DiskOrCreate": "DirectoryOrCreate"}


def volumes(vmi: Object, configuration: Configuration, hooks: Sequence[Hook], namespace: Namespace) -> list[Volume]:
    found = list(_of_disks(vmi))
    if claim := state_claim(vmi, namespace):
        found.append(_claim(STATE, {"claimName": claim}))
    if configuration.enabled(IMAGE_VOLUME) and (disks := traits.container_disks(vmi)):
        found += [_image(name, disk.get("image") or "") for name, disk in disks]
        found.append(_image("launcher-volume", namespace.launcher_image))
    return [*found, *(_claim(hook.claim, {"claimName": hook.claim}) for hook in hooks if hook.claim)]


def claims(vmi: Object) -> list[str]:
    """Names of the claims of its disks, without those that are plugged in."""
    found = (volume.get("persistentVolumeClaim") for volume in _of_disks(vmi))
    return [claim["claimName"] for claim in found if claim]


def state_claim(vmi: Object, namespace: Namespace) -> str:
    """Name of the claim that keeps the guest's state; empty if it needs none, or if KubeVirt has yet to make it."""
    if not traits.needs_state(vmi):
        return ""
    name = vmi["metadata"]["name"]
    staying = [
        claim["metadata"] for claim in namespace.claims.values() if not claim["metadata"].get("deletionTimestamp")
    ]
    labelled = (claim["name"] for claim in staying if (claim.get("labels") or {}).get(_STATE_OF) == name)
    older = (claim["name"] for claim in staying if claim["name"] == f"{_STATE_OF}-{name}")
    return next(labelled, None) or next(older, "")


def plugged_volumes(vmi: Object) -> set[str]:
    """Names of those that are plugged into the running guest, by pods of their own."""
    statuses = (vmi.get("status") or {}).get("volumeStatus") or ()
    plugged = {status["name"] for status in statuses if traits.has(status, "hotplugVolume")}
    for volume in traits.volumes(vmi):
        if any((volume.get(kind) or {}).get("hotpluggable") for kind in ("dataVolume", "persistentVolumeClaim")):
            plugged.add(volume["name"])
    return plugged


def _of_disks(vmi: Object) -> Iterator[Volume]:
    plugged = plugged_volumes(vmi)
    for volume in traits.volumes(vmi):
        name = volume["name"]
        if name in plugged:
            continue
        if claim := volume.get("persistentVolumeClaim"):
            yield _claim(name, claim)
        if ephemeral := volume.get("ephemeral"):
            yield _claim(name, ephemeral["persistentVolumeClaim"])
        if disk := volume.get("hostDisk"):
            kind = _HOST_PATH_TYPES.get(disk.get("type") or "", "")
            yield {"name": name, "hostPath": {"path": posixpath.dirname(disk["path"]), "type": kind}}
        if data_volume := volume.get("dataVolume"):
            yield _claim(name, {"claimName": data_volume["name"]})


def _claim(name: str, source: Object) -> Volume:
    claim = {"claimName": source["claimName"], **({"readOnly": True} if source.get("readOnly") else {})}
    return {"name": name, "persistentVolumeClaim": claim}


def _image(name: str, reference: str) -> Volume:
    return {"name": name, "image": {"reference": reference}}

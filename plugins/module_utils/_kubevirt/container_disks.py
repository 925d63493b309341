# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The very images that a guest was started from: its target pod asks for them by digest, whatever a tag means by now.

Follows ExtractImageIDsFromSourcePod in pkg/container-disk/container-disk.go, RenderMigrationManifest and
renderLaunchManifest in pkg/virt-controller/services/template.go, withImageVolumes in rendervolumes.go. An image is a
container beside the guest; with the feature gate ImageVolume it is a volume, and a container that only starts and ends
brings its digest to light, which is needed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

_PREFIX, _INIT, _BINARY = "volume", "-init", "container-disk-binary"
_KERNEL = "kernel-boot-volume"
_LAUNCHER = "launcher-volume"
_BY_DIGEST = "@sha256:"
_DIGEST = re.compile(r"sha256:[a-zA-Z0-9]+")
_TAG = re.compile(r":[^:/]*$")


def with_digests(vmi: Object, source_pod: Object, as_volumes: bool) -> JsonObject | NoTargetPod:
    """Containers and volumes of a pod spec, by field, that differ from those of the source pod; mostly none.

    `as_volumes`: whether the feature gate is on. A container whose image is not told stays as it is: lists may leave it
    out.
    """
    tags = dict(_images(vmi["spec"]))
    if not tags:
        return {}
    known = tags | dict(_of_volumes(source_pod["spec"], tags)) if as_volumes else tags
    images = _told(known, _statuses(source_pod, as_volumes))
    if isinstance(images, NoTargetPod):
        return images
    spec = source_pod["spec"]
    fields = {field: spec[field] for field in ("containers", "initContainers") if spec.get(field)}
    if not as_volumes:
        containers = {field: _renamed(found, images) for field, found in fields.items()}
        return {
            **containers,
            "volumes": [entry for entry in spec.get("volumes") or () if not _is_of_gate(entry, images)],
        }
    unknown = {f"{_PREFIX}{name}" for name, image in images.items() if _BY_DIGEST not in image}
    needless = {f"{_PREFIX}{name}{suffix}" for name in images for suffix in ("", _INIT)} | {_BINARY}
    needless -= unknown
    left = {field: [entry for entry in found if entry["name"] not in needless] for field, found in fields.items()}
    return {**left, "volumes": list(_volumes(spec.get("volumes") or (), images, bool(unknown)))}


def _statuses(source_pod: Object, as_volumes: bool) -> Iterator[Object]:
    status = source_pod.get("status") or {}
    yield from status.get("containerStatuses") or ()
    if as_volumes:
        yield from status.get("initContainerStatuses") or ()


def _told(images: Mapping[str, str], statuses: Iterable[Object]) -> dict[str, str] | NoTargetPod:
    """The images by the digests of their containers."""
    found = dict(images)
    for status in statuses:
        name = str(status["name"]).removeprefix(_PREFIX)
        if name not in found or status["name"] == name or "imageID" not in status:
            continue
        digest = _DIGEST.search(status["imageID"])
        if digest is None:
            return NoTargetPod(
                "image-digest-unknown",
                f"its disk {name} comes from the image {found[name]}, of which the pod's status tells no digest",
                "check the container runtime of its node",
            )
        found[name] = f"{_without_version(found[name])}@{digest[0]}"
    return found


def _of_volumes(spec: Object, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those that an earlier migration asked for by digest."""
    for volume in spec.get("volumes") or ():
        reference = (volume.get("image") or {}).get("reference") or ""
        if volume["name"] in names and _BY_DIGEST in reference:
            yield volume["name"], reference


def _is_of_gate(volume: Object, images: Mapping[str, str]) -> bool:
    """Whether KubeVirt made it while the gate was on."""
    return bool(volume.get("image")) and (volume["name"] in images or volume["name"] == _LAUNCHER)


def _volumes(before: Sequence[Object], images: Mapping[str, str], unknown: bool) -> Iterator[Object]:
    """With those of the images; the one of the launcher only as long as a digest is not known."""
    for volume in before:
        if volume["name"] in images:
            yield {**volume, "image": {**(volume.get("image") or {}), "reference": images[volume["name"]]}}
        elif unknown or volume["name"] != _LAUNCHER:
            yield volume
    there = {volume["name"] for volume in before}
    for name, image in images.items():
        if name not in there:
            yield {"name": name, "image": {"reference": image}}


def _images(spec: Object) -> Iterator[tuple[str, str]]:
    for volume in spec.get("volumes") or ():
        if volume.get("containerDisk"):
            yield volume["name"], volume["containerDisk"]["image"]
    kernel = ((spec.get("domain") or {}).get("firmware") or {}).get("kernelBoot") or {}
    if (kernel.get("container") or {}).get("image"):
        yield _KERNEL, kernel["container"]["image"]


def _without_version(image: str) -> str:
    name, at, _digest = image.partition(_BY_DIGEST)
    return name if at else _TAG.sub("", image)


def _renamed(containers: Sequence[Object], images: Mapping[str, str]) -> list[Object]:
    names = {f"{_PREFIX}{name}{suffix}": image for name, image in images.items() for suffix in ("", _INIT)}
    return [
        {**container, "image": names[container["name"]]} if container["name"] in names else container
        for container in containers
    ]

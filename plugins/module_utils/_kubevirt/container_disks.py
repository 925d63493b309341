# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The very images that a guest was started from: its target pod asks for them by digest, whatever a tag means by now.

Follows ExtractImageIDsFromSourcePod in pkg/container-disk/container-disk.go and RenderMigrationManifest in
pkg/virt-controller/services/template.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod

Object = Mapping[str, Any]

_PREFIX, _INIT = "volume", "-init"
_KERNEL = "kernel-boot-volume"
_DIGEST = re.compile(r"sha256:[a-zA-Z0-9]+")
_TAG = re.compile(r":[^:/]*$")


def with_digests(vmi: Object, source_pod: Object) -> dict[str, Any] | NoTargetPod:
    """Containers of a pod spec, by field, that differ from those of the source pod; mostly none.

    A running container whose image is not told stays as it is: lists may leave it out.
    """
    images = dict(_images(vmi["spec"]))
    for status in (source_pod.get("status") or {}).get("containerStatuses") or () if images else ():
        name = str(status["name"]).removeprefix(_PREFIX)
        if name not in images or status["name"] == name or "imageID" not in status:
            continue
        digest = _DIGEST.search(status["imageID"])
        if digest is None:
            return NoTargetPod(
                "image-digest-unknown",
                f"its disk {name} comes from the image {images[name]}, of which the pod's status tells no digest",
                "check the container runtime of its node",
            )
        images[name] = f"{_without_version(images[name])}@{digest[0]}"
    if not images:
        return {}
    spec = source_pod["spec"]
    return {field: _renamed(spec[field], images) for field in ("containers", "initContainers") if spec.get(field)}


def _images(spec: Object) -> Iterator[tuple[str, str]]:
    for volume in spec.get("volumes") or ():
        if volume.get("containerDisk"):
            yield volume["name"], volume["containerDisk"]["image"]
    kernel = ((spec.get("domain") or {}).get("firmware") or {}).get("kernelBoot") or {}
    if (kernel.get("container") or {}).get("image"):
        yield _KERNEL, kernel["container"]["image"]


def _without_version(image: str) -> str:
    name, at, _digest = image.partition("@sha256:")
    return name if at else _TAG.sub("", image)


def _renamed(containers: Sequence[Object], images: Mapping[str, str]) -> list[Object]:
    names = {f"{_PREFIX}{name}{suffix}": image for name, image in images.items() for suffix in ("", _INIT)}
    return [
        {**container, "image": names[container["name"]]} if container["name"] in names else container
        for container in containers
    ]

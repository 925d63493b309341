# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a launcher pod, in KubeVirt's order.

Follows renderLaunchManifest in pkg/virt-controller/services/template.go, virtiofs.go, serialconsolelog.go and
pkg/container-disk/container-disk.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import support, traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.hooks import Hook

Object = Mapping[str, Any]
Container = dict[str, Any]

IMAGE_VOLUME = "ImageVolume"


def containers(
    vmi: Object, configuration: Configuration, hooks: Sequence[Hook], compute: Object, image: str
) -> list[Container]:
    """`compute`: resources of the guest's container. `image`: virt-launcher's, may be empty."""
    exact = traits.is_exact(vmi)
    found = [_container("compute", image, compute)]
    if not configuration.enabled(IMAGE_VOLUME):
        for name, disk in traits.container_disks(vmi):
            resources = support.container_disk(configuration, exact)
            found.append(_container(f"volume{name}", disk.get("image") or "", resources))
    shared = support.file_system(configuration, exact)
    found += [_container(f"virtiofs-{name}", image, shared) for name in _file_systems(vmi)]
    hooked = support.hook(configuration, exact)
    return [*found, *(_container(f"hook-sidecar-{number}", hook.image, hooked) for number, hook in enumerate(hooks))]


def init_containers(vmi: Object, configuration: Configuration, image: str) -> list[Container]:
    """The guest's console first, which stays beside it; then what brings disks from images."""
    exact = traits.is_exact(vmi)
    found = []
    if _logs_console(vmi, configuration):
        console = _container("guest-console-log", image, support.console_log(configuration, exact))
        found.append({**console, "restartPolicy": "Always"})
    disks = traits.container_disks(vmi)
    with_volumes = configuration.enabled(IMAGE_VOLUME)
    if disks and not with_volumes:
        resources = support.container_disk_binary(configuration, exact)
        found.append(_container("container-disk-binary", image, resources))
    for name, disk in disks:
        title = f"volume{name}" if with_volumes else f"volume{name}-init"
        found.append(_container(title, disk.get("image") or "", support.container_disk(configuration, exact)))
    return found


def _container(name: str, image: str, resources: Object) -> Container:
    return {"name": name, **({"image": image} if image else {}), "resources": dict(resources)}


def _file_systems(vmi: Object) -> Iterator[str]:
    """Of those that are mounted from a path of the container, an admission webhook takes care."""
    shared = {entry["name"] for entry in traits.devices(vmi).get("filesystems") or ()}
    for volume in traits.volumes(vmi):
        if volume["name"] in shared and not traits.has(volume, "containerPath"):
            yield volume["name"]


def _logs_console(vmi: Object, configuration: Configuration) -> bool:
    devices = traits.devices(vmi)
    if devices.get("autoattachSerialConsole") is False:
        return False
    own = devices.get("logSerialConsole")
    return configuration.serial_console_log if own is None else bool(own)

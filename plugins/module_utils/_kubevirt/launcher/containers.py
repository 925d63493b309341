# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a launcher pod, in KubeVirt's order.

Follows renderLaunchManifest in pkg/virt-controller/services/template.go, virtiofs.go, serialconsolelog.go,
renderresources.go, pkg/container-disk/container-disk.go and pkg/virtiofs/resources.go, and virt-launcher-pod-mutator.go
of virt-api. Those that stand beside the guest's have amounts by kind, which KubeVirt's configuration may replace.

Some are programs that change how the guest is defined: hooks of the VMI, and network bindings' own. They follow
pkg/hooks/hooks.go and pkg/network/netbinding/netbinding.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    SupportContainer,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.secret_fields import HOOK_SIDECARS

Container = JsonObject
# `limits` and `requests` by name, as the API has them.
Resources = dict[str, JsonObject]

IMAGE_VOLUME = "ImageVolume"
_NONE = SupportContainer()


def containers(
    vmi: Object, configuration: Configuration, hooks: Sequence[Hook], compute: Object, image: str
) -> list[Container]:
    """`compute`: resources of the guest's container. `image`: virt-launcher's, may be empty."""
    exact = traits.is_exact(vmi)
    found = [_container("compute", image, compute)]
    if not configuration.enabled(IMAGE_VOLUME):
        for name, disk in traits.container_disks(vmi):
            resources = _container_disk(configuration, exact)
            found.append(_container(f"volume{name}", disk.get("image") or "", resources))
    shared = _file_system(configuration, exact)
    found += [_container(f"virtiofs-{name}", image, shared) for name in traits.file_systems(vmi)]
    hooked = _hook(configuration, exact)
    found += [_container(f"hook-sidecar-{number}", hook.image, hooked) for number, hook in enumerate(hooks)]
    # virt-api adds these where something is mounted at the path; elsewhere the guest does not start.
    return [*found, *(_container(f"virtiofs-{name}", image, shared) for name in traits.container_paths(vmi))]


def init_containers(vmi: Object, configuration: Configuration, image: str) -> list[Container]:
    """The guest's console first, which stays beside it; then what brings disks from images."""
    exact = traits.is_exact(vmi)
    found = []
    if _logs_console(vmi, configuration):
        console = _container("guest-console-log", image, _console_log(configuration, exact))
        found.append({**console, "restartPolicy": "Always"})
    disks = traits.container_disks(vmi)
    with_volumes = configuration.enabled(IMAGE_VOLUME)
    if disks and not with_volumes:
        resources = _container_disk_binary(configuration, exact)
        found.append(_container("container-disk-binary", image, resources))
    for name, disk in disks:
        title = f"volume{name}" if with_volumes else f"volume{name}-init"
        found.append(_container(title, disk.get("image") or "", _container_disk(configuration, exact)))
    return found


def _container(name: str, image: str, resources: Object) -> Container:
    return {"name": name, **({"image": image} if image else {}), "resources": dict(resources)}


def _logs_console(vmi: Object, configuration: Configuration) -> bool:
    devices = traits.devices(vmi)
    if devices.get("autoattachSerialConsole") is False:
        return False
    own = devices.get("logSerialConsole")
    return configuration.serial_console_log if own is None else bool(own)


def _console_log(configuration: Configuration, exact: bool) -> Resources:
    """`exact` here and below: the pod's requests are to equal its limits."""
    return _sized(configuration, "guest-console-log", exact, _both("5m", "35M"), _both("15m", "60M"))


def _container_disk(configuration: Configuration, exact: bool) -> Resources:
    found = _sized(configuration, "container-disk", exact, _both("1m", "1M"), _both("10m", "40M"))
    found["requests"][EPHEMERAL_STORAGE] = "50M"
    return found


def _container_disk_binary(configuration: Configuration, exact: bool) -> Resources:
    limits = _both("10m" if exact else "100m", "40M")
    return _sized(configuration, "container-disk", exact, _both("10m", "1M"), limits)


def _file_system(configuration: Configuration, exact: bool) -> Resources:
    return _sized(configuration, "virtiofs", exact, _both("10m", "1M"), _both("100m", "80M"))


def _hook(configuration: Configuration, exact: bool) -> Resources:
    """Nothing by default, which a quality of service Guaranteed does not allow."""
    return _sized(configuration, "sidecar", exact, {}, _both("200m", "64M") if exact else {})


def _both(cpu: str, memory: str) -> JsonObject:
    return {CPU: cpu, MEMORY: memory}


def _sized(configuration: Configuration, kind: str, exact: bool, requests: JsonObject, limits: JsonObject) -> Resources:
    given = configuration.support_containers.get(kind, _NONE)
    limits = {**limits, **_stated(given.limits)}
    return {"limits": limits, "requests": dict(limits) if exact else {**requests, **_stated(given.requests)}}


def _stated(amounts: Object) -> JsonObject:
    """Nothing but cpu and memory counts, and zero counts as not given."""
    return {name: amount for name, amount in amounts.items() if name in (CPU, MEMORY) and quantity.parse(amount)}


class HookError(ValueError):
    """KubeVirt cannot make a pod, as a hook cannot be understood or is not configured: a clause that says which."""


@dataclass(frozen=True, slots=True)
class Hook:
    """image: empty for KubeVirt's own. claim: name of a PersistentVolumeClaim that it needs, or empty."""

    image: str
    claim: str = ""


def hooks(vmi: Object, configuration: Configuration) -> list[Hook]:
    """In the order of their containers. Raises HookError."""
    return [*_own_hooks(vmi), *_hooks_of_bindings(vmi, configuration)]


def _own_hooks(vmi: Object) -> Iterator[Hook]:
    text = (vmi["metadata"].get("annotations") or {}).get(HOOK_SIDECARS)
    if text is None:
        return
    try:
        for entry in json.loads(text) or ():
            yield Hook(entry.get("image") or "", (entry.get("pvc") or {}).get("name") or "")
    except (ValueError, RecursionError, TypeError, AttributeError) as error:
        raise HookError(f"its annotation {HOOK_SIDECARS} is no JSON list of objects ({error})") from error


def _hooks_of_bindings(vmi: Object, configuration: Configuration) -> Iterator[Hook]:
    names = [entry["binding"]["name"] for entry in traits.interfaces(vmi) if traits.has(entry, "binding")]
    for name in dict.fromkeys(names):
        plugin = configuration.network_bindings.get(name)
        if plugin is None:
            raise HookError(f"KubeVirt's configuration has no network binding {name!r}")
        if plugin.get("sidecarImage"):
            yield Hook(plugin["sidecarImage"])

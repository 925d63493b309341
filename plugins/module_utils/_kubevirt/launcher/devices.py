# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that a VMI needs of its node's device plugins.

Follows pkg/virt-controller/services/renderresources.go, pkg/network/vmispec/devices.go and pkg/network/multus/nad.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import KVM, Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import KUBEVIRTS_DEVICES

# By this feature gate a webhook of others adds the devices of networks, and KubeVirt none.
_ADDED_BY_OTHERS = "ExternalNetResourceInjection"
# Fields of a device that comes from a ResourceClaim rather than from a device plugin.
_CLAIM = ("claimName", "requestName")


def virtualization_devices(vmi: Object, configuration: Configuration) -> Iterator[str]:
    """Of what a node with virt-handler offers; one of each."""
    devices, interfaces = traits.devices(vmi), traits.interfaces(vmi)
    if interfaces or devices.get("autoattachPodInterface") is not False:
        yield f"{KUBEVIRTS_DEVICES}tun"
    if not configuration.use_emulation:
        if any(entry.get("model") in (None, "", "virtio") for entry in interfaces):
            yield f"{KUBEVIRTS_DEVICES}vhost-net"
        yield f"{KUBEVIRTS_DEVICES}{'kvm' if configuration.hypervisor == KVM else 'mshv'}"
    if devices.get("autoattachVSOCK"):
        yield f"{KUBEVIRTS_DEVICES}vhost-vsock"


def special_devices(vmi: Object) -> Iterator[str]:
    """GPUs and other devices of the host by resource name, and what single features need. A name may come again."""
    devices = traits.devices(vmi)
    for device in (*(devices.get("gpus") or ()), *(devices.get("hostDevices") or ())):
        if device.get("deviceName") and not any(traits.has(device, field) for field in _CLAIM):
            yield device["deviceName"]
    security = traits.domain(vmi).get("launchSecurity") or {}
    if traits.has(security, "sev") or traits.has(security, "snp"):
        yield f"{KUBEVIRTS_DEVICES}sev"
    if any((disk.get("lun") or {}).get("reservation") for disk in devices.get("disks") or ()):
        yield f"{KUBEVIRTS_DEVICES}pr-helper"


def network_devices(vmi: Object, configuration: Configuration, namespace: Namespace) -> Iterator[str]:
    """Of secondary networks, as far as their definitions are known; one for each network, so a name may come again."""
    if not configuration.enabled(_ADDED_BY_OTHERS):
        devices = (namespace.network_devices.get(title) for title in _definitions(vmi))
        yield from (device for device in devices if device)


def unknown_networks(vmi: Object, configuration: Configuration, namespace: Namespace) -> list[str]:
    """Namespace/name of definitions by which the pod may get devices that cannot be foreseen."""
    known: Mapping[str, str] = {} if configuration.enabled(_ADDED_BY_OTHERS) else namespace.network_devices
    return [title for title in dict.fromkeys(_definitions(vmi)) if title not in known]


def _definitions(vmi: Object) -> Iterator[str]:
    for network in vmi["spec"].get("networks") or ():
        name = (network.get("multus") or {}).get("networkName")
        if name:
            yield name if "/" in name else f"{vmi['metadata'].get('namespace') or 'default'}/{name}"


def claims(vmi: Object, configuration: Configuration) -> list[dict[str, str]]:
    """Devices by ResourceClaim, as the compute container refers to them."""
    kinds = (("gpus", "GPUsWithDRA"), ("hostDevices", "HostDevicesWithDRA"))
    found = []
    for name, gate in kinds:
        for device in traits.devices(vmi).get(name) or ():
            claimed = not device.get("deviceName") and all(traits.has(device, field) for field in _CLAIM)
            if claimed and configuration.enabled(gate):
                found.append({"name": device["claimName"], "request": device["requestName"]})
    return found


def forbidden_devices(vmi: Object, configuration: Configuration) -> list[str]:
    """Resource names that KubeVirt's configuration does not permit; it makes no pod with one of them."""
    permitted, devices = configuration.permitted_devices, traits.devices(vmi)
    if permitted is None:
        return []
    gpus = () if configuration.enabled("GPUsWithDRA") else devices.get("gpus") or ()
    asked = (device.get("deviceName") or "" for device in (*gpus, *(devices.get("hostDevices") or ())))
    return [name for name in asked if name not in permitted]

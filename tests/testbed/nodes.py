# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake worker nodes, as a kubelet and KubeVirt's node labeller would present real ones.

Only creation carries the status: the API server ignores it in later applies to the main resource, so that applying a
node again never undoes what has happened to it since (a reboot's boot ID, conditions).
"""

from __future__ import annotations

import hashlib
import ipaddress
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.api import Object

# What virt-handler advertises for each device it finds (its flag --max-devices).
KUBEVIRT_DEVICES = {f"devices.kubevirt.io/{device}": "1k" for device in ("kvm", "tun", "vhost-net")}
# The alias that virtual machines ask for, and the version that libvirt makes of it.
MACHINE_TYPES = ("q35", "pc-q35-rhel9.6.0")
# Identifiers of machines are derived from their names, so that the same scenario gives the same bytes.
MACHINE_IDS = uuid.UUID("5f4c9f6e-6a39-4cf2-9a53-0b8a8e2f6c11")


@dataclass(frozen=True)
class Cpu:
    """A host CPU as libvirt describes it.

    `usable`: named models that guests can be given on it, itself included. `required`: features that the host model has
    beyond its named model; a guest with CPU model host-model migrates only to hosts that have them all. `features`:
    everything the host has.
    """

    vendor: str
    model: str
    usable: tuple[str, ...]
    required: tuple[str, ...]
    features: tuple[str, ...]


_OLD_INTEL = ("Penryn", "Westmere", "Haswell", "Broadwell")
_BASE = ("aes", "avx", "avx2", "hypervisor", "sse4.2", "tsc_adjust", "xsaves")
_SKYLAKE = (*_BASE, "avx512f", "ssbd", "vmx")
_ICELAKE = (*_SKYLAKE, "avx512vnni", "fsrm", "sha-ni")
_ROME = (*_BASE, "clwb", "svm", "xsaveerptr")

SKYLAKE = Cpu(
    "Intel", "Skylake-Server", (*_OLD_INTEL, "Skylake-Server"), ("hypervisor", "ssbd", "tsc_adjust", "vmx"), _SKYLAKE
)
ICELAKE = Cpu(
    "Intel",
    "Icelake-Server",
    (*_OLD_INTEL, "Skylake-Server", "Icelake-Server"),
    ("fsrm", "hypervisor", "tsc_adjust", "vmx"),
    _ICELAKE,
)
ROME = Cpu("AMD", "EPYC-Rome", ("EPYC", "EPYC-Rome"), ("hypervisor", "svm", "tsc_adjust", "xsaveerptr"), _ROME)
CPUS = {cpu.model: cpu for cpu in (SKYLAKE, ICELAKE, ROME)}
# QEMU knows every model on every host, whether the host could run it or not; the node labeller publishes them all.
KNOWN_MODELS = sorted({model for cpu in CPUS.values() for model in cpu.usable})


def cpu_labels(cpu: Cpu) -> dict[str, str]:
    """Labels that KubeVirt's node labeller gives to a host with this CPU."""
    keys = [f"cpu-vendor.node.kubevirt.io/{cpu.vendor}", f"host-model-cpu.node.kubevirt.io/{cpu.model}"]
    keys += [f"cpu-model.node.kubevirt.io/{model}" for model in cpu.usable]
    keys += [f"cpu-model-migration.node.kubevirt.io/{model}" for model in KNOWN_MODELS]
    keys += [f"cpu-feature.node.kubevirt.io/{feature}" for feature in cpu.features]
    keys += [f"host-model-required-features.node.kubevirt.io/{feature}" for feature in cpu.required]
    return dict.fromkeys(keys, "true")


def address(name: str) -> str:
    """An address in 10.0.0.0/8 that depends on the node's name alone; nothing is ever sent there."""
    digest = hashlib.sha256(name.encode()).digest()
    return str(ipaddress.IPv4Address(0x0A000000 | int.from_bytes(digest[:3], "big")))


def fake_node(
    name: str,
    *,
    cpu: int = 8,
    memory: str = "32Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    cpu_model: str = SKYLAKE.model,
    devices: Mapping[str, int] | None = None,
) -> Object:
    """A Node object that pods and VMs can be scheduled to once kwok has made it Ready.

    `cpu` in cores, `memory` as a Kubernetes quantity, `taints` with key, value and effect, `cpu_model` a key of `CPUS`,
    `devices` further extended resources by name. Raises KeyError for an unknown CPU model.
    """
    resources = {
        "cpu": str(cpu),
        "memory": memory,
        "pods": str(pods),
        "ephemeral-storage": "500Gi",
        **KUBEVIRT_DEVICES,
        **{device: str(count) for device, count in (devices or {}).items()},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubevirt.io/schedulable": "true",
                **{f"machine-type.node.kubevirt.io/{machine}": "true" for machine in MACHINE_TYPES},
                **cpu_labels(CPUS[cpu_model]),
                **(labels or {}),
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "addresses": [
                {"type": "InternalIP", "address": address(name)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 13 (trixie)",
                "kernelVersion": "6.12.48+deb13-amd64",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "",
                "machineID": uuid.uuid5(MACHINE_IDS, f"machine {name}").hex,
                "systemUUID": str(uuid.uuid5(MACHINE_IDS, f"system {name}")),
                "bootID": str(uuid.uuid5(MACHINE_IDS, f"first boot {name}")),
            },
        },
    }

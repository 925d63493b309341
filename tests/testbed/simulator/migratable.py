# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VMI can be live-migrated, in the words of virt-handler (its calculateLiveMigrationCondition)."""

from __future__ import annotations

from typing import Any

from testbed.simulator.facts import Raw, Vmi

BRIDGE_ALLOWED = "kubevirt.io/allow-pod-bridge-network-live-migration"
PVC_NOT_SHARED = (
    "cannot migrate VMI: PVC {} is not shared, live migration requires that all PVCs must be shared "
    "(using ReadWriteMany access mode)"
)
PVC_UNKNOWN = (
    "cannot migrate VMI: Unable to determine if PVC {} is shared, live migration requires that all PVCs must be shared "
    "(using ReadWriteMany access mode)"
)
Obstacle = tuple[str, str]


def conditions(vmi: Vmi) -> list[dict[str, Any]]:
    """LiveMigratable and StorageLiveMigratable as virt-handler sets them when the guest runs."""
    obstacles = other_obstacles(vmi)
    disks, _block = volumes(vmi)
    live = obstacles[0] if obstacles else disks
    listed = ", ".join(f"{reason}: {message}" for reason, message in obstacles)
    return [
        condition("LiveMigratable", live),
        condition("StorageLiveMigratable", ("NotMigratable", listed) if obstacles else None),
    ]


def condition(kind: str, obstacle: Obstacle | None) -> dict[str, Any]:
    status: dict[str, Any] = {"type": kind, "status": "False" if obstacle else "True"}
    if obstacle:
        status |= {"reason": obstacle[0], "message": obstacle[1]}
    return {**status, "lastProbeTime": None, "lastTransitionTime": None}


def method(vmi: Vmi) -> str:
    """LiveMigration, or BlockMigration when local disks have to be copied too."""
    return "BlockMigration" if volumes(vmi)[1] else "LiveMigration"


def other_obstacles(vmi: Vmi) -> list[Obstacle]:
    """Everything but disks, the one that virt-handler reports first being first."""
    domain = vmi.spec["domain"]
    devices, features = domain.get("devices") or {}, domain.get("features") or {}
    security = domain.get("launchSecurity") or {}
    found = [
        (
            not network_migratable(vmi),
            "InterfaceNotLiveMigratable",
            "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network",
        ),
        (
            bool(devices.get("hostDevices") or devices.get("gpus")),
            "HostDeviceNotLiveMigratable",
            "VMI uses a PCI host devices",
        ),
        ("sev" in security, "SEVNotLiveMigratable", "VMI uses SEV"),
        ("tdx" in security, "TDXNotLiveMigratable", "VMI uses TDX"),
        (
            any(reserves(disk) for disk in devices.get("disks") or []),
            "PersistentReservationNotLiveMigratable",
            "VMI uses SCSI persistent reservation",
        ),
        (
            bool((features.get("hypervPassthrough") or {}).get("enabled")),
            "HypervPassthroughNotLiveMigratable",
            "VMI uses hyperv passthrough",
        ),
    ]
    return [(reason, message) for applies, reason, message in found if applies]


def reserves(disk: Raw) -> bool:
    return bool((disk.get("lun") or {}).get("reservation"))


def reads_only(disk: Raw) -> bool:
    return "cdrom" in disk and bool(disk["cdrom"].get("readonly", True))


def network_migratable(vmi: Vmi) -> bool:
    """Only the interface on the pod network matters."""
    interfaces = (vmi.spec["domain"].get("devices") or {}).get("interfaces") or []
    pod_networks = [network["name"] for network in vmi.spec.get("networks") or [] if "pod" in network]
    if not interfaces or not pod_networks:
        return True
    primary: Raw = next((interface for interface in interfaces if interface["name"] == pod_networks[0]), {})
    if "masquerade" in primary or "passtBinding" in primary:
        return True
    return "bridge" in primary and BRIDGE_ALLOWED in vmi.annotations


def volumes(vmi: Vmi) -> tuple[Obstacle | None, bool]:
    """What disks stand against a migration, and whether local ones have to be copied."""
    devices = vmi.spec["domain"].get("devices") or {}
    claims = {entry["name"]: entry.get("persistentVolumeClaimInfo") for entry in vmi.status.get("volumeStatus") or []}
    shared_folders = {entry["name"] for entry in devices.get("filesystems") or []}
    read_only = {disk["name"] for disk in devices.get("disks") or [] if reads_only(disk)}
    block = bool(vmi.status.get("migratedVolumes"))
    for volume in vmi.spec.get("volumes") or []:
        name = volume["name"]
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or (volume.get("dataVolume") or {}).get(
            "name"
        )
        if claim or (volume.get("hostDisk") and claims.get(name)):
            info = claims.get(name)
            if not info:
                return ("DisksNotLiveMigratable", PVC_UNKNOWN.format(claim)), True
            if "ReadWriteMany" not in info.get("accessModes", []):
                return ("DisksNotLiveMigratable", PVC_NOT_SHARED.format(claim or info.get("claimName"))), True
        elif "hostDisk" in volume:
            if not volume["hostDisk"].get("shared"):
                return ("DisksNotLiveMigratable", "cannot migrate VMI with non-shared HostDisk"), True
        elif name not in shared_folders and name not in read_only:
            block = True
    return None, block

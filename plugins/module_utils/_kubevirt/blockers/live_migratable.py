# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt says itself that a VMI cannot be migrated, and what can be done about each of its reasons.

These are in kubevirt.io/api/core/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import REFUSED, refusal_of

_INSTEAD = "restart or stop it instead"


@dataclass(frozen=True, slots=True)
class _Meaning:
    """id: of the blocker. because: a clause. remedy: what makes the VMI migratable, as a clause; empty for nothing."""

    id: str
    because: str
    remedy: str = ""


_MEANINGS: Mapping[str, _Meaning] = {
    "DisksNotLiveMigratable": _Meaning(
        "disks-not-live-migratable",
        "a disk of it cannot be used on two nodes at once",
        "move the disk to a PersistentVolumeClaim with access mode ReadWriteMany",
    ),
    "InterfaceNotLiveMigratable": _Meaning(
        "interface-not-live-migratable",
        "its interface on the pod network is bound to the node",
        "give it a masquerade binding and restart it, or allow it by annotation "
        "kubevirt.io/allow-pod-bridge-network-live-migration",
    ),
    "HotplugNotLiveMigratable": _Meaning(
        "hotplug-not-live-migratable", "it has hotplugged volumes", "unplug them or make them part of the VM"
    ),
    "CPUModeLiveMigratable": _Meaning(
        "cpu-mode-not-live-migratable",
        "no other node is known to offer the CPU of its node (host-model)",
        "name a CPU model that several nodes have, and restart it",
    ),
    "VirtIOFSNotLiveMigratable": _Meaning(
        "virtiofs-not-live-migratable",
        "it shares a file system with its node by virtiofs",
        "use a disk in place of the file system, and restart it",
    ),
    "HostDeviceNotLiveMigratable": _Meaning("host-device-not-live-migratable", "it uses a device of its node"),
    "SEVNotLiveMigratable": _Meaning("sev-not-live-migratable", "its memory is encrypted by its node's CPU (AMD SEV)"),
    "SecureExecutionNotLiveMigratable": _Meaning(
        "secure-execution-not-live-migratable", "its memory is protected by its node (IBM Secure Execution)"
    ),
    "TDXNotLiveMigratable": _Meaning(
        "tdx-not-live-migratable", "its memory is encrypted by its node's CPU (Intel TDX)"
    ),
    "NoTSCFrequencyNotLiveMigratable": _Meaning(
        "tsc-frequency-not-live-migratable",
        "it needs a fixed TSC frequency, and its node tells none",
        "have it scheduled on nodes that tell their TSC frequency, or drop the feature that needs it",
    ),
    "HypervPassthroughNotLiveMigratable": _Meaning(
        "hyperv-passthrough-not-live-migratable",
        "it sees all Hyper-V features of its node (hypervPassthrough)",
        "name the features it needs, and restart it",
    ),
    "PersistentReservationNotLiveMigratable": _Meaning(
        "persistent-reservation-not-live-migratable", "it holds a SCSI persistent reservation"
    ),
}


def live_migratable(candidate: Candidate) -> Iterator[Blocker]:
    condition = refusal_of(candidate.vmi)
    if condition is None:
        return
    reason = condition.get("reason") or ""
    meaning = _MEANINGS.get(reason, _Meaning("not-live-migratable", "KubeVirt says so"))
    words = ": ".join(filter(None, (reason, condition.get("message"))))
    yield Blocker(
        meaning.id,
        Effect.REFUSED,
        candidate.title,
        f"{REFUSED} because {meaning.because}",
        f"{meaning.remedy}, or {_INSTEAD}" if meaning.remedy else _INSTEAD,
        words=words,
    )

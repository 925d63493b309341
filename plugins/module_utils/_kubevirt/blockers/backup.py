# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration waits for a backup of the VMI, with its target pod, which takes room and a place in the queue, there.

Follows IsBackupInProgress in pkg/util/migrations/migrations.go and handleVMBackup in
pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)


def backup(candidate: Candidate) -> Iterator[Blocker]:
    progress = (candidate.status.get("changedBlockTracking") or {}).get("backupStatus") or {}
    name = progress.get("backupName")
    if name and not progress.get("completed"):
        yield Blocker(
            "backup-in-progress",
            Effect.HELD,
            candidate.in_namespace("VirtualMachineBackup", name),
            f"backup {name} of the VMI is in progress, and KubeVirt waits for it",
            "wait until it is complete, or abort it",
            passing=True,
        )

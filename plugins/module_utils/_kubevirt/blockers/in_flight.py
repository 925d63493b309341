# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One migration at a time for each VMI. Follows ensureNoMigrationConflict in admitters/migration-create-admitter.go."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)


def in_flight(candidate: Candidate) -> Iterator[Blocker]:
    migration = candidate.in_flight
    if migration is None:
        return
    yield Blocker(
        "migration-in-flight",
        Effect.REFUSED,
        candidate.in_namespace("VirtualMachineInstanceMigration", migration.name),
        f"VirtualMachineInstanceMigration {migration.name} is migrating the VMI already ({migration.phase or 'new'})",
        "wait until it has ended, or cancel it with state=absent",
        passing=True,
    )

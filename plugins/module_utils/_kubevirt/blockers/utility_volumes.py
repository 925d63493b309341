# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Utility volumes (memory dumps, backups) are at the source only: a migration waits until they are detached.

Follows handleUtilityVolumes in pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)


def utility_volumes(candidate: Candidate) -> Iterator[Blocker]:
    names = [volume["name"] for volume in candidate.vmi["spec"].get("utilityVolumes") or ()]
    if not names:
        return
    limit = ""
    if candidate.configuration:
        limit = f", for {candidate.configuration.migrations.utility_volumes_timeout} s at most"
    yield Blocker(
        "utility-volumes",
        Effect.HELD,
        candidate.title,
        f"utility volumes are attached to the VMI ({', '.join(names)}), and KubeVirt waits until they are detached"
        + limit,
        "let what uses them (a memory dump or a backup) come to its end, or detach them",
        passing=True,
    )

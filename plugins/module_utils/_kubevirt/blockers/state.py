# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only a running VMI migrates. A paused one does too: its memory is copied as it is.

Follows pkg/virt-api/webhooks/validating-webhook/admitters/migration-create-admitter.go and sync in
pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import has_ended


def state(candidate: Candidate) -> Iterator[Blocker]:
    if candidate.vmi["metadata"].get("deletionTimestamp"):
        yield Blocker("being-deleted", Effect.HELD, candidate.title, "the VMI is being deleted", "leave it out")
        return
    if candidate.running:
        return
    phase = candidate.status.get("phase") or "not started"
    over = has_ended(candidate.vmi)
    yield Blocker(
        "not-running",
        Effect.REFUSED if over else Effect.HELD,
        candidate.title,
        f"the VMI is {phase}, and only a running one can be migrated",
        "leave it out" if over else "wait until it runs, or leave it out",
    )

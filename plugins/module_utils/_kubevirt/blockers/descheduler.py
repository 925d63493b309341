# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wish to stay, written for the descheduler; by convention whoever moves VMs for balance respects it too."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


def prefer_no_eviction(candidate: Candidate) -> Iterator[Blocker]:
    # Its presence counts, whatever the value says.
    if PREFER_NO_EVICTION in (candidate.vmi["metadata"].get("annotations") or {}):
        yield Blocker(
            "prefer-no-eviction",
            Effect.UNWANTED,
            candidate.title,
            f"annotation {PREFER_NO_EVICTION} asks to leave the VMI where it is",
            "move it only for maintenance, or remove the annotation",
        )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While a VMI migrates it has two pods, and the namespace's quotas have to allow both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quota import Excess, excesses


def quota(candidate: Candidate) -> Iterator[Blocker]:
    if candidate.target_pod is not None and not isinstance(candidate.target_pod, NoTargetPod):
        found = excesses(candidate.target_pod, candidate.quotas)
        advice = "raise the quota, or free some of it, for the time of the migration"
        yield from of_quotas(candidate.target_pod, found, "the VMI's second pod", advice)


def of_quotas(pod: Object, found: Iterable[Excess], called: str, advice: str) -> Iterator[Blocker]:
    """What refuses a new pod of the namespace; `called`: the pod."""
    for excess in found:
        yield Blocker(
            "quota-exceeded",
            Effect.HELD,
            f"ResourceQuota {pod['metadata']['namespace']}/{excess.quota}",
            f"ResourceQuota {excess.quota} does not allow {called} ({excess.reason})",
            advice,
        )

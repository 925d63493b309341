# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod of a migration is bound by limit ranges that may be younger than the one that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.limit_range import violations
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


def limit_range(candidate: Candidate) -> Iterator[Blocker]:
    if candidate.target_pod is not None and not isinstance(candidate.target_pod, NoTargetPod):
        yield from of_limit_ranges(candidate.target_pod, candidate.limit_ranges, "the VMI's target pod")


def of_limit_ranges(pod: Object, limit_ranges: Iterable[Object], called: str) -> Iterator[Blocker]:
    """What refuses a new pod of the namespace; `called`: the pod. Raises `QuantityError`."""
    for violation in violations(pod, limit_ranges):
        yield Blocker(
            "limit-range-violated",
            Effect.HELD,
            f"LimitRange {pod['metadata']['namespace']}/{violation.limit_range}",
            f"LimitRange {violation.limit_range} does not allow {called} ({violation.reason})",
            "widen the limit range, or change what the VM asks for",
        )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of an eviction of a VMI's launcher pod: KubeVirt's webhook answers first, then disruption budgets.

Follows pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go and VMIEvictionStrategy in
pkg/util/migrations/migrations.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.live_migratable import (
    is_live_migratable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction_strategy import (
    EXTERNAL,
    LIVE_MIGRATE,
    MIGRATING,
    strategy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets

Object = Mapping[str, Any]


class Verdict(Enum):
    """What follows from the eviction.

    DELETES: the pod ends, and with it the guest. EVACUATES: it is refused, and KubeVirt migrates the VMI. MARKS: it is
    refused, and the VMI is marked for a controller of somebody else's. REFUSED: it is refused, and nothing follows.
    """

    DELETES = "deletes"
    EVACUATES = "evacuates"
    MARKS = "marks"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Ruling:
    """`reason`: a clause."""

    verdict: Verdict
    reason: str


def ruling(vmi: Object, pod: Object | None, configuration: Configuration, budgets: Budgets) -> Ruling:
    """The answer to an eviction of the pod that the VMI runs in; None if the pod is not known."""
    answer = _webhook(vmi, configuration)
    if answer.verdict is not Verdict.DELETES or pod is None:
        return answer
    refusal = budgets.refusal(pod)
    return Ruling(Verdict.REFUSED, refusal.reason) if refusal else answer


def _webhook(vmi: Object, configuration: Configuration) -> Ruling:
    chosen = strategy(vmi, configuration)
    why = f"its evictionStrategy is {chosen}"
    migratable = is_live_migratable(vmi)
    if chosen == LIVE_MIGRATE and not migratable:
        return Ruling(Verdict.REFUSED, f"{why}, and KubeVirt does not call it live-migratable")
    if chosen in MIGRATING and migratable:
        return Ruling(Verdict.EVACUATES, why)
    if chosen == EXTERNAL:
        return Ruling(Verdict.MARKS, why)
    if chosen in MIGRATING:
        return Ruling(Verdict.DELETES, f"{why}, and KubeVirt does not call it live-migratable")
    return Ruling(Verdict.DELETES, why)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VMI is to do when its node is drained, and what becomes of an eviction of its launcher pod.

KubeVirt's webhook answers first, then disruption budgets.
Follows pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go and VMIEvictionStrategy in
pkg/util/migrations/migrations.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

LIVE_MIGRATE: Final = "LiveMigrate"
IF_POSSIBLE: Final = "LiveMigrateIfPossible"
EXTERNAL: Final = "External"
# With these KubeVirt itself migrates the VMI.
MIGRATING_STRATEGIES: Final = frozenset({LIVE_MIGRATE, IF_POSSIBLE})


def strategy(vmi: Object, configuration: Configuration | None) -> str:
    """Its own choice, else the cluster's.

    Without the cluster's configuration the VMI's own nearly always does: KubeVirt writes the default into it.
    """
    own = vmi["spec"].get("evictionStrategy")
    return str(own or (configuration or Configuration()).eviction_strategy)


class EvictionVerdict(Enum):
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

    verdict: EvictionVerdict
    reason: str


def ruling(vmi: Object, pod: Object | None, configuration: Configuration, budgets: Budgets) -> Ruling:
    """The answer to an eviction of the pod that the VMI runs in; None if the pod is not known."""
    answer = _webhook(vmi, configuration)
    if answer.verdict is not EvictionVerdict.DELETES or pod is None:
        return answer
    refusal = budgets.refusal(pod)
    return Ruling(EvictionVerdict.REFUSED, refusal.reason) if refusal else answer


def _webhook(vmi: Object, configuration: Configuration) -> Ruling:
    chosen = strategy(vmi, configuration)
    why = f"its evictionStrategy is {chosen}"
    migratable = is_live_migratable(vmi)
    if chosen == LIVE_MIGRATE and not migratable:
        return Ruling(EvictionVerdict.REFUSED, f"{why}, and KubeVirt does not call it live-migratable")
    if chosen in MIGRATING_STRATEGIES and migratable:
        return Ruling(EvictionVerdict.EVACUATES, why)
    if chosen == EXTERNAL:
        return Ruling(EvictionVerdict.MARKS, why)
    if chosen in MIGRATING_STRATEGIES:
        return Ruling(EvictionVerdict.DELETES, f"{why}, and KubeVirt does not call it live-migratable")
    return Ruling(EvictionVerdict.DELETES, why)

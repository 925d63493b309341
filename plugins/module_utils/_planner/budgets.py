# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disruption budgets stand against an eviction, now or for good.

Follows pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import LabelSelector, label_selector

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. name: namespace/name. allowed: evictions now.

    never: it allows none even when all of its pods are well. spares_unready: which pods that are not ready it lets go.
    """

    namespace: str
    name: str
    selector: LabelSelector
    allowed: int
    never: bool
    spares_unready: bool

    def covers(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        same = (metadata.get("namespace") or "default") == self.namespace
        return same and self.selector.matches(metadata.get("labels") or {})


@dataclass(frozen=True, slots=True)
class Guard:
    """names: of the budgets that forbid a pod's eviction now. never: they will not allow it."""

    names: tuple[str, ...] = ()
    never: bool = False


def budgets(pdbs: Sequence[Object]) -> list[Budget]:
    """Raises `SelectorError`."""
    return [_budget(raw) for raw in pdbs]


def guard(pod: Object, known: Sequence[Budget]) -> Guard:
    status = pod.get("status") or {}
    if status.get("phase") == "Pending" or pod["metadata"].get("deletionTimestamp"):
        return Guard()
    covering = [budget for budget in known if budget.covers(pod)]
    if len(covering) > 1:
        # The eviction API answers with an error, however generous they are.
        return Guard(tuple(budget.name for budget in covering), never=True)
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in status.get("conditions") or ())
    strict = [budget for budget in covering if budget.allowed < 1 and (ready or not budget.spares_unready)]
    return Guard(tuple(budget.name for budget in strict), never=any(budget.never for budget in strict))


def _budget(raw: Object) -> Budget:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    allowed, expected = status.get("disruptionsAllowed") or 0, status.get("expectedPods") or 0
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    failed = any(entry.get("reason") == "SyncFailed" for entry in status.get("conditions") or ())
    return Budget(
        namespace=raw["metadata"].get("namespace") or "default",
        name=title(raw),
        selector=label_selector(spec.get("selector")),
        allowed=allowed,
        never=allowed < 1 and (failed or 0 < expected <= desired),
        spares_unready=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or 0 < desired <= healthy,
    )

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a PodDisruptionBudget lets a pod be evicted at this moment.

Follows pkg/registry/core/pod/storage/eviction.go of Kubernetes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import LabelSelector, label_selector

_SYNC_FAILED = "SyncFailed"


@dataclass(frozen=True, slots=True)
class _Budget:
    name: str
    selector: LabelSelector
    always_if_unhealthy: bool
    allowed: int
    healthy: int
    desired: int
    never: bool
    # How many pods it lets be away at best; None where nobody has counted them yet.
    spare: int | None


@dataclass(frozen=True, slots=True)
class EvictionRefusal:
    """The budgets that stand against an eviction, and a clause that says why. passing: other pods may change it."""

    budgets: tuple[str, ...]
    reason: str
    passing: bool


class Budgets:
    """PodDisruptionBudgets, parsed once. Raises `SelectorError`."""

    def __init__(self, pdbs: Iterable[Object]) -> None:
        self._budgets: defaultdict[str, list[_Budget]] = defaultdict(list)
        # By namespace and a label that they ask for, None where there is no such, the numbers of budgets. There may be
        # one for each VM, so that not all of them can be tried on each pod.
        self._filed: defaultdict[tuple[str, tuple[str, str] | None], list[int]] = defaultdict(list)
        for pdb in pdbs:
            namespace, budget = _namespace(pdb), _budget(pdb)
            self._filed[namespace, _asked_for(budget.selector)].append(len(self._budgets[namespace]))
            self._budgets[namespace].append(budget)

    def refusal(self, pod: Object) -> EvictionRefusal | None:
        """Why an eviction of the pod would be refused now, or None."""
        covering = self._covering(pod)
        if not covering or _is_no_concern(pod):
            return None
        names = tuple(budget.name for budget in covering)
        if len(names) > 1:
            reason = f"PodDisruptionBudgets {', '.join(names)} all count it, and the API evicts no such pod"
            return EvictionRefusal(names, reason, passing=False)
        (budget,) = covering
        if budget.allowed > 0 or (not _is_ready(pod) and _spares_unhealthy(budget)):
            return None
        reason = (
            f"PodDisruptionBudget {budget.name} allows no disruption, with {budget.healthy} healthy pods where it "
            f"wants {budget.desired}"
        )
        return EvictionRefusal(names, reason, passing=not budget.never)

    def overdrawn(self, pods: Iterable[Object]) -> Iterator[tuple[Object, EvictionRefusal]]:
        """Those of pods that are never let go, in this order, as long as nothing comes instead of the others."""
        away: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            covering = self._covering(pod)
            if len(covering) != 1 or _is_no_concern(pod) or not _is_ready(pod):
                continue
            (budget,) = covering
            if budget.spare is None:
                continue
            key = (_namespace(pod), budget.name)
            away[key] += 1
            if away[key] > budget.spare:
                reason = (
                    f"PodDisruptionBudget {budget.name} lets only {budget.spare} of its pods be away, and that of "
                    "others that leave at the same time already finds no other node; take fewer nodes at a time"
                )
                yield pod, EvictionRefusal((budget.name,), reason, passing=False)

    def without(self, pods: Iterable[Object]) -> Budgets:
        """The budgets as long as nothing comes instead of these pods that have been evicted.

        As in pkg/controller/disruption, who has no node is not healthy, and is expected as before.
        """
        gone, healthy = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for pod in pods:
            names = [(_namespace(pod), budget.name) for budget in self._covering(pod)]
            gone.update(names)
            healthy.update(names if _is_ready(pod) else ())
        found = Budgets(())
        found._filed = self._filed
        for namespace, budgets in self._budgets.items():
            keyed = ((budget, (namespace, budget.name)) for budget in budgets)
            found._budgets[namespace] = [_lowered(budget, gone[key], healthy[key]) for budget, key in keyed]
        return found

    def _covering(self, pod: Object) -> list[_Budget]:
        labels, namespace = pod["metadata"].get("labels") or {}, _namespace(pod)
        filed = (self._filed.get((namespace, label), ()) for label in (None, *labels.items()))
        budgets = (self._budgets[namespace][number] for number in sorted(chain.from_iterable(filed)))
        return [budget for budget in budgets if budget.selector.matches(labels)]


def _asked_for(selector: LabelSelector) -> tuple[str, str] | None:
    """A label without which it matches nothing, if it names one."""
    exact = (entry for entry in selector.requirements if entry.operator == "In" and len(entry.values) == 1)
    return next(((entry.key, entry.values[0]) for entry in exact), None)


def _budget(pdb: Object) -> _Budget:
    spec, status = pdb.get("spec") or {}, pdb.get("status") or {}
    expected, desired = status.get("expectedPods") or 0, status.get("desiredHealthy") or 0
    failed = any(entry.get("reason") == _SYNC_FAILED for entry in status.get("conditions") or ())
    return _Budget(
        name=pdb["metadata"]["name"],
        selector=label_selector(spec.get("selector")),
        always_if_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        allowed=status.get("disruptionsAllowed") or 0,
        healthy=status.get("currentHealthy") or 0,
        desired=desired,
        # It wants all the pods there are to be healthy, or cannot tell how many it wants.
        never=failed or 0 < expected <= desired,
        spare=max(expected - desired, status.get("disruptionsAllowed") or 0) if expected else None,
    )


def _lowered(budget: _Budget, gone: int, healthy: int) -> _Budget:
    """As if so many of its pods were gone for good, of which so many were healthy."""
    if not gone:
        return budget
    spare = None if budget.spare is None else budget.spare - gone
    return replace(
        budget,
        allowed=budget.allowed - healthy,
        healthy=budget.healthy - healthy,
        never=budget.never or (spare is not None and spare <= 0),
        spare=spare,
    )


def _is_no_concern(pod: Object) -> bool:
    is_pending = (pod.get("status") or {}).get("phase") == "Pending"
    return has_ended(pod) or is_pending or bool(pod["metadata"].get("deletionTimestamp"))


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def _spares_unhealthy(budget: _Budget) -> bool:
    """Whether a pod that is not ready may go although no healthy one may."""
    return budget.always_if_unhealthy or budget.healthy >= budget.desired > 0


def _namespace(item: Object) -> str:
    return item["metadata"].get("namespace") or "default"

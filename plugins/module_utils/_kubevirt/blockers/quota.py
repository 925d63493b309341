# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While a VMI migrates it has two pods, and the namespace's quotas have to allow both.

Whether a new pod stays within them follows pkg/quota/v1/evaluator/core/pods.go of Kubernetes, and
quota/v1/generic/evaluator.go and admission/plugin/resourcequota/controller.go of k8s.io/apiserver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
    NoTargetPod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity, resources
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import PREFERRED, REQUIRED, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Nanos
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Requirement

_REQUESTS, _LIMITS = "requests.", "limits."
_HUGE_PAGES, _DEVICE_CLASS = "hugepages-", "deviceclass.resource.kubernetes.io/"
_PODS, _COUNT = "pods", "count/pods"
_BASIC = (resources.CPU, resources.MEMORY, resources.EPHEMERAL_STORAGE)
_POD_RESOURCES = frozenset(
    {_PODS, _COUNT, *_BASIC, *(f"{prefix}{name}" for name in _BASIC for prefix in (_REQUESTS, _LIMITS))}
)
# What each container has to name where a quota limits it.
_NAMED = frozenset(
    {resources.CPU, resources.MEMORY}
    | {f"{prefix}{name}" for name in (resources.CPU, resources.MEMORY) for prefix in (_REQUESTS, _LIMITS)}
)


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


@dataclass(frozen=True, slots=True)
class Excess:
    """A quota that refuses the pod: its name, and a clause that says why."""

    quota: str
    reason: str


def excesses(
    pod: Object, quotas: Iterable[Object], *, gone: Sequence[Object] = (), come: Sequence[Object] = ()
) -> list[Excess]:
    """The quotas that refuse a new v1.Pod. `quotas` are those of its namespace. Raises `QuantityError`.

    gone, come: other pods of the namespace that have ended and started by then, of which the quotas do not know yet.
    """
    charged = usage(pod)
    found = (
        (item["metadata"]["name"], _refusal(pod, charged, item, _change(item, gone, come)))
        for item in quotas
        if _applies(pod, item)
    )
    return [Excess(name, reason) for name, reason in found if reason]


def usage(pod: Object) -> Nanos:
    """What quotas charge for a pod that has not ended, in billionths. Raises `QuantityError`."""
    requests = resources.pod_requests(pod, as_running=False)
    charged = {_COUNT: quantity.NANO, _PODS: quantity.NANO, **_computed(requests, _limits(pod))}
    for name, amount in requests.items():
        if name.startswith(_HUGE_PAGES):
            charged[name] = charged[f"{_REQUESTS}{name}"] = amount
        elif _is_extended(name):
            charged[f"{_REQUESTS}{name}"] = amount
    return charged


def _computed(requests: Mapping[str, int], limits: Mapping[str, int]) -> Nanos:
    """Requests count under two names, limits under one."""
    charged = {}
    for name in _BASIC:
        if name in requests:
            charged[name] = charged[f"{_REQUESTS}{name}"] = requests[name]
        if name in limits:
            charged[f"{_LIMITS}{name}"] = limits[name]
    return charged


def _limits(pod: Object) -> Nanos:
    """Overhead counts only where there is a limit."""
    extra = resources.nanos(pod["spec"].get("overhead"))
    return {name: amount + extra.get(name, 0) if amount else 0 for name, amount in resources.pod_limits(pod).items()}


def _is_extended(name: str) -> bool:
    of_devices = "/" in name and "kubernetes.io/" not in name and resources.is_counted(name)
    return of_devices or name.startswith(_DEVICE_CLASS)


def _applies(pod: Object, quota: Object) -> bool:
    return bool(_covered(quota)) and all(_in_scope(pod, scope) for scope in _scopes(quota.get("spec") or {}))


def _covered(quota: Object) -> list[str]:
    """Names of what the quota limits in pods."""
    return [name for name in _hard(quota) if _is_of_pods(name)]


def _is_of_pods(name: str) -> bool:
    if name in _POD_RESOURCES or name.startswith((_HUGE_PAGES, f"{_REQUESTS}{_HUGE_PAGES}")):
        return True
    rest = name.removeprefix(_REQUESTS)
    return rest != name and (rest.startswith(_DEVICE_CLASS) or ("/" in rest and "kubernetes.io/" not in rest))


def _hard(quota: Object) -> Object:
    found: Object = (quota.get("status") or {}).get("hard") or {}
    return found


def _scopes(spec: Object) -> Iterator[Requirement]:
    yield from (Requirement(name, "Exists") for name in spec.get("scopes") or ())
    for entry in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        yield Requirement(entry["scopeName"], entry["operator"], tuple(entry.get("values") or ()))


def _in_scope(pod: Object, scope: Requirement) -> bool:
    spec = pod["spec"]
    if scope.key in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) == (scope.key == "Terminating")
    if scope.key in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(spec) == (scope.key == "BestEffort")
    if scope.key == "PriorityClass":
        priority = spec.get("priorityClassName")
        return scope.matches({scope.key: priority} if priority else {})
    return scope.key == "CrossNamespacePodAffinity" and _looks_across(spec.get("affinity") or {})


def _is_best_effort(spec: Object) -> bool:
    holders = (
        [spec] if spec.get("resources") else [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    )
    return not any(
        quantity.parse(amount)
        for holder in holders
        for kind in ("requests", "limits")
        for name, amount in ((holder.get("resources") or {}).get(kind) or {}).items()
        if name in (resources.CPU, resources.MEMORY)
    )


def _looks_across(affinity: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        preferred = rules.get(PREFERRED) or ()
        terms = [*(rules.get(REQUIRED) or ())]
        terms += [entry["podAffinityTerm"] for entry in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def _change(quota: Object, gone: Iterable[Object], come: Iterable[Object]) -> Nanos:
    """Of what is used of a quota, once these pods have ended and those have started."""
    change: Nanos = defaultdict(int)
    for pods, sign in ((gone, -1), (come, 1)):
        for pod in pods:
            if _applies(pod, quota):
                for name, amount in usage(pod).items():
                    change[name] += sign * amount
    return change


def _refusal(pod: Object, charged: Nanos, quota: Object, change: Nanos) -> str:
    """Why this quota refuses the pod, empty if it does not."""
    hard, used = _hard(quota), (quota.get("status") or {}).get("used") or {}
    covered = _covered(quota)
    missing = sorted(_unnamed(pod["spec"], frozenset(covered) & _NAMED))
    if missing:
        return "it wants " + ", ".join(missing)
    if not used.keys() >= set(covered):
        return "the API server has not yet counted what is used of it"
    left = {name: max(0, quantity.parse(used[name]) + change.get(name, 0)) for name in covered}
    over = [
        name
        for name in sorted(covered)
        if charged.get(name) and charged[name] + left[name] > quantity.parse(hard[name])
    ]
    told = {name: _shown(name, left[name]) if change.get(name) else used[name] for name in over}
    return ", ".join(f"{name}: {_shown(name, charged[name])} on top of {told[name]} of {hard[name]}" for name in over)


def _unnamed(spec: Object, wanted: Iterable[str]) -> Iterator[str]:
    """What containers do not name and should."""
    if spec.get("resources"):
        return
    for name in wanted:
        kind, _dot, resource = name.rpartition(".")
        kind = kind or "requests"
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            if resource not in ((container.get("resources") or {}).get(kind) or {}):
                yield f"{kind}.{resource} of container {container['name']}"


def _shown(name: str, nanos: int) -> str:
    if name.endswith(resources.CPU):
        return f"{quantity.milli(nanos)}m"
    if name.endswith((resources.MEMORY, resources.EPHEMERAL_STORAGE)) or _HUGE_PAGES in name:
        return f"{quantity.units(nanos) / 2**20:.0f}Mi"
    return str(quantity.units(nanos))

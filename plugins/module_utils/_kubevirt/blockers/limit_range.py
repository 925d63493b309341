# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod of a migration is bound by limit ranges that may be younger than the one that runs.

Whether a new pod stays within them follows plugin/pkg/admission/limitranger/admission.go of Kubernetes, and of
pkg/apis/core/validation/validation.go the rule that nothing requests more than its limit, which the defaults of a limit
range can break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
    NoTargetPod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity, resources
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Nanos

_CONTAINER, _POD = "Container", "Pod"


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


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit range that refuses the pod: its name, and a clause that says why."""

    limit_range: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Bounded:
    """What a limit is about."""

    title: str
    requests: Nanos
    limits: Nanos


def violations(pod: Object, limit_ranges: Iterable[Object]) -> list[Violation]:
    """The limit ranges that refuse a new v1.Pod, to which their defaults were given. Raises `QuantityError`.

    `limit_ranges` are those of its namespace.
    """
    bounded = {_CONTAINER: list(_containers(pod["spec"])), _POD: [_whole(pod)]}
    found = ((item["metadata"]["name"], "; ".join(_refusals(item, bounded))) for item in limit_ranges)
    return [Violation(name, reason) for name, reason in found if reason]


def _containers(spec: Object) -> Iterator[_Bounded]:
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        given = container.get("resources") or {}
        requests, limits = resources.nanos(given.get("requests")), resources.nanos(given.get("limits"))
        yield _Bounded(f"container {container['name']}", requests, limits)


def _whole(pod: Object) -> _Bounded:
    """Overhead does not count here."""
    bare = {**pod, "spec": {**pod["spec"], "overhead": {}}}
    return _Bounded("the pod", resources.pod_requests(bare, as_running=False), resources.pod_limits(pod))


def _refusals(limit_range: Object, bounded: Mapping[str, Iterable[_Bounded]]) -> Iterator[str]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        for one in bounded.get(limit.get("type") or "", ()):
            for field, rule in _RULES.items():
                for name, bound in sorted((limit.get(field) or {}).items()):
                    if problem := rule(name, one, bound):
                        yield f"{name} of {one.title}: {problem}"


def _too_little(name: str, one: _Bounded, least: Any) -> str:
    if name not in one.requests:
        return f"no request, at least {least}"
    return next((f"{told}, at least {least}" for told, amount in _told(name, one) if amount < _comparable(least)), "")


def _too_much(name: str, one: _Bounded, most: Any) -> str:
    if name not in one.limits:
        return f"no limit, at most {most}"
    return next((f"{told}, at most {most}" for told, amount in _told(name, one) if amount > _comparable(most)), "")


def _too_far_apart(name: str, one: _Bounded, ratio: Any) -> str:
    request, limit = (quantity.milli(side.get(name, 0)) for side in (one.requests, one.limits))
    if not request or not limit:
        return f"no {'limit' if request else 'request'}, a limit of at most {ratio} times the request"
    if limit * 1000 > _comparable(ratio) * request:
        return f"a limit of {limit / request:.3g} times the request, at most {ratio} times"
    return ""


def _above_default(name: str, one: _Bounded, default: Any) -> str:
    """Of another limit range, or of the container itself, where the default is not what it has."""
    request, limit = one.requests.get(name, 0), one.limits.get(name)
    if limit == quantity.parse(default) < request:
        return f"a request of {_shown(name, request)}, and a limit of {default} by default"
    return ""


def _told(name: str, one: _Bounded) -> Iterator[tuple[str, int]]:
    for kind, side in (("request", one.requests), ("limit", one.limits)):
        if name in side:
            yield f"a {kind} of {_shown(name, side[name])}", quantity.milli(side[name])


def _comparable(amount: Any) -> int:
    return quantity.milli(quantity.parse(amount))


def _shown(name: str, nanos: int) -> str:
    return quantity.text(nanos, binary=name != resources.CPU)


_RULES = {
    "min": _too_little,
    "max": _too_much,
    "maxLimitRequestRatio": _too_far_apart,
    "default": _above_default,
}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods request of a node and what a node offers: which resources count, and in which unit.

Follows k8s.io/component-helpers/resource/helpers.go (PodRequests) and pkg/scheduler/framework/types.go (Resource,
PodInfo.CalculateResource). Lists of resources are dictionaries of billionths while they are summed (`Nanos`), and of
whole numbers once they are compared (`Amounts`: millicores for cpu, units for everything else).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import is_qualified_name

Nanos = dict[str, int]
Amounts = dict[str, int]

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
# Of the devices that virt-handler offers.
KUBEVIRTS_DEVICES = "devices.kubevirt.io/"

# What a container that requests nothing counts as when nodes are scored: a tenth of a core and 200 MiB.
ASSUMED: Mapping[str, int] = {CPU: quantity.NANO // 10, MEMORY: 200 * 2**20 * quantity.NANO}


def nanos(resources: Object | None) -> Nanos:
    """A ResourceList of the API in billionths."""
    return {name: quantity.parse(amount) for name, amount in (resources or {}).items()}


def amounts(resources: Mapping[str, int]) -> Amounts:
    """Rounded up, and without names that the scheduler does not account for."""
    return {
        name: quantity.milli(amount) if name == CPU else quantity.units(amount)
        for name, amount in resources.items()
        if is_counted(name)
    }


@lru_cache(maxsize=4096)
def is_counted(name: str) -> bool:
    """Whether the scheduler keeps accounts of a resource: the basic ones, huge pages, extended ones and a few more."""
    if name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS):
        return True
    native = "kubernetes.io/" in name
    if native or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith("requests.") and is_qualified_name(f"requests.{name}")


def pod_requests(
    pod: Object, *, as_running: bool, pod_level: bool = True, assumed: Mapping[str, int] | None = None
) -> Nanos:
    """The effective request of a pod: containers and sidecars, peaks of init containers, pod level values, overhead.

    `as_running`: count what an in-place resize has asked for, granted and applied, whichever is most.
    `pod_level`: respect requests of the pod as a whole. `assumed`: for each container that names no request.
    """
    spec = pod["spec"]
    total = _containers(pod, as_running, assumed or {})
    own = nanos((spec.get("resources") or {}).get("requests")) if pod_level else {}
    own = {name: amount for name, amount in own.items() if _is_pod_level(name)}
    if own:
        resized = (pod.get("status") or {}).get("resources") if as_running else None
        if resized is not None:
            allocated = (pod.get("status") or {}).get("allocatedResources")
            effective = _resizing(pod, own, nanos(resized.get("requests")), nanos(allocated))
            own = {name: effective.get(name, 0) for name in own}
        total.update(own)
    _add(total, nanos(spec.get("overhead")))
    return total


def pod_limits(pod: Object) -> Nanos:
    """The effective limit of a new pod, without overhead: limits add up as requests do."""
    spec = pod["spec"]
    swapped = {
        kind: [{**entry, "resources": _swapped(entry.get("resources"))} for entry in spec.get(kind) or ()]
        for kind in ("containers", "initContainers")
    }
    return pod_requests({"spec": {**swapped, "resources": _swapped(spec.get("resources"))}}, as_running=False)


def _swapped(given: Object | None) -> JsonObject:
    """Limits in the place of requests."""
    return {"requests": (given or {}).get("limits") or {}}


def assumed_for_scores(pod: Object, requests: Mapping[str, int]) -> dict[str, int]:
    """The assumptions for a running pod's containers; a pod level request replaces them for its resource."""
    own = (pod["spec"].get("resources") or {}).get("requests") or {}
    if not any(_is_pod_level(name) for name in own):
        return dict(ASSUMED)
    return {name: amount for name, amount in ASSUMED.items() if name not in requests}


def is_sidecar(container: Object) -> bool:
    """An init container that keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _containers(pod: Object, as_running: bool, assumed: Mapping[str, int]) -> Nanos:
    spec, statuses = pod["spec"], _statuses(pod) if as_running else {}
    total: Nanos = {}
    for container in spec.get("containers") or ():
        _add(total, _container(pod, container, statuses, assumed))
    peak: Nanos = {}
    sidecars: Nanos = {}
    for container in spec.get("initContainers") or ():
        if is_sidecar(container):
            request = _container(pod, container, statuses, assumed)
            _add(total, request)
            _add(sidecars, request)
            _raise_to(peak, sidecars)
        else:
            request = dict(_container(pod, container, {}, assumed))
            _add(request, sidecars)
            _raise_to(peak, request)
    _raise_to(total, peak)
    return total


def _statuses(pod: Object) -> dict[str, Object]:
    status = pod.get("status") or {}
    found = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return {entry["name"]: entry for entry in found if entry.get("resources") is not None}


def _container(
    pod: Object,
    container: Object,
    statuses: Mapping[str, Object],
    assumed: Mapping[str, int],
) -> Nanos:
    request = nanos((container.get("resources") or {}).get("requests"))
    status = statuses.get(container.get("name", ""))
    if status is not None:
        actuated = nanos(status["resources"].get("requests"))
        request = _resizing(pod, request, actuated, nanos(status.get("allocatedResources")))
    return {**assumed, **request} if assumed else request


def _resizing(pod: Object, wanted: Nanos, actuated: Nanos, allocated: Nanos) -> Nanos:
    """The most of all values; a resize that the node refused for good no longer counts."""
    result = {} if _is_refused(pod) else dict(wanted)
    _raise_to(result, actuated)
    _raise_to(result, allocated)
    return result


def _is_refused(pod: Object) -> bool:
    conditions: Iterable[Object] = (pod.get("status") or {}).get("conditions") or ()
    pending = next((entry for entry in conditions if entry.get("type") == "PodResizePending"), {})
    return pending.get("reason") == "Infeasible"


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of a migration's target pod and their sizes, which KubeVirt calculates anew.

By this very migration CPUs and memory that were plugged into a running VM arrive; and ratios of KubeVirt's
configuration, quotas and limit ranges may have changed since the running pod was made, as may what it says on which
containers stand beside the guest.

The rules are those of one release, and others calculate the overhead otherwise. Of theirs only the change is
calculated: by how much the same rules make the VMI larger than they made it as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.devices import unknown_networks
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import (
    LauncherError,
    rendered_containers,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import (
    CPU,
    KUBEVIRTS_DEVICES,
    MEMORY,
    nanos,
)

Containers = Mapping[str, Object]

_RELEASE = re.compile(r"v?1\.8\.")
_FIELDS = ("containers", "initContainers")
_SIDES = ("limits", "requests")


def are_known(configuration: Configuration) -> bool:
    """Whether the cluster's KubeVirt calculates sizes by the rules that are followed here."""
    return bool(_RELEASE.match(configuration.version))


def resized(spec: Object, vmi: Object, configuration: Configuration, namespace: Namespace) -> JsonObject:
    """The containers of a running pod's spec, by field, as the target pod has them.

    What others have injected stays as it is, and so does all where KubeVirt could not make
    the pod. Raises `QuantityError`, `SelectorError`.
    """
    own = {field: spec.get(field) or () for field in _FIELDS}
    try:
        now = rendered_containers(vmi, configuration, namespace)
        if are_known(configuration):
            names = _own_names(vmi)
            found = {field: list(_anew(own[field], now[field], names)) for field in _FIELDS}
            if unknown_networks(vmi, configuration, namespace):
                found["containers"] = list(_with_devices(found["containers"], own["containers"]))
        else:
            before = rendered_containers(_as_started(vmi), configuration, namespace)
            found = {field: list(_changed(own[field], before[field], now[field])) for field in _FIELDS}
    except LauncherError:
        return {}
    return {field: containers for field, containers in found.items() if containers or field in spec}


def _own_names(vmi: Object) -> frozenset[str]:
    """Of containers that are KubeVirt's for certain, and go when its configuration does not want them any more."""
    disks = (f"volume{name}{suffix}" for name, _disk in traits.container_disks(vmi) for suffix in ("", "-init"))
    return frozenset({"guest-console-log", "container-disk-binary", *disks})


def _anew(containers: Sequence[Object], now: Containers, own_names: frozenset[str]) -> Iterator[Object]:
    for container in containers:
        found = now.get(container["name"])
        if found is not None:
            yield {**container, "resources": found["resources"]}
        elif container["name"] not in own_names:
            yield container
    there = {container["name"] for container in containers}
    yield from (container for name, container in now.items() if name not in there)


def _with_devices(containers: Sequence[Object], before: Sequence[Object]) -> Iterator[Object]:
    """The guest's container with no less of any device than it has: some are of networks that are not known.

    How many of each these take is not known either, but a running guest keeps its other devices.
    """
    old = {container["name"]: container.get("resources") or {} for container in before}
    for container in containers:
        if container["name"] != "compute":
            yield container
            continue
        resources = dict(container["resources"])
        for side in _SIDES:
            kept, now = (old.get("compute") or {}).get(side) or {}, resources.get(side) or {}
            devices = {
                name: amount for name, amount in kept.items() if _is_device(name) and _more(amount, now.get(name))
            }
            resources[side] = {**now, **devices}
        yield {**container, "resources": resources}


def _is_device(name: str) -> bool:
    """Of a device plugin that is not KubeVirt's own."""
    return "/" in name and not name.startswith(KUBEVIRTS_DEVICES)


def _more(amount: Any, now: Any) -> bool:
    return now is None or quantity.parse(amount) > quantity.parse(now)


def _changed(containers: Sequence[Object], before: Containers, now: Containers) -> Iterator[Object]:
    for container in containers:
        name, own = container["name"], container.get("resources")
        if own and name in before and name in now:
            yield {**container, "resources": _shifted(own, before[name]["resources"], now[name]["resources"])}
        else:
            yield container


def _shifted(own: Object, before: Object, now: Object) -> Object:
    shifted = {side: _side(*(given.get(side) or {} for given in (own, before, now))) for side in _SIDES}
    # A quota may be younger than the pod, and want limits of these.
    limits = {name: amount for name, amount in (now.get("limits") or {}).items() if name in (CPU, MEMORY)}
    shifted["limits"] = {**limits, **shifted["limits"]}
    return {**own, **{side: amounts for side, amounts in shifted.items() if amounts}}


def _side(own: Object, before: Object, now: Object) -> JsonObject:
    old, new = nanos(before), nanos(now)
    more = {name: new[name] - old.get(name, 0) for name in own.keys() & new.keys()}
    return {
        name: quantity.text(quantity.parse(amount) + more[name], binary=name != CPU) if more.get(name) else amount
        for name, amount in own.items()
    }


def _as_started(vmi: Object) -> Object:
    """The VMI with the CPUs and memory that its guest has got so far, as its running pod was made for them."""
    spec, status = vmi["spec"], vmi.get("status") or {}
    domain = dict(spec.get("domain") or {})
    if domain.get("cpu") is not None:
        domain["cpu"] = {**domain["cpu"], **(status.get("currentCPUTopology") or {})}
    memory, got = domain.get("memory") or {}, (status.get("memory") or {}).get("guestRequested")
    if got is not None and memory.get("guest") is not None:
        more = quantity.parse(memory["guest"]) - quantity.parse(got)
        domain["memory"] = {**memory, "guest": got}
        domain["resources"] = _with_less_memory(domain.get("resources") or {}, more)
    return {**vmi, "spec": {**spec, "domain": domain}}


def _with_less_memory(resources: Object, more: int) -> Object:
    """KubeVirt raises what the VMI itself requests by as much as its memory grows."""
    found = dict(resources)
    for side in _SIDES:
        amount = (resources.get(side) or {}).get(MEMORY)
        if amount is not None:
            found[side] = {**resources[side], MEMORY: quantity.text(quantity.parse(amount) - more, binary=True)}
    return found

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of a migration's target pod, which KubeVirt calculates anew.

By this very migration CPUs and memory that were plugged into a running VM arrive; and ratios of KubeVirt's
configuration, quotas and limit ranges may have changed since the running pod was made.

The rules are those of one release, and others calculate the overhead otherwise. Of theirs only the change is
calculated: by how much the same rules make the VMI larger than they made it as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration, Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import (
    LauncherError,
    container_resources,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU, MEMORY, nanos

Object = Mapping[str, Any]
Sizes = Mapping[str, Mapping[str, Object]]

_RELEASE = re.compile(r"v?1\.8\.")
_FIELDS = ("containers", "initContainers")
_SIDES = ("limits", "requests")


def are_known(configuration: Configuration) -> bool:
    """Whether the cluster's KubeVirt calculates sizes by the rules that are followed here."""
    return bool(_RELEASE.match(configuration.version))


def resized(spec: Object, vmi: Object, configuration: Configuration, lists: Lists) -> dict[str, Any]:
    """The containers of a running pod's spec, by field, with the resources that the target pod's have.

    `lists`: see `Namespaces`. What others have injected stays as it is, and so does all where KubeVirt could not make
    the pod. Raises `QuantityError`, `SelectorError`.
    """
    try:
        now = container_resources(vmi, configuration, lists)
        if are_known(configuration):
            return _each(spec, now)
        return _each(spec, _changed(spec, container_resources(_as_started(vmi), configuration, lists), now))
    except LauncherError:
        return {field: spec[field] for field in _FIELDS if spec.get(field)}


def _each(spec: Object, sizes: Sizes) -> dict[str, Any]:
    return {field: list(_sized(spec[field], sizes[field])) for field in _FIELDS if spec.get(field)}


def _sized(containers: Sequence[Object], sizes: Mapping[str, Object]) -> Iterator[Object]:
    for container in containers:
        found = sizes.get(container["name"])
        yield container if found is None else {**container, "resources": found}


def _changed(spec: Object, before: Sizes, now: Sizes) -> Sizes:
    found: dict[str, dict[str, Object]] = {}
    for field in _FIELDS:
        own = {entry["name"]: entry["resources"] for entry in spec.get(field) or () if entry.get("resources")}
        known = own.keys() & before[field].keys() & now[field].keys()
        found[field] = {name: _shifted(own[name], before[field][name], now[field][name]) for name in known}
    return found


def _shifted(own: Object, before: Object, now: Object) -> Object:
    shifted = {side: _side(*(given.get(side) or {} for given in (own, before, now))) for side in _SIDES}
    # A quota may be younger than the pod, and want limits of these.
    limits = {name: amount for name, amount in (now.get("limits") or {}).items() if name in (CPU, MEMORY)}
    shifted["limits"] = {**limits, **shifted["limits"]}
    return {**own, **{side: amounts for side, amounts in shifted.items() if amounts}}


def _side(own: Object, before: Object, now: Object) -> dict[str, Any]:
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

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods belong together by default: those that the same service or the same controller selects.

Follows pkg/scheduler/framework/plugins/helper/spread.go. It decides how pods without spread constraints are spread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Controller, Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    EVERYTHING,
    Labels,
    LabelSelector,
    exact_requirements,
    label_selector,
)

# API version, kind, namespace and name.
ControllerKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class OwnerSelectors:
    """`services`: selectors by namespace. `replication_controllers`, `others`: selectors by the controller's key."""

    services: Mapping[str, Sequence[Labels]]
    replication_controllers: Mapping[ControllerKey, Labels]
    others: Mapping[ControllerKey, LabelSelector]

    def selector_for(self, pod: Pod) -> LabelSelector:
        """The pods that one is to be spread among; everything: there are none."""
        merged: dict[str, str] = {}
        occupant = pod.occupant
        for selector in self.services.get(occupant.namespace, ()):
            if selector.items() <= occupant.labels.items():
                merged.update(selector)
        key = _key(occupant, pod.controller)
        merged.update(self.replication_controllers.get(key, {}))
        own = LabelSelector(exact_requirements(merged))
        other = self.others.get(key, EVERYTHING)
        return own if other.nothing else own.narrowed(other.requirements)


def owner_selectors(lists: Lists) -> OwnerSelectors:
    """Parse services and controllers of a snapshot. Raises `SelectorError`."""
    services: defaultdict[str, list[Labels]] = defaultdict(list)
    for raw in lists.get("services") or ():
        selector = (raw.get("spec") or {}).get("selector")
        if selector is not None:
            services[raw["metadata"].get("namespace") or "default"].append(selector)
    controllers = {
        ("v1", "ReplicationController", *_name(raw)): (raw.get("spec") or {}).get("selector") or {}
        for raw in lists.get("replicationcontrollers") or ()
    }
    others = {
        ("apps/v1", kind, *_name(raw)): label_selector((raw.get("spec") or {}).get("selector"))
        for name, kind in (("replicasets", "ReplicaSet"), ("statefulsets", "StatefulSet"))
        for raw in lists.get(name) or ()
    }
    return OwnerSelectors(services, controllers, others)


def _name(raw: Object) -> tuple[str, str]:
    return raw["metadata"].get("namespace") or "default", raw["metadata"]["name"]


def _key(occupant: Occupant, controller: Controller | None) -> ControllerKey:
    if controller is None:
        return ("", "", "", "")
    return (controller.api_version, controller.kind, occupant.namespace, controller.name)

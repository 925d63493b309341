# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan on plain lists, and ask at each moment what the scheduler says then, from nothing but the lists."""

from __future__ import annotations

import copy
import random
from typing import Any, TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    Outcome,
    PlannedMove,
    PodFate,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._planner.scene import Json, Lists

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
Item: TypeAlias = "PlannedMove | PodFate | StuckMachine"


class Replay:
    """`wrong`: what was not as the plan says."""

    def __init__(self, lists: Lists, plan: DrainPlan) -> None:
        self.lists = copy.deepcopy(lists)
        self.plan = plan
        self.wrong: list[str] = []
        for node in self.lists["nodes"]:
            if node["metadata"]["name"] in plan.nodes:
                node["spec"] |= {"unschedulable": True, "taints": [*node["spec"].get("taints", []), _CORDON]}

    def run(self, dice: random.Random) -> None:
        """All waves, in each of them the beginnings and ends in some order."""
        items: list[Item] = [*self.plan.moves, *self.plan.pods, *self.plan.stuck]
        waves = sorted({item.wave for item in items if item.wave is not None})
        for wave in waves:
            inside = [item for item in items if item.wave == wave]
            events = [item for item in inside for _event in ("begin", "end")]
            dice.shuffle(events)
            begun: set[int] = set()
            for item in events:
                (self._end if id(item) in begun else self._begin)(item)
                begun.add(id(item))

    def run_as_foretold(self) -> None:
        """All waves, in each of them the pods first, one after the other: what the scheduler chooses is compared."""
        items: list[Item] = [*self.plan.pods, *self.plan.stuck, *self.plan.moves]
        for wave in sorted({item.wave for item in items if item.wave is not None}):
            for item in items:
                if item.wave == wave:
                    (self._evict if isinstance(item, PodFate) else self._begin)(item)
            for item in items:
                if item.wave == wave:
                    (self._forget if isinstance(item, PodFate) else self._end)(item)

    def _evict(self, item: Item) -> None:
        """The scheduler tries at once, and again when the old pod is gone."""
        assert isinstance(item, PodFate)
        old = self._pod(item.namespace, item.name)
        new = replacement(old)
        self._begin(item)
        if new is None:
            return
        scores = verdict(self.lists, new, scores=True)["scores"]
        if not scores:
            self._remove(old)
            scores = verdict(self.lists, new, scores=True)["scores"]
        best = {node for node, score in scores.items() if score == max(scores.values())}
        if best != set(item.choices):
            self.wrong.append(f"{item}: the scheduler chooses among {scores}")
        if item.target_node is not None:
            self._place(new, f"{item.name}-new", item.target_node)

    def _forget(self, item: Item) -> None:
        self.lists["pods"] = [
            pod
            for pod in self.lists["pods"]
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) != (item.namespace, item.name)
        ]

    def unpinned_message(self, machine: StuckMachine) -> str:
        """What the scheduler would say to the migration of a VM, now."""
        vmi, source = self._vmi(machine.namespace, machine.name), self._launcher(machine.namespace, machine.name)
        found: str = verdict(self.lists, self._target(vmi, source, {}))["message"]
        return found

    def _begin(self, item: Item) -> None:
        if isinstance(item, PlannedMove):
            source = self._launcher(item.namespace, item.name)
            pod = self._target(self._vmi(item.namespace, item.name), source, dict(item.node_selector))
            said = verdict(self.lists, pod)
            if said["fit"] != [item.target_node]:
                self.wrong.append(f"{item}: {said}")
            self._place(pod, f"{source['metadata']['name']}-target", item.target_node)
        elif isinstance(item, PodFate):
            self._pod(item.namespace, item.name)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    def _end(self, item: Item) -> None:
        if isinstance(item, PlannedMove):
            self._remove(self._launcher(item.namespace, item.name))
            self._vmi(item.namespace, item.name)["status"]["nodeName"] = item.target_node
        elif isinstance(item, StuckMachine):
            assert item.outcome is not Outcome.STAYS
            self._remove(self._launcher(item.namespace, item.name))
        else:
            old = self._pod(item.namespace, item.name)
            self._remove(old)
            new = replacement(
                {**old, "metadata": {k: v for k, v in old["metadata"].items() if k != "deletionTimestamp"}}
            )
            if new is not None and item.target_node is not None:
                said = verdict(self.lists, new)
                if item.target_node not in said["fit"]:
                    self.wrong.append(f"{item}: {said}")
                self._place(new, f"{item.name}-new", item.target_node)

    def _target(self, vmi: Json, source: Json, selector: dict[str, str]) -> Json:
        node = next(node for node in self.lists["nodes"] if node["metadata"]["name"] == vmi["status"]["nodeName"])
        own = Namespaces(self.lists).of(vmi)
        pod = target_pod(vmi, source, node, configuration(self.lists), own, selector)
        assert isinstance(pod, dict)
        return pod

    def _place(self, pod: Json, name: str, node: str) -> None:
        metadata = {**pod["metadata"], "name": name, "uid": f"uid-{name}"}
        status = {"phase": "Running"}
        self.lists["pods"].append({"metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def _remove(self, pod: Json) -> None:
        self.lists["pods"] = [other for other in self.lists["pods"] if other is not pod]

    def _vmi(self, namespace: str, name: str) -> Any:
        return _named(self.lists["vmis"], namespace, name)

    def _pod(self, namespace: str, name: str) -> Any:
        return _named(self.lists["pods"], namespace, name)

    def _launcher(self, namespace: str, name: str) -> Json:
        """The older of a VMI's pods."""
        uid = self._vmi(namespace, name)["metadata"]["uid"]
        return next(pod for pod in self.lists["pods"] if pod["metadata"]["labels"].get("kubevirt.io/created-by") == uid)


def _named(items: list[Json], namespace: str, name: str) -> Any:
    return next(
        item for item in items if (item["metadata"]["namespace"], item["metadata"]["name"]) == (namespace, name)
    )

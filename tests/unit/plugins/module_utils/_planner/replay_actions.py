# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out the actions of a plan on plain lists, in any order that their `after` allows, with any of them in flight.

At each beginning the scheduler is asked, from nothing but the lists.
"""

from __future__ import annotations

import copy
import random

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._planner.scene import Json, Lists

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_MIGRATION_JOB = "kubevirt.io/migrationJobUID"
_CREATED_BY = "kubevirt.io/created-by"


class ActionReplay:
    """`wrong`: what was not as the plan says. `ended`: ids of what is over.

    lots: what decides where pods are made again, of all nodes that fit; None: it is as expected.
    """

    def __init__(self, lists: Lists, plan: Plan, lots: random.Random | None = None) -> None:
        self.lists = copy.deepcopy(lists)
        self.plan = plan
        self.lots = lots
        self.wrong: list[str] = []
        self.begun: list[Action] = []
        self.ended: set[str] = set()

    def run(self, dice: random.Random, most: int | None = None) -> None:
        """Until nothing may begin any more, or `most` have ended."""
        while most is None or len(self.ended) < most:
            started = {action.id for action in self.begun}
            able = [action for action in ready(self.plan.actions, self.ended) if action.id not in started]
            if not able and not self.begun:
                break
            if able and (not self.begun or dice.random() < 0.6):
                action = dice.choice(able)
                self._begin(action)
                self.begun.append(action)
            else:
                self._end(self.begun.pop(dice.randrange(len(self.begun))))

    def _begin(self, action: Action) -> None:
        if action.kind is ActionKind.CORDON:
            spec = self._node(action.node)["spec"]
            spec |= {"unschedulable": True, "taints": [*spec.get("taints", []), _CORDON]}
        elif action.kind is ActionKind.UNCORDON:
            spec = self._node(action.node)["spec"]
            spec |= {"unschedulable": False, "taints": [taint for taint in spec["taints"] if taint != _CORDON]}
        elif action.kind is ActionKind.MIGRATE:
            self._migrate(action)
        elif action.kind in (ActionKind.STOP, ActionKind.RESTART):
            self._vmi(action)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif action.kind is ActionKind.EVICT:
            self._pod(action)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif action.kind is ActionKind.MAINTAIN:
            left = [pod["metadata"]["name"] for pod in self.lists["pods"] if pod["spec"]["nodeName"] == action.node]
            if left:
                self.wrong.append(f"{action.node} is maintained with {left} on it")

    def _migrate(self, action: Action) -> None:
        vmi, source = self._vmi(action), self._launcher(action)
        node, own = self._node(vmi["status"]["nodeName"]), Namespaces(self.lists).of(vmi)
        pod = target_pod(vmi, source, node, configuration(self.lists), own, dict(action.selector))
        assert isinstance(pod, dict)
        said = verdict(self.lists, pod)
        if said["fit"] != [action.target] or source["spec"]["nodeName"] != action.source:
            self.wrong.append(f"{action}: {said}")
        name, job = f"{source['metadata']['name']}-{action.batch}", f"vmim-{action.object.name}"
        pod["metadata"]["labels"] = {**pod["metadata"]["labels"], _MIGRATION_JOB: job}
        self._place(pod, name, action.target or "")
        self.lists.setdefault("migrations", []).append(
            {
                "metadata": {
                    "namespace": action.object.namespace,
                    "name": job,
                    "uid": job,
                    "labels": {RUN_LABEL: self.plan.run or "drain"},
                },
                "spec": {"vmiName": action.object.name, "addedNodeSelector": dict(action.selector)},
                "status": {"phase": "Running"},
            }
        )

    def _end(self, action: Action) -> None:
        self.ended.add(action.id)
        if action.kind is ActionKind.MIGRATE:
            self._remove(self._launcher(action))
            self._vmi(action)["status"]["nodeName"] = action.target
            self.lists["migrations"] = [
                item for item in self.lists["migrations"] if item["spec"]["vmiName"] != action.object.name
            ]
        elif action.kind in (ActionKind.STOP, ActionKind.RESTART):
            self._remove(self._launcher(action))
            self.lists["vmis"].remove(self._vmi(action))
        elif action.kind is ActionKind.EVICT:
            old = self._pod(action)
            self._remove(old)
            metadata = {key: value for key, value in old["metadata"].items() if key != "deletionTimestamp"}
            new = replacement({**old, "metadata": metadata})
            if new is not None and action.target is not None:
                fits = verdict(self.lists, new)["fit"]
                if self.lots is None and action.target not in fits:
                    self.wrong.append(f"{action}: only {fits}")
                node = action.target if self.lots is None else self.lots.choice(fits) if fits else ""
                if node:
                    self._place(new, new["metadata"]["name"], node)

    def _place(self, pod: Json, name: str, node: str) -> None:
        metadata = {**pod["metadata"], "name": name, "uid": f"uid-{name}"}
        status = {"phase": "Running"}
        self.lists["pods"].append({"metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def _remove(self, pod: Json) -> None:
        self.lists["pods"] = [other for other in self.lists["pods"] if other is not pod]

    def _node(self, name: str) -> Json:
        return next(node for node in self.lists["nodes"] if node["metadata"]["name"] == name)

    def _vmi(self, action: Action) -> Json:
        return next(vmi for vmi in self.lists["vmis"] if vmi["metadata"]["name"] == action.object.name)

    def _pod(self, action: Action) -> Json:
        return next(pod for pod in self.lists["pods"] if pod["metadata"]["name"] == action.object.name)

    def _launcher(self, action: Action) -> Json:
        """The older of a VMI's pods."""
        uid = self._vmi(action)["metadata"]["uid"]
        return next(pod for pod in self.lists["pods"] if pod["metadata"]["labels"].get(_CREATED_BY) == uid)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others do to a cluster while a plan is carried out; whom it befalls is drawn by lot."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving, replacement
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import Toleration

from checker.cluster import CarriedCluster
from unit.plugins.module_utils._planner.scene import Json, Lists

_LATE = "late-1"
_TOLERATES_ALL = Toleration(key="", operator="Exists", value="", effect="")
_GROWTH = 2**30


@dataclass(frozen=True, slots=True)
class LateMachine:
    """A VM that is off as yet, and as it will run."""

    vmi: Json
    pod: Json

    @classmethod
    def twin(cls, lists: Lists, dice: random.Random) -> LateMachine:
        """Of a VM of the lists, which know its owner from now on."""
        number = dice.randrange(len(lists["vmis"]))
        name = lists["vmis"][number]["metadata"]["name"]
        pod = next(pod for pod in lists["pods"] if pod["metadata"]["name"] == f"virt-launcher-{name}")
        text = json.dumps([lists["vmis"][number], pod, lists["vms"][number]])
        vmi, launcher, vm = json.loads(text.replace(f'"{name}"', f'"{_LATE}"').replace(f"-{name}", f"-{_LATE}"))
        lists["vms"].append(vm)
        return cls(vmi, launcher)


@dataclass(frozen=True, slots=True)
class Disturber:
    """away: nodes to which nothing comes, as they are maintained. busy: titles of what is in flight.

    Each of its deeds returns what it has done, a clause; empty if there is nobody to do it to.
    """

    cluster: CarriedCluster
    late: LateMachine
    away: Collection[str]
    busy: Collection[str]
    dice: random.Random

    def disturb(self) -> str:
        deeds = [self.add, self.end, self.grow, self.move_pod, self.cordon]
        self.dice.shuffle(deeds)
        return next(filter(None, (deed() for deed in deeds)), "")

    def add(self) -> str:
        """A VM, also where it is a moment before the cordon."""
        raw = self.late.pod
        pod = replace(parsed(raw), tolerations=(_TOLERATES_ALL,))
        nodes = [name for name in self.cluster.fits(pod) if name not in self.away]
        if not nodes:
            return ""
        node = self.dice.choice(nodes)
        self.cluster.put(raw, parsed(raw), node)
        self.cluster.run(self.late.vmi, node)
        return f"{title(self.late.vmi)} has come to {node}"

    def end(self) -> str:
        vmis = list(self._machines())
        if not vmis:
            return ""
        vmi = self.dice.choice(vmis)
        for pod in self.cluster.pods_of(vmi):
            self.cluster.take(title(pod))
        self.cluster.shut_down(vmi)
        return f"{title(vmi)} has ended"

    def grow(self) -> str:
        """Its memory, which arrives with its next migration."""
        vmis = list(self._machines())
        if not vmis:
            return ""
        vmi: Any = self.dice.choice(vmis)
        domain = vmi["spec"]["domain"]
        grown = {**domain, "memory": {**domain["memory"], "guest": "3584Mi"}}
        status = {**vmi["status"], "memory": {"guestRequested": domain["memory"]["guest"]}}
        self.cluster.run({**vmi, "spec": {**vmi["spec"], "domain": grown}, "status": status}, status["nodeName"])
        return f"{title(vmi)} grows to 3584Mi"

    def move_pod(self) -> str:
        moves = [(pod, node) for pod in self._pods() for node in self.cluster.fits(parsed(pod))]
        if not moves:
            return ""
        pod, node = self.dice.choice(moves)
        new: Any = replacement(pod)
        raw = {**new, "metadata": {**new["metadata"], "name": f"{pod['metadata']['name']}-anew"}}
        self.cluster.take(title(pod))
        self.cluster.put(raw, parsed(raw), node)
        return f"{title(raw)} is on {node} in place of {title(pod)}"

    def cordon(self) -> str:
        nodes = [name for name in self.cluster.free_nodes() if name not in self.away]
        if not nodes:
            return ""
        node = self.dice.choice(nodes)
        self.cluster.cordon(node)
        return f"{node} is cordoned by somebody"

    def _machines(self) -> Iterator[Object]:
        return (vmi for vmi in self.cluster.lists()["vmis"] if title(vmi) not in self.busy)

    def _pods(self) -> Iterator[Object]:
        for pod in self.cluster.lists()["pods"]:
            if not (of_a_machine(pod) or is_leaving(pod) or title(pod) in self.busy):
                yield pod

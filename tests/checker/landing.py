# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the pods come that the scheduler places: in place of others that were evicted, or of VMs that start again.

What is foretold is one of the nodes that fit, and by scores the scheduler may well take another one when others have
come first. So it is taken where the plan says, if it fits; nothing else is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from checker.cluster import CarriedCluster
from checker.order import Choice
from checker.violation import Fault, TellFlaw


@dataclass(slots=True)
class Newcomer:
    """A pod without a node that comes by an action. vmi: which starts in it, None for an ordinary pod.

    expected: its node by the plan, None if that does not tell. node: where it has come to, None as long as it waits.
    """

    action: Action
    raw: Object
    pod: Pod
    vmi: Object | None
    expected: str | None
    node: str | None = None


class Landing:
    """choice: decides on the node of a pod; None: it is as the plan expects.

    foreseen: where those come, by ids of actions, whose node the plan does not tell: as they came when actions ended
    one by one, for which the plan is made. `landed`: the same of this time. `came`: where each came.
    """

    def __init__(
        self,
        cluster: CarriedCluster,
        plan: Plan,
        tell: TellFlaw,
        choice: Choice | None = None,
        foreseen: Mapping[str, str] | None = None,
    ) -> None:
        self.landed: dict[str, str] = {}
        self.came: dict[str, str] = {}
        self._cluster, self._tell, self._choice = cluster, tell, choice
        self._profile = Profile(plan.options.get("profile") or Profile.LOW_NODE_UTILIZATION.value)
        self._foreseen = foreseen or {}
        self._late: list[Newcomer] = []
        self._mended = False
        self._take(plan)

    def follow(self, plan: Plan, choice: Choice | None = None) -> None:
        """From now on by a mended plan, which knows where those are that have come elsewhere than expected.

        It tells no node for a pod that had none at first. There may be one by now, and then the scheduler finds it.
        """
        self._mended, self._choice = True, choice
        self._take(plan)

    def _take(self, plan: Plan) -> None:
        self._turns = {action.id: number for number, action in enumerate(plan.actions)}
        self._next: defaultdict[tuple[str, str], list[Action]] = defaultdict(list)
        for action in plan.actions:
            if action.kind in LEAVING:
                self._next[action.object.kind, action.object.title].append(action)
        self._astray: list[Newcomer] = []

    def newcomer(self, action: Action, raw: Object, pod: Pod, vmi: Object | None) -> Newcomer:
        return Newcomer(action, raw, pod, vmi, self._expected(action, VMI if vmi else "Pod", title(vmi or raw)))

    def wait(self, newcomer: Newcomer) -> None:
        """For a node; the action by which it comes has ended."""
        self._late.append(newcomer)

    def place(self, newcomer: Newcomer, *, parting: bool) -> bool:
        """Ask the scheduler; whether it has found a node. parting: the one that it replaces is not gone yet."""
        fits = self._cluster.fits(newcomer.pod)
        node = self._chosen(newcomer, fits, parting=parting)
        if node is not None:
            self._land(newcomer, node)
        return node is not None

    def try_again(self) -> None:
        """Place those that wait, as something has changed. Who is not foretold comes when its batch is over."""
        self._late = [entry for entry in self._late if not self.place(entry, parting=False)]

    def serve(self) -> None:
        """Place whoever waits on any node that fits, as somebody looks at the cluster now."""
        nodes = ((newcomer, self._cluster.best(newcomer.pod, self._profile)) for newcomer in [*self._late])
        for newcomer, node in nodes:
            if node is not None:
                self._late.remove(newcomer)
                self._put(newcomer, node, counted=True)

    def settle(self) -> None:
        """At the end of a batch: put whoever has come elsewhere to where the plan takes it from now on.

        A run would mend its plan instead, which is for the mended one to answer.
        """
        for newcomer in self._astray:
            self._cluster.take(title(newcomer.raw))
        left, self._late, self._astray = [*self._astray, *self._late], [], []
        for newcomer in sorted(left, key=lambda entry: self._turns.get(entry.action.id, -1)):
            fits, node = self._cluster.fits(newcomer.pod), newcomer.expected
            if node is not None and node not in fits:
                self._refuse(newcomer, fits)
                node = None
            if node is None and (node := self._foreseen.get(newcomer.action.id)) not in fits:
                node = self._cluster.best(newcomer.pod, self._profile)
            if node is not None:
                self.landed[newcomer.action.id] = node
                self._put(newcomer, node, counted=newcomer.node is None)

    def _expected(self, action: Action, kind: str, name: str) -> str | None:
        if action.target is not None:
            return action.target
        later = (other.source for other in self._next[kind, name] if other.batch > action.batch)
        return next(later, None)

    def _chosen(self, newcomer: Newcomer, fits: tuple[str, ...], *, parting: bool) -> str | None:
        expected = newcomer.expected
        if not fits:
            return None
        if self._choice is not None:
            return self._choice(self._cluster, newcomer.pod, fits)
        if expected is None:
            return self._cluster.best(newcomer.pod, self._profile) if self._mended else None
        if expected in fits:
            return expected
        if parting:
            return None
        # Which nodes of its batch are back when a VM starts nobody can say.
        if newcomer.action.kind is not ActionKind.START:
            self._refuse(newcomer, fits)
        return self._cluster.best(newcomer.pod, self._profile)

    def _land(self, newcomer: Newcomer, node: str) -> None:
        self.came[newcomer.action.id] = node
        self._put(newcomer, node, counted=True)
        if newcomer.expected not in (None, node):
            self._astray.append(newcomer)

    def _put(self, newcomer: Newcomer, node: str, *, counted: bool) -> None:
        newcomer.node = node
        self._cluster.put(newcomer.raw, newcomer.pod, node)
        if newcomer.vmi is not None:
            self._cluster.run(newcomer.vmi, node)
        elif counted:
            self._cluster.disruptions.come_back(newcomer.raw)

    def _refuse(self, newcomer: Newcomer, fits: tuple[str, ...]) -> None:
        where = f"only {', '.join(fits)} can" if fits else self._cluster.refusal(newcomer.pod)
        what = "what replaces it" if newcomer.action.kind is ActionKind.EVICT else "it"
        self._tell(Fault.NO_PLACE, newcomer.action.id, f"{newcomer.expected} cannot take {what} at its moment: {where}")


def owned_by(vmi: Object, raw: Object) -> dict[str, Any]:
    """A launcher pod as that of a VMI."""
    metadata: Mapping[str, Any] = vmi["metadata"]
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": VMI,
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "controller": True,
    }
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": [owner]}}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what a plan calls blocked is really stuck, when all that can leave has left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import needs, tolerates_cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Blocked, Plan

from checker.cluster import CarriedCluster
from checker.violation import Fault, PlanFlaw

# Obstacles of those for whom only a node is missing, for good or for now.
_ROOM = frozenset({"no-node", "room-to-come", "room-to-restart"})


def free_to_leave(cluster: CarriedCluster, plan: Plan, batch: int) -> Iterator[PlanFlaw]:
    """Of what is blocked on the nodes of a batch, that which could leave."""
    for entry in plan.blocked:
        if entry.object.kind == "Node":
            continue  # what would be left in reserve is an estimate, which nothing here can refute
        if plan.batch_of(entry.node) == batch:
            way = _way_of_vm(cluster, plan, entry) if entry.object.kind == VMI else _way_of_pod(cluster, plan, entry)
            if way:
                yield PlanFlaw(Fault.NOT_STUCK, entry.object.title, way)


def _way_of_vm(cluster: CarriedCluster, plan: Plan, entry: Blocked) -> str:
    """How a VM could leave, a clause; empty if it cannot."""
    vmi = cluster.vmi(entry.object.title)
    if vmi is None:
        return "it is not there"
    if entry.obstacle.id == "tolerates-cordon":
        return ""
    wanted = (plan.options.get("targets") or {}).get(entry.object.title)
    for node in cluster.free_nodes() if wanted is None else [wanted]:
        selector = cluster.pin(node)
        if selector is None:
            continue
        asked = cluster.around.candidate(vmi, selector)
        if any(blocker.forbids for blocker in blockers(asked)):
            return ""
        if isinstance(asked.target_pod, Mapping) and node in cluster.fits(parsed(asked.target_pod)):
            return f"{node} can take it"
    return "" if entry.obstacle.id in _ROOM else "nothing but room stands against its migration"


def _way_of_pod(cluster: CarriedCluster, plan: Plan, entry: Blocked) -> str:
    pod = cluster.pod(entry.object.title)
    if pod is None:
        return "it is not there"
    allowed = plan.options.get("allowed") or ()
    missing = [need for need in needs(pod, kubevirt=cluster.around.configuration.namespace) if need not in allowed]
    if missing or tolerates_cordon(pod) or cluster.disruptions.refusal(pod) is not None:
        return ""
    return "nothing stands against its eviction"

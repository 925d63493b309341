# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can these nodes be drained together, and how: lists of a cluster in, a plan out.

residents.py    what is on the nodes
machines.py     VMs as movers, by live migration
evictions.py    ordinary pods that are evicted
departures.py   VMs that follow their policy instead
mover.py        what leaves, and what comes instead
board.py        the cluster with each mover at one of its stages
search.py       an order and nodes for all movers
waves.py        what may start together
pace.py         how long migrations take
fates.py        what becomes of VMs without the plan
story.py        the plan's words
drain_plan.py   the plan itself
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import queue
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets, Refusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import outcome, story
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.course import Course
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.departures import departure
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan, Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.evictions import eviction, is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.fates import machine_fates
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.machines import migration, passes
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.pace import seconds
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, policy_for
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Residents, residents
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waves import Caps
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.build import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

Object = Mapping[str, Any]
Lists = Mapping[str, Sequence[Object]]

_ATTEMPT = "plan the drain"
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Scene:
    """What a plan is about. By id of VMs: `ways` out by migration, `policies`; of pods: `refusals` of their eviction.

    Playing it changes its board, so that each plan needs a scene of its own.
    """

    lists: Lists
    nodes: tuple[str, ...]
    targets: Mapping[str, str]
    cluster: Surroundings
    board: Board
    residents: Residents
    ways: Mapping[str, Mover | tuple[Blocker, ...]]
    policies: Mapping[str, Policy]
    refusals: Mapping[str, Refusal]


def plan_drain(
    lists: Lists,
    nodes: Sequence[str],
    *,
    policies: Sequence[Rule] = (),
    avoid: Sequence[str] = (),
    targets: Mapping[str, str] | None = None,
    profile: Profile = Profile.LOW_NODE_UTILIZATION,
) -> DrainPlan:
    """The plan to empty the nodes, which are taken as cordoned, whether they are or not.

    avoid: nodes that VMs go to only if they fit nowhere else. targets: nodes for VMs, given as namespace/name.
    profile: how nodes that fit are ranked. Raises `Mistake`, LauncherError, WorkloadError, `SelectorError`,
    `QuantityError`, `NumpyMissingError`.
    """
    return plan(prepare(lists, nodes, policies, avoid, targets or {}), profile)


def prepare(
    lists: Lists, nodes: Sequence[str], policies: Sequence[Rule], avoid: Sequence[str], targets: Mapping[str, str]
) -> Scene:
    """What costs in proportion to the cluster; raises as `plan_drain` does."""
    _check(lists, nodes, avoid, targets)
    draining = frozenset(nodes)
    lists = _cordoned(lists, draining)
    cluster = surroundings(lists, Workloads(lists))
    board = Board(cluster_state(lists), draining, frozenset(avoid))
    found = residents(lists, cluster.workloads, draining)
    budgets = Budgets(lists.get("pdbs") or ())
    refusals = ((pod.id, budgets.refusal(pod.pod)) for pod in found.pods if not pod.stays)
    return Scene(
        lists,
        tuple(dict.fromkeys(nodes)),
        targets,
        cluster,
        board,
        found,
        ways={vm.id: migration(vm, cluster, board.state, targets.get(vm.key)) for vm in found.machines},
        policies={vm.id: policy_for(vm.vmi, policies) for vm in found.machines},
        refusals={name: refusal for name, refusal in refusals if refusal is not None},
    )


def plan(scene: Scene, profile: Profile = Profile.LOW_NODE_UTILIZATION) -> DrainPlan:
    """What costs in proportion to what is on the drained nodes; raises as `plan_drain` does."""
    board, machines = scene.board, scene.residents.machines
    course = Course(board, Caps.of(scene.cluster.configuration.migrations), profile)
    refused = {name for name, refusal in scene.refusals.items() if not refusal.passing}
    pods = (pod for pod in scene.residents.pods if not (pod.stays or is_leaving(pod.pod) or pod.id in refused))
    evictions = [eviction(pod, board.state) for pod in pods]
    course.move([*evictions, *(way for way in scene.ways.values() if isinstance(way, Mover))])

    patient = {name for name, way in scene.ways.items() if passes(way) or scene.policies[name] is Policy.FAIL}
    left = [vm for vm in machines if vm.id not in patient | course.on_their_way()]
    found = {vm.id: departure(vm, scene.policies[vm.id], scene.lists, scene.cluster, board.state) for vm in left}
    departures = {name: mover for name, mover in found.items() if isinstance(mover, Mover)}
    course.depart(departures, {name for name in departures if scene.policies[name] is Policy.RESTART})

    steps = outcome.numbered(course.waves)
    moves = outcome.moves(machines, steps, board, scene.targets, scene.cluster)
    objections = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    stuck = outcome.stuck_machines(machines, scene.ways, scene.policies, objections, steps, board)
    pod_fates = outcome.pod_fates(scene.residents.pods, scene.refusals, steps, board)
    prevented, delayed = outcome.is_prevented(stuck, pod_fates, board), outcome.is_delayed(stuck)
    feasible = not (prevented or delayed)
    migrations = queue(scene.cluster)
    return DrainPlan(
        nodes=scene.nodes,
        feasible=feasible,
        passing=delayed and not prevented,
        message=story.summary(scene.nodes, feasible, moves, stuck, pod_fates),
        moves=moves,
        stuck=stuck,
        pods=pod_fates,
        seconds=seconds(moves, migrations, scene.cluster),
        queue=migrations.machines(),
        fates=machine_fates(machines, scene.cluster),
    )


def _check(lists: Lists, nodes: Sequence[str], avoid: Sequence[str], targets: Mapping[str, str]) -> None:
    known = {node["metadata"]["name"] for node in lists.get("nodes") or ()}
    vmis = {title(vmi) for vmi in lists.get("vmis") or ()}
    problems = [
        *(_unknown("node", name, known) for name in (*nodes, *avoid, *targets.values()) if name not in known),
        *(_unknown("VirtualMachineInstance", name, vmis) for name in targets if name not in vmis),
        *(f"{name} is to go to {node}, which is drained itself" for name, node in targets.items() if node in nodes),
    ]
    if not nodes:
        problems.append("no node is named")
    if problems:
        raise Mistake(
            _ATTEMPT, list(dict.fromkeys(problems)), "Name nodes and VMs that are in the snapshot, or take a new one."
        )


def _unknown(kind: str, name: str, known: set[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"there is no {kind} {name}" + (f" (do you mean {near[0]}?)" if near else "")


def _cordoned(lists: Lists, names: frozenset[str]) -> Lists:
    """The lists as they are once the node controller has tainted the cordoned nodes."""
    nodes = [_cordon(node) if node["metadata"]["name"] in names else node for node in lists.get("nodes") or ()]
    return {**lists, "nodes": nodes}


def _cordon(node: Object) -> Object:
    spec = node.get("spec") or {}
    others = [taint for taint in spec.get("taints") or () if taint["key"] != _CORDON["key"]]
    return {**node, "spec": {**spec, "unschedulable": True, "taints": [*others, _CORDON]}}

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as a batch leaves it, for the next one: who moved has moved, nodes are back, and who was stopped runs.

What the plan brings about gets names and uids that no object can have, made of those of what was there before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import (
    uid_of_successor,
    vmi_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import next_launcher
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import waits
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.assumptions import assumptions_of_starts
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Solution
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True, slots=True)
class Comeback:
    """Where a VM starts that was stopped, and which others of its batch have to have started, by namespace/name.

    It needs them; or they start on its own node, which leaves it no place there, and find none if it comes first.
    assumed: phrases for what is taken for granted of that.
    """

    node: str
    after: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def carry(
    ground: Ground, solution: Solution, profile: Profile, staying: Collection[str] = (), *, shaken: bool = False
) -> dict[str, Comeback]:
    """Leave the ground as the solution does once its nodes are back. The board of its scene is used up.

    staying: pods, as namespace/name, that do not leave although the solution lets them, as their budgets do not.
    shaken: whether something is taken for granted of where the scheduler has put what went before.

    Returns how those start that were stopped, by namespace/name, each after all whom it needs. It costs in proportion
    to what moves. Raises LauncherError, WorkloadError, `QuantityError`, `SelectorError`.
    """
    board = solution.scene.board
    board.keep()
    ground.state.uncordon(board.draining)
    machines = {machine.id: machine for machine in solution.scene.residents.machines}
    steps = [step for step in solution.steps if step.mover.id not in staying]
    _keep(ground, (step for step in solution.steps if step.mover.id in staying))
    for step in steps:
        machine = machines.get(step.mover.id)
        gone = [machine.source_pod, *machine.attachments] if machine else []
        ground.take_off(step.mover.source, {step.mover.id, *map(title, gone)})
        if step.node is not None and step.mover.raw is not None:
            _settle(ground, step, machine, step.mover.raw, step.node)
    started: dict[str, Comeback] = {}
    occupants: dict[str, Occupant] = {}
    landed: list[tuple[str, Pod, str]] = []
    missing: set[str] = set()
    late = [step for step in steps if step.node is None]
    off, pods = ([step for step in late if (step.mover.id in machines) is is_vm] for is_vm in (True, False))
    # Who starts when its node is back starts there if it can, as others of its batch may not be back by then. Pods come
    # last: where they come is not told, and has to follow from what is.
    for step, home in (*((step, True) for step in off), *((step, False) for step in (*off, *pods))):
        machine = machines.get(step.mover.id)
        if machine is not None and machine.key in started:
            continue
        if found := _land(solution, step, machine, profile, machine.node if machine is not None and home else ""):
            newcomer, raw, node = found
            ground.state.add(newcomer.occupant, node)
            landed.append((machine.key if machine is not None else "", newcomer, node))
            _settle(ground, step, machine, raw, node)
            if machine is not None:
                needed = _needed(newcomer, occupants, ground)
                rivals = [key for key in occupants if not home and started[key].node == machine.node]
                started[machine.key] = Comeback(node, tuple(dict.fromkeys((*needed, *rivals))))
                occupants[machine.key] = newcomer.occupant
        elif machine is None:
            missing.add(step.mover.id)
    if missing:
        ground.miss(resident.pod for resident in solution.scene.residents.pods if resident.id in missing)
    phrases = assumptions_of_starts(board, [(pod, node) for _key, pod, node in landed], profile, shaken=shaken)
    assumed = dict(zip((key for key, _pod, _node in landed), phrases, strict=True))
    moved = {step.mover.id for step in steps}
    ground.end_migrations(machine.key for machine in machines.values() if machine.id in moved)
    return {key: replace(back, assumed=assumed[key]) for key, back in started.items()}


def _keep(ground: Ground, steps: Iterable[Step]) -> None:
    """Who was to leave is where it was."""
    for step in steps:
        for occupant in step.mover.leaving:
            ground.state.add(occupant, step.mover.source)


def touched(solution: Solution, started: Mapping[str, Comeback]) -> set[str]:
    """The names of all nodes that are not as they were once a solution is carried."""
    steps = solution.steps
    places = {node for step in steps for node in (step.node, step.mover.source) if node}
    return {*solution.scene.nodes, *places, *(back.node for back in started.values())}


def start(
    ground: Ground, homes: Mapping[str, str], profile: Profile, *, closed: Collection[str] = ()
) -> dict[str, Comeback]:
    """Let VMs start that are off, each on its own node, given by namespace/name, if it can; else where it would be put.

    closed: nodes that are about to be emptied, on none of which one starts. Who finds no node stays off. The rest is as
    in `carry`.
    """
    ground.state.cordon(closed)
    board = Board(ground.state, frozenset())
    started: dict[str, Comeback] = {}
    occupants: dict[str, Occupant] = {}
    for key, home in homes.items():
        vm = ground.cluster.workloads.vm(key)
        if vm is None:
            continue
        vmi = vmi_of(vm, ground.cluster.configuration)
        newcomer, raw, _refusals = next_launcher(vmi, vmi, ground.cluster)
        nodes = [option.node for option in board.ranked(newcomer, profile)]
        if nodes:
            node = home if home in nodes else nodes[0]
            ground.state.add(newcomer.occupant, node)
            _run(ground, {**vmi, "status": {**_READY, "nodeName": node}}, raw, node)
            started[key] = Comeback(node, _needed(newcomer, occupants, ground))
            occupants[key] = newcomer.occupant
    ground.state.cordon(())
    return started


def place(ground: Ground, waiting: Iterable[Object], profile: Profile) -> list[str]:
    """Let pods that have no node come to one, if there is any by now; returns the nodes. Raises as `carry`."""
    board, nodes = Board(ground.state, frozenset()), []
    for pod in waiting:
        newcomer = parsed(pod)
        if options := board.ranked(newcomer, profile):
            ground.state.add(newcomer.occupant, options[0].node)
            ground.take_off("", {title(pod)})
            _place(ground, pod, options[0].node)
            nodes.append(options[0].node)
    return nodes


def _needed(newcomer: Pod, others: Mapping[str, Occupant], ground: Ground) -> tuple[str, ...]:
    """The names of those that have to be there before a newcomer."""
    return tuple(name for name, other in others.items() if waits.needs(newcomer, [other], ground.state.namespaces))


def _land(
    solution: Solution, step: Step, machine: Machine | None, profile: Profile, home: str
) -> tuple[Pod, Object, str] | None:
    """The newcomer of somebody who had no node, or was stopped, and its node now; None if it still has none.

    home: the only node that it may come to, empty for any.
    """
    newcomer, raw, scene = step.mover.newcomer, step.mover.raw, solution.scene
    if machine is not None and newcomer is None and not step.mover.chosen:
        newcomer, raw, _refusals = next_launcher(machine.vmi, machine.source_pod, scene.cluster)
    if newcomer is None or raw is None:
        return None
    nodes = [option.node for option in scene.board.ranked(newcomer, profile) if home in ("", option.node)]
    return (newcomer, raw, nodes[0]) if nodes else None


def _settle(ground: Ground, step: Step, machine: Machine | None, raw: Object, node: str) -> None:
    """A newcomer is on its node, and the VMI that it belongs to runs there."""
    if machine is None:
        _place(ground, raw, node)
    else:
        _run(ground, _vmi(machine, node, moved=step.mover.chosen), raw, node)


def _run(ground: Ground, vmi: Object, raw: Object, node: str) -> None:
    """A VMI runs on a node, in this pod."""
    ground.put_vmi(vmi)
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": VMI,
        "name": vmi["metadata"]["name"],
        "uid": vmi["metadata"].get("uid"),
        "controller": True,
    }
    _place(ground, {**raw, "metadata": {**raw["metadata"], "ownerReferences": [owner]}}, node)


def _place(ground: Ground, raw: Object, node: str) -> None:
    ground.put_on(node, {**raw, "spec": {**raw["spec"], "nodeName": node}, "status": _READY})


def _vmi(machine: Machine, node: str, *, moved: bool) -> Object:
    """A VMI that was started anew is another one than before."""
    metadata, status = machine.vmi["metadata"], machine.vmi.get("status") or {}
    fresh = {key: value for key, value in status.items() if key != "evacuationNodeName"}
    named = metadata if moved or not metadata.get("uid") else {**metadata, "uid": uid_of_successor(machine.vmi)}
    return {**machine.vmi, "metadata": named, "status": {**fresh, "nodeName": node}}

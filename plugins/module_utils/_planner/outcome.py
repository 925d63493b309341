# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a course means for each VM and each pod of the drained nodes. The board is at the course's end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import disruption_budget
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import needs
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Refusal, pin_to
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    PREVENTED,
    Outcome,
    PlannedMove,
    PodFate,
    PodOutcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.pace import pace
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine, Resident
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.story import (
    why_departing,
    why_evicted,
    why_staying,
    why_there,
    why_waiting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import passes
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import unevaluated

# A step with the number of its wave, by the mover's id.
Steps = Mapping[str, tuple[int, Step]]
_NOTHING = Refusal("", {})


def numbered(waves: Sequence[Sequence[Step]]) -> dict[str, tuple[int, Step]]:
    return {step.mover.id: (number, step) for number, wave in enumerate(waves, start=1) for step in wave}


def moves(
    machines: Sequence[Machine], steps: Steps, board: Board, given: Collection[str], cluster: Surroundings
) -> tuple[PlannedMove, ...]:
    """given: keys of VMs whose target was asked for."""
    found = []
    for machine in machines:
        wave, step = steps.get(machine.id, (0, None))
        if step is None or step.option is None or step.mover.newcomer is None or not step.mover.chosen:
            continue
        namespace, _slash, name = machine.key.partition("/")
        target = step.option.node
        expected = pace(machine.vmi, cluster)
        found.append(
            PlannedMove(
                namespace=namespace,
                name=name,
                source_node=machine.node,
                target_node=target,
                node_selector=pin_to(board.state, target),
                wave=wave,
                score=step.option.score,
                why=why_there(step, given=machine.key in given, helps=machine.helps),
                unevaluated=(*step.mover.open, *unevaluated(step.mover.newcomer)),
                migration_policy=expected.policy,
                seconds=expected.seconds,
                ending=expected.ending,
            )
        )
    return tuple(sorted(found, key=lambda move: (move.wave, move.namespace, move.name)))


def stuck_machines(
    machines: Sequence[Machine],
    ways: Mapping[str, Mover | tuple[Blocker, ...]],
    policies: Mapping[str, Policy],
    objections: Mapping[str, str],
    steps: Steps,
    board: Board,
) -> tuple[StuckMachine, ...]:
    """VMs that do not migrate. By id, ways: their migrations, or what forbids these; objections: to their policies."""
    found = []
    for machine in sorted(machines, key=_turn(steps)):
        wave, step = steps.get(machine.id, (None, None))
        if step is None or not step.mover.chosen:
            way, policy, objection = ways[machine.id], policies[machine.id], objections.get(machine.id, "")
            found.append(_stuck(machine, way, policy, objection, wave, step, board))
    return tuple(found)


def _stuck(
    machine: Machine,
    way: Mover | tuple[Blocker, ...],
    policy: Policy,
    objection: str,
    wave: int | None,
    step: Step | None,
    board: Board,
) -> StuckMachine:
    mover, blockers = (way, ()) if isinstance(way, Mover) else (None, way)
    if passes(way):
        result, refusal, why = Outcome.WAITS, _NOTHING, why_waiting(blockers)
    elif step is None:
        result = Outcome.STAYS
        refusal = board.refusal(mover) if mover is not None else _NOTHING
        why = why_staying(policy, objection, blockers, refusal.message)
    else:
        result = Outcome.RESTARTS if step.node is not None else Outcome.STOPS
        refusal = board.refusal(step.mover) if step.node is None else _NOTHING
        why = why_departing(step, by_set=(controller(machine.vmi) or {}).get("kind") == VMI_REPLICA_SET)
    namespace, _slash, name = machine.key.partition("/")
    return StuckMachine(
        namespace=namespace,
        name=name,
        node=machine.node,
        policy=policy,
        outcome=result,
        wave=wave,
        target_node=None if step is None else step.node,
        choices=() if step is None else step.choices,
        message=refusal.message,
        reasons={node: tuple(reasons) for node, reasons in refusal.reasons.items()},
        blockers=blockers,
        why=why,
    )


def pod_fates(
    residents: Sequence[Resident],
    refusals: Mapping[str, disruption_budget.EvictionRefusal],
    steps: Steps,
    board: Board,
    cluster: Surroundings,
) -> tuple[PodFate, ...]:
    """refusals: of evictions, by the pod's id."""
    kubevirt = cluster.configuration.namespace
    ordered = sorted(residents, key=_turn(steps))
    return tuple(_pod_fate(resident, refusals.get(resident.id), steps, board, kubevirt) for resident in ordered)


def _turn(steps: Steps) -> Callable[[Machine | Resident], tuple[int, str]]:
    """Who has no step comes first, by name; the others as planned, as the scheduler's choices depend on who came."""
    turns = {name: number for number, name in enumerate(steps, start=1)}
    return lambda one: (turns.get(one.id, 0), one.key)


def is_prevented(stuck: Sequence[StuckMachine], pods: Sequence[PodFate], board: Board) -> bool:
    """Whether a VM or pod neither leaves nor follows its policy, for a reason that does not go away by itself."""
    kept = any(machine.outcome is Outcome.STAYS or machine.target_node in board.draining for machine in stuck)
    return kept or any(pod.outcome in PREVENTED for pod in pods)


def is_delayed(stuck: Sequence[StuckMachine]) -> bool:
    """Whether a VM has to be waited for before it can leave."""
    return any(machine.outcome is Outcome.WAITS for machine in stuck)


def _pod_fate(
    resident: Resident, refusal: disruption_budget.EvictionRefusal | None, steps: Steps, board: Board, kubevirt: str
) -> PodFate:
    namespace, _slash, name = resident.key.partition("/")
    refused = refusal is not None and not refusal.passing
    wave, step = (None, None) if refused else steps.get(resident.id, (None, None))
    wanted = () if resident.stays else tuple(needs(resident.pod, kubevirt=kubevirt))
    outcome = _pod_outcome(resident, step, board, kept=bool(wanted) and not refused)
    return PodFate(
        namespace=namespace,
        name=name,
        node=resident.node,
        outcome=outcome,
        wave=wave,
        target_node=None if step is None else step.node,
        choices=() if step is None else step.choices,
        message=board.refusal(step.mover).message if step is not None and outcome is PodOutcome.WAITS else "",
        needs=wanted,
        budgets=() if refusal is None else refusal.budgets,
        why=resident.stays or why_evicted(outcome, refusal, is_leaving(resident.pod)),
    )


def _pod_outcome(resident: Resident, step: Step | None, board: Board, *, kept: bool) -> PodOutcome:
    """kept: whether it is for want of permission if it does not leave."""
    if resident.stays:
        return PodOutcome.STAYS
    if step is None:
        return PodOutcome.ENDS if is_leaving(resident.pod) else PodOutcome.KEPT if kept else PodOutcome.REFUSED
    if step.mover.newcomer is None:
        return PodOutcome.ENDS
    if step.node is None:
        return PodOutcome.WAITS
    return PodOutcome.RETURNS if step.node in board.draining else PodOutcome.MOVES

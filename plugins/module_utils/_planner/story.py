# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a plan, and of each choice in it."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import EvictionRefusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    PREVENTED,
    Outcome,
    PlannedMove,
    PodFate,
    PodOutcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step

_MOST_NAMED = 3
_NO_TARGET = "the nodes that fit are drained too, or have no label kubernetes.io/hostname of their own to pin it by"


def why_there(step: Step, *, given: bool, helps: str = "") -> str:
    """A clause on the choice of a VM's target. helps: the node for whose sake it makes room where it is, if so."""
    option = step.option
    if given:
        text = "the task asks for this node"
    elif step.rivals == 1:
        text = "no other node fits"
    else:
        text = f"of {step.rivals} nodes that fit it is the best"
    if option is not None and option.avoided and not given:
        text += ", all of them nodes to avoid"
    if option is not None and option.uneven:
        text += ", and only a pinned migration gets past the VM's own topology spread constraint"
    if helps:
        text = f"it makes room on {step.mover.source} for what leaves {helps}; {text}"
    return f"{text}, once others have left" if step.follows else text


def why_staying(policy: Policy, objection: str, blockers: Sequence[Blocker], message: str) -> str:
    """Why a VM that cannot be migrated does not leave, a sentence or two.

    objection: why its policy cannot be followed. message: the scheduler's.
    """
    cause = _as_clause(blockers) or ("no node fits" if message else _NO_TARGET)
    if policy is Policy.FAIL:
        return f"It cannot be migrated: {cause}."
    return f"It cannot be migrated: {cause}. Nor can it {policy.value}: {objection or 'no node would fit then either'}."


def why_waiting(blockers: Sequence[Blocker]) -> str:
    """Why a VM does not leave for now, a sentence."""
    return f"It cannot be migrated yet: {_as_clause(blockers)}."


def why_departing(step: Step, *, by_set: bool) -> str:
    """What happens to a VM that follows its policy, a sentence. by_set: its replica set makes another one at once."""
    if step.node is not None and by_set:
        return f"It is shut down, and its replica set makes another one at once, which starts on {step.node}."
    if step.node is not None:
        return f"It cannot be migrated; it is shut down and starts again on {step.node}."
    if step.mover.newcomer is not None:
        return "It is shut down, and the VM that its owner makes instead waits until a node fits."
    return "It is shut down until it is started again."


def why_evicted(outcome: PodOutcome, refusal: EvictionRefusal | None, leaving: bool) -> str:
    """What happens to a pod that has to leave, a sentence or two. refusal: of its eviction, now."""
    if leaving:
        return "It is being deleted already."
    texts = {
        PodOutcome.MOVES: "Its controller replaces it elsewhere.",
        PodOutcome.WAITS: "Its replacement fits no node and waits.",
        PodOutcome.RETURNS: "Its replacement tolerates the cordon and comes back to a node that is drained.",
        PodOutcome.ENDS: "Nothing replaces it.",
        PodOutcome.REFUSED: "It cannot be evicted.",
        PodOutcome.KEPT: "What its eviction needs is not allowed.",
    }
    return f"{texts[outcome]} {refusal.reason}." if refusal is not None else texts[outcome]


def summary(
    nodes: Sequence[str],
    feasible: bool,
    moves: Sequence[PlannedMove],
    stuck: Sequence[StuckMachine],
    pods: Sequence[PodFate],
) -> str:
    """The plan in a sentence or two."""
    where = ", ".join(nodes)
    if not feasible:
        obstacles, waits = _obstacles(nodes, stuck, pods), _waits(stuck)
        return f"{where} cannot be drained{'' if obstacles else ' yet'}: {'; '.join(_first([*obstacles, *waits]))}."
    leaving = [pod for pod in pods if pod.wave is not None]
    counts = (
        (len(moves), "VM migrates", "VMs migrate"),
        (_count(stuck, Outcome.RESTARTS), "VM restarts elsewhere", "VMs restart elsewhere"),
        (_count(stuck, Outcome.STOPS), "VM stops", "VMs stop"),
        (len(leaving), "pod is evicted", "pods are evicted"),
    )
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    if not parts:
        return f"{where} can be drained: nothing has to leave."
    waves = max(wave or 0 for wave in (*(m.wave for m in moves), *(m.wave for m in stuck), *(p.wave for p in leaving)))
    waiting = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.outcome is PodOutcome.WAITS]
    more = f" There is no room for the replacement of {_listed(waiting)}, which will wait." if waiting else ""
    slow = [f"{move.namespace}/{move.name}" for move in moves if move.ending is Ending.ABORTED]
    if slow:
        more += (
            f" KubeVirt would abort the migration of {_listed(slow)}, which takes longer than its completion timeout."
        )
    return f"{where} can be drained in {waves} wave{'s' if waves > 1 else ''}: {', '.join(parts)}.{more}"


def _count(stuck: Sequence[StuckMachine], outcome: Outcome) -> int:
    return sum(machine.outcome is outcome for machine in stuck)


def _obstacles(nodes: Sequence[str], stuck: Sequence[StuckMachine], pods: Sequence[PodFate]) -> list[str]:
    """What keeps a node from being emptied and lasts."""
    texts = [
        f"VM {machine.namespace}/{machine.name} cannot leave ({cause_of(machine)})"
        for machine in stuck
        if machine.outcome is Outcome.STAYS
    ]
    texts += [
        f"VM {machine.namespace}/{machine.name} tolerates the cordon, and starts again on {machine.target_node}"
        for machine in stuck
        if machine.target_node in nodes
    ]
    texts += [f"pod {pod.namespace}/{pod.name}: {pod.why.rstrip('.')}" for pod in pods if pod.outcome in PREVENTED]
    return texts


def _waits(stuck: Sequence[StuckMachine]) -> list[str]:
    return [
        f"VM {machine.namespace}/{machine.name} cannot leave yet ({cause_of(machine)})"
        for machine in stuck
        if machine.outcome is Outcome.WAITS
    ]


def _first(texts: list[str]) -> list[str]:
    hidden = len(texts) - _MOST_NAMED
    return texts[:_MOST_NAMED] + ([f"and {hidden} more"] if hidden > 0 else [])


def cause_of(machine: StuckMachine) -> str:
    """Why a VM cannot be migrated, a clause."""
    return _as_clause(machine.blockers) or machine.message.rstrip(".") or _NO_TARGET


def _as_clause(blockers: Sequence[Blocker]) -> str:
    """What is wrong and what to do; empty without blockers."""
    return blockers[0].clause if blockers else ""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

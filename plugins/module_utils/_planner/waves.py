# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pack steps into waves: what may start together, in whatever order it then happens.

KubeVirt starts as many migrations as its caps allow, and which target pod is placed first, or which migration ends
first, nobody knows. So within a wave each move has to be legal whether the others have not begun, are on their way, or
have ended.

Where the scheduler chooses, its choice depends on who has come before. Those steps are the first of a wave, one after
the other, and are in it only if the scheduler still chooses the planned node then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

# Beside how many others that it is spread with a VM may be on its way: each more makes three times as much to look at.
_MOST_COUNTED = 4


@dataclass(frozen=True, slots=True)
class Caps:
    """Migrations in flight at most: in the cluster, and away from one node."""

    cluster: int
    outbound: int

    @classmethod
    def of(cls, migrations: Migrations) -> Caps:
        return cls(migrations.parallel_per_cluster, migrations.parallel_outbound_per_node)

    def admit(self, wave: Sequence[Step], step: Step) -> bool:
        """Whether a step may join a wave. A wave of one is always allowed, whatever the caps."""
        if not step.mover.chosen:
            return True
        sources = Counter(other.mover.source for other in wave if other.mover.chosen)
        return not sources or (sources.total() < self.cluster and sources[step.mover.source] < self.outbound)


def pack(board: Board, steps: Sequence[Step], caps: Caps, profile: Profile) -> list[list[Step]]:
    """The waves of steps that are legal one after the other. The board is at their end, and before was at their start.

    A later step may overtake earlier ones that cannot join a wave. Where that brings a step into a state in which it is
    illegal, or not what the scheduler would choose, each step gets a wave of its own. profile: the scheduler's.
    """
    waves = _overtaking(board, steps, caps, profile)
    if waves is None:
        waves = [[step] for step in steps]
        board.reset([step.mover for step in steps])
        _put(board, steps, Stage.AFTER)
    return waves


def _overtaking(board: Board, steps: Sequence[Step], caps: Caps, profile: Profile) -> list[list[Step]] | None:
    waves: list[list[Step]] = []
    left = list(steps)
    while left:
        wave: list[Step] = []
        later: list[Step] = []
        for step in left:
            foretold = _foretold(board, wave, step, profile)
            if foretold and caps.admit(wave, foretold) and _compatible(board, wave, foretold):
                wave.append(foretold)
            else:
                later.append(step)
        if not wave:
            return None
        _put(board, wave, Stage.AFTER)
        waves.append(wave)
        left = later
    return waves


def _foretold(board: Board, wave: Sequence[Step], step: Step, profile: Profile) -> Step | None:
    """The step as the scheduler takes it in this wave; None if it would choose another node then."""
    if step.mover.chosen or step.node is None:
        return step
    ahead = [other for other in wave if not other.mover.chosen]
    _put(board, ahead, Stage.AFTER)
    options = board.options(step.mover, profile)
    _put(board, ahead, Stage.BEFORE)
    choices = options.as_good_as_the_best()
    return replace(step, rivals=len(options), choices=choices) if step.node in choices else None


def _compatible(board: Board, wave: Sequence[Step], step: Step) -> bool:
    """Whether a step and the others of a wave are legal beside each other; all are at their source then."""
    if not board.legal(step.mover, step.node):
        return False
    # The others are legal beside each other already.
    return _legal_beside(board, step, wave) and all(
        _legal_beside(board, other, [*(third for third in wave if third is not other), step])
        for other in wave
        if other.mover.chosen and _touches(board, step, other)
    )


def _legal_beside(board: Board, step: Step, others: Sequence[Step]) -> bool:
    """Whether a step that is legal while the others are at their source is so wherever they are."""
    if step.mover.chosen:
        others = [other for other in others if _touches(board, other, step)]
    if not others:
        return True
    counted = [other for other in others if step.mover.chosen and _counts(step, other)]
    if len(counted) > _MOST_COUNTED:
        return False
    rest = [other for other in others if other not in counted]
    return all(_legal_amid(board, step, moment) for moment in _moments(counted, rest))


def _legal_amid(board: Board, step: Step, moment: Sequence[tuple[Step, Stage]]) -> bool:
    for other, stage in moment:
        board.put(other.mover, stage, other.node)
    legal = board.legal(step.mover, step.node)
    for other, _stage in moment:
        board.put(other.mover, Stage.BEFORE)
    return legal


def _moments(counted: Sequence[Step], rest: Sequence[Step]) -> Iterator[list[tuple[Step, Stage]]]:
    """How far others may be while a step is made: those moments among which there are the worst.

    More pods on nodes are never better where no company is needed, and fewer never where it is: all on their way, or
    all over. Only even spreading asks for pods here and minds them there, so that those it counts may be anywhere.
    """
    for stage in (Stage.DURING, Stage.AFTER) if rest else (Stage.AFTER,):
        for stages in product(Stage, repeat=len(counted)):
            yield [*((other, stage) for other in rest), *zip(counted, stages, strict=True)]


def _touches(board: Board, moving: Step, placed: Step) -> bool:
    """Whether a newcomer whose node the planner chooses may fit it or not, depending on how far one that moves is.

    That is so if they share a node or a claim, or if one of them has a rule that is about the other.
    """
    newcomer = placed.mover.newcomer
    if newcomer is None:
        return False
    if placed.node in (moving.mover.source, moving.node) or _counts(placed, moving):
        return True
    own, spaces = newcomer.occupant, board.state.namespaces
    terms = (*own.affinity.required, *own.anti_affinity.required)
    claims = {reference.name for reference in own.volumes.claims}
    return any(
        any(term.matches(pod.namespace, spaces.get(pod.namespace, {}), pod.labels) for term in terms)
        or any(
            term.matches(own.namespace, spaces.get(own.namespace, {}), own.labels)
            for term in pod.anti_affinity.required
        )
        or (pod.namespace == own.namespace and any(reference.name in claims for reference in pod.volumes.claims))
        for pod in _pods(moving)
    )


def _counts(step: Step, other: Step) -> bool:
    """Whether a required spread constraint of a step's newcomer counts the pods of another one."""
    newcomer = step.mover.newcomer
    if newcomer is None:
        return False
    return any(
        constraint.hard and pod.namespace == newcomer.occupant.namespace and constraint.selector.matches(pod.labels)
        for constraint in newcomer.spread
        for pod in _pods(other)
    )


def _pods(step: Step) -> list[Occupant]:
    """Those that go, and the one that comes."""
    return [*step.mover.leaving, *([step.mover.newcomer.occupant] if step.mover.newcomer else [])]


def _put(board: Board, steps: Sequence[Step], stage: Stage) -> None:
    for step in steps:
        board.put(step.mover, stage, step.node)

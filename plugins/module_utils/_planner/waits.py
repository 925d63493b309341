# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom each step has to wait for, and for nobody else.

A step may begin when those that it waits for have ended; how far all others are by then, nobody knows. So it has to be
legal whatever they do. Most steps are, and for the others the fewest waits are found that make them so.

More pods on nodes are never better for a pod, so of what the others may do it is the worst that all are on their way,
at both ends. There are two exceptions: who is spread minds pods here and asks for them there, and who needs company
asks for it. Those that such a step sees may be anywhere, and each of their moments is looked at.

Where an evicted pod is made again the scheduler says, by its scores and by lot, and that depends on who has come first.
So a migration has room on its node even if all pods that may come meanwhile come there: the others are evicted later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step

# Beside how many others that it sees a step may begin: each more makes three times as much to look at.
_MOST_SEEN = 4


def find_waits(
    board: Board,
    steps: Sequence[Step],
    *,
    last: Collection[str] = (),
    begun: Collection[str] = (),
    given: Mapping[str, Collection[str]] | None = None,
    unasked: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """By ids of movers, the ones that each waits for, without those that it waits for already through another one.

    steps: legal one after the other, at whose end the board is, and is left. last: ids of those that wait for all
    before them but each other. begun: ids of those that are on their way already, the first of the steps. given: for
    whom some wait anyway, by ids. unasked: ids of those that are taken as legal once these have ended.
    """
    found = _Waits(board, steps, begun, unasked)
    found.put_last(last)
    found.take(given or {})
    return found.found()


class _Waits:
    """Steps go by their numbers. An edge leads from an earlier step to a later one, so that there are no circles."""

    def __init__(self, board: Board, steps: Sequence[Step], begun: Collection[str], unasked: Collection[str]) -> None:
        self._board = board
        self._steps = steps
        self._begun = {number for number, step in enumerate(steps) if step.mover.id in begun}
        self._asked = {n for n, step in enumerate(steps) if step.mover.id not in unasked} - self._begun
        self._now = [Stage.AFTER] * len(steps)
        self._ahead: list[set[int]] = [set() for _step in steps]
        self._behind: list[set[int]] = [set() for _step in steps]
        self._seen = [self._sees(number) for number in range(len(steps))]
        self._roaming = {
            n: board.reach(step.mover.newcomer) for n, step in enumerate(steps) if n in self._asked and step.mover.roams
        }

    def put_last(self, last: Collection[str]) -> None:
        for number, step in enumerate(self._steps):
            if step.mover.id in last:
                for earlier in range(number):
                    if self._steps[earlier].mover.id not in last:
                        self._connect(earlier, number)

    def take(self, given: Mapping[str, Collection[str]]) -> None:
        """Edges that lead from an earlier step to a later one; others are of no use any more."""
        numbers = {step.mover.id: number for number, step in enumerate(self._steps)}
        for later, names in given.items():
            for earlier in names:
                if earlier in numbers and numbers[earlier] < numbers.get(later, -1):
                    self._connect(numbers[earlier], numbers[later])

    def found(self) -> dict[str, tuple[str, ...]]:
        for number in range(len(self._steps)):
            if number in self._asked and not self._legal(number, ()):
                self._settle(number)
        for number in range(len(self._steps)):
            self._set(number, Stage.AFTER)
        names = [step.mover.id for step in self._steps]
        return {name: tuple(names[other] for other in self._direct(number)) for number, name in enumerate(names)}

    def _settle(self, number: int) -> None:
        """Let a step wait for others, or others for it, as few as can be."""
        earlier = [other for other in range(number) if other not in self._ahead[number]]
        later = [other for other in range(number + 1, len(self._steps)) if other not in self._behind[number]]
        choices = [*earlier, *later]
        if self._legal(number, choices):
            choices = fewest(choices, lambda chosen: self._legal(number, chosen))
        elif not self._steps[number].mover.chosen:
            return  # it waits by itself, without a node, until one is fit for it
        for other in choices:
            self._connect(min(other, number), max(other, number))

    def _connect(self, earlier: int, later: int) -> None:
        for above in (earlier, *self._ahead[earlier]):
            for below in (later, *self._behind[later]):
                self._ahead[below].add(above)
                self._behind[above].add(below)

    def _direct(self, number: int) -> Iterator[int]:
        ahead = self._ahead[number]
        return (other for other in sorted(ahead) if self._behind[other].isdisjoint(ahead))

    def _legal(self, number: int, tied: Collection[int]) -> bool:
        """Whether a step is legal whatever others do but those that it is tied to, by an edge or one to come."""
        fixed = {other: Stage.AFTER if other < number else Stage.BEFORE for other in tied}
        for other in self._ahead[number]:
            fixed[other] = Stage.AFTER
        for other in self._behind[number]:
            fixed[other] = Stage.BEFORE
        seen = [other for other in self._seen[number] if other not in fixed]
        if len(seen) > _MOST_SEEN:
            return False
        self._set(number, Stage.BEFORE)
        for other in range(len(self._steps)):
            if other != number:
                self._set(other, fixed.get(other, Stage.DURING))
        with self._board.crowded(self._guests(number, fixed), self._steps[number].node):
            moments = product(*map(self._may, seen))
            return all(self._fits_amid(number, zip(seen, stages, strict=True)) for stages in moments)

    def _guests(self, number: int, fixed: Collection[int]) -> list[Occupant]:
        """Pods that may come to the node of a migration before it, although they are expected elsewhere."""
        step = self._steps[number]
        if not step.mover.chosen or step.node is None:
            return []
        place = self._board.state.nodes.index[step.node]
        coming = ((self._steps[other], reach) for other, reach in self._roaming.items() if other not in fixed)
        return [
            guest.mover.newcomer.occupant
            for guest, reach in coming
            if guest.mover.newcomer is not None and guest.node != step.node and reach[place]
        ]

    def _fits_amid(self, number: int, moment: Iterator[tuple[int, Stage]]) -> bool:
        for other, stage in moment:
            self._set(other, stage)
        step = self._steps[number]
        return self._board.admits(step.mover, step.node)

    def _may(self, number: int) -> tuple[Stage, ...]:
        return (Stage.DURING, Stage.AFTER) if number in self._begun else tuple(Stage)

    def _set(self, number: int, stage: Stage) -> None:
        if self._now[number] is not stage:
            self._board.put(self._steps[number].mover, stage, self._steps[number].node)
            self._now[number] = stage

    def _sees(self, number: int) -> list[int]:
        step, spaces = self._steps[number], self._board.state.namespaces
        return [other for other, entry in enumerate(self._steps) if other != number and sees(step, entry, spaces)]


def sees(step: Step, other: Step, namespaces: Mapping[str, Labels]) -> bool:
    """Whether who takes a step is better off for some pods of another mover. namespaces: their labels."""
    newcomer = step.mover.newcomer
    if newcomer is None:
        return False
    pods = (*other.mover.leaving, *([other.mover.newcomer.occupant] if other.mover.newcomer else []))
    return needs(newcomer, pods, namespaces)


def needs(newcomer: Pod, pods: Collection[Occupant], namespaces: Mapping[str, Labels]) -> bool:
    """Whether a newcomer is better off for some of the pods, being spread with them or near to them.

    namespaces: their labels.
    """
    spread = any(
        constraint.hard and pod.namespace == newcomer.occupant.namespace and constraint.selector.matches(pod.labels)
        for constraint in newcomer.spread
        for pod in pods
    )
    return spread or any(
        term.matches(pod.namespace, namespaces.get(pod.namespace, {}), pod.labels)
        for term in newcomer.occupant.affinity.required
        for pod in pods
    )


def fewest(choices: Sequence[int], enough: Callable[[Sequence[int]], bool]) -> list[int]:
    """The least of the choices that are enough, of which none can be spared; the first ones are preferred.

    All of them have to be enough, and more never be worse. It is QuickXplain (Junker 2004).
    """

    def among(given: Sequence[int], choices: Sequence[int], *, grown: bool) -> list[int]:
        if grown and enough(given):
            return []
        if len(choices) == 1:
            return list(choices)
        half = (len(choices) + 1) // 2
        first, second = choices[:half], choices[half:]
        of_second = among([*given, *first], second, grown=bool(first)) if second else []
        of_first = among([*given, *of_second], first, grown=bool(of_second))
        return [*of_first, *of_second]

    return among((), choices, grown=False) if choices else []

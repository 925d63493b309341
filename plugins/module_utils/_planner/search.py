# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find an order and nodes for all movers, such that each finds its node legal when its turn comes.

Greedy, then repair: whoever finds no node comes first in the next attempt, and whoever stands in the way of another
may not go there again. The number of attempts is bounded, and the same input gives the same answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import MEMORY
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board, Stage
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Option, Options
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

MOST_ATTEMPTS = 48


@dataclass(frozen=True, slots=True)
class Step:
    """A mover goes to a node, or leaves for none. `rivals`: how many nodes it could have gone to, this one included.

    `choices`: those of which the scheduler takes any, if it has the choice. `follows`: the node is legal only once
    others have left.
    """

    mover: Mover
    option: Option | None
    rivals: int = 0
    choices: tuple[str, ...] = ()
    follows: bool = False

    @property
    def node(self) -> str | None:
        return None if self.option is None else self.option.node


@dataclass(frozen=True, slots=True)
class Attempt:
    """`steps` in an order that is legal when each ends before the next begins; `stuck`: found no node."""

    steps: tuple[Step, ...]
    stuck: tuple[Mover, ...]

    @property
    def cost(self) -> tuple[int, int]:
        return sum(mover.chosen for mover in self.stuck), len(self.stuck)


@dataclass(frozen=True, slots=True)
class _Start:
    """What an attempt begins with. `forbidden`: nodes that a mover may not go to, by its id. `packed`: see `go`."""

    order: tuple[Mover, ...]
    packed: bool = False
    forbidden: frozenset[tuple[str, str]] = frozenset()

    @property
    def identity(self) -> tuple[object, ...]:
        return tuple(mover.id for mover in self.order), self.packed, self.forbidden


def search(board: Board, movers: Sequence[Mover], profile: Profile) -> Attempt:
    """The best attempt: fewest VMs without a node, then fewest movers. The board is left as it was, at the start."""
    choices = {mover.id: len(board.options(mover, Profile.NO_SCORING)) for mover in movers if mover.chosen}
    hopeless = tuple(mover for mover in movers if choices.get(mover.id) == 0 and _is_hopeless(board, mover, movers))
    order = by_difficulty([mover for mover in movers if mover not in hopeless], choices)
    sources: deque[Iterator[_Start]] = deque([iter((_Start(order, packed=profile is Profile.HIGH_NODE_UTILIZATION),))])
    best: Attempt | None = None
    for start in islice(_starts(sources), MOST_ATTEMPTS):
        attempt = go(board, start.order, profile, start.packed, start.forbidden)
        board.reset(movers)
        if best is None or attempt.cost < best.cost:
            best = attempt
        if not attempt.stuck:
            break
        sources.append(_repairs(board, start, attempt))
    return Attempt(best.steps if best else (), (*(best.stuck if best else ()), *hopeless))


def go(
    board: Board,
    order: Sequence[Mover],
    profile: Profile,
    packed: bool = False,
    forbidden: frozenset[tuple[str, str]] = frozenset(),
) -> Attempt:
    """Move one after the other; who finds no node tries again when others have moved. The board is left at the end.

    packed: those for whom the planner chooses go to fuller nodes first. The scheduler keeps to its profile.
    """
    steps: list[Step] = []
    left = list(order)
    while left:
        stuck = []
        for mover in left:
            if mover.newcomer is None:
                board.put(mover, Stage.AFTER)
                steps.append(Step(mover, None))
                continue
            wanted = Profile.HIGH_NODE_UTILIZATION if packed and mover.chosen else profile
            options = board.options(mover, wanted).without({node for moving, node in forbidden if moving == mover.id})
            if not options:
                stuck.append(mover)
                continue
            board.put(mover, Stage.AFTER, options[0].node)
            steps.append(step_to_best(mover, options))
        if len(stuck) == len(left):
            break
        left = stuck
    return Attempt(tuple(steps), tuple(left))


def step_to_best(mover: Mover, options: Options) -> Step:
    """`options`: at least one, the best first."""
    # Who is pinned to a node leaves the scheduler no choice; to name all that would do as well costs their number.
    choices = () if mover.chosen else options.as_good_as_the_best()
    return Step(mover, options[0], len(options), choices)


def by_difficulty(movers: Sequence[Mover], choices: Mapping[str, int]) -> tuple[Mover, ...]:
    """VMs before pods, as nobody can say for sure which places those take; of VMs first those with the fewest nodes.

    Of equals the one that takes more memory comes first, as it is harder to place later. Before all of them go pods
    that would rather come back once their node is emptier. choices: how many nodes a VM could go to at once, by id.
    """

    def rank(mover: Mover) -> tuple[int, bool, int, int, str]:
        memory = mover.newcomer.occupant.requests.get(MEMORY, 0) if mover.newcomer is not None else 0
        # Without a node now it may have one later, when others have moved, so it comes last.
        nodes = choices.get(mover.id, 0)
        return (1, nodes == 0, nodes, -memory, mover.key) if mover.chosen else (2 * mover.roams, False, 0, 0, mover.key)

    return tuple(sorted(movers, key=rank))


def _is_hopeless(board: Board, mover: Mover, movers: Sequence[Mover]) -> bool:
    """Whether a VM has no node even when all others are gone, as far as others can only be in its way.

    They can also be company that it needs, or what others are counted against to be even.
    """
    newcomer = mover.newcomer
    if newcomer is None or newcomer.occupant.affinity.required or any(entry.hard for entry in newcomer.spread):
        return False
    for other in movers:
        if other is not mover:
            board.put(other, Stage.AFTER)
    try:
        return not board.options(mover, Profile.NO_SCORING)
    finally:
        board.reset(movers)


def _starts(sources: deque[Iterator[_Start]]) -> Iterator[_Start]:
    """Each start once. What is known first is tried first, and `sources` grows meanwhile."""
    seen = set()
    while sources:
        for start in sources[0]:
            if start.identity not in seen:
                seen.add(start.identity)
                yield start
        sources.popleft()


def _repairs(board: Board, start: _Start, attempt: Attempt) -> Iterator[_Start]:
    """What to try after an attempt. The board is at the start whenever another one is asked for."""
    stuck = [mover for mover in attempt.stuck if mover.chosen]
    if not stuck:
        yield replace(start, order=tuple(sorted(start.order, key=lambda mover: mover.chosen)))
        return
    ids = {mover.id for mover in stuck}
    yield replace(start, order=(*stuck, *(mover for mover in start.order if mover.id not in ids)))
    if len(stuck) > 1:
        yield from (replace(start, order=_first(mover, start.order)) for mover in stuck)
    if not start.packed:
        # Fuller nodes first leaves larger gaps on the others.
        yield replace(start, packed=True)
    for mover in stuck:
        for step in _in_the_way(board, attempt, mover):
            yield replace(start, forbidden=start.forbidden | {(step.mover.id, step.node or "")})


def _first(mover: Mover, order: Sequence[Mover]) -> tuple[Mover, ...]:
    return (mover, *(other for other in order if other is not mover))


def _in_the_way(board: Board, attempt: Attempt, mover: Mover) -> list[Step]:
    """Steps without which a mover would have a node at the end of an attempt, and which could have gone elsewhere."""
    for step in attempt.steps:
        board.put(step.mover, Stage.AFTER, step.node)
    found = []
    for step in attempt.steps:
        if step.rivals > 1 and step.mover.chosen:
            board.put(step.mover, Stage.AFTER)
            if board.options(mover, Profile.NO_SCORING):
                found.append(step)
            board.put(step.mover, Stage.AFTER, step.node)
    board.reset([step.mover for step in attempt.steps])
    return found

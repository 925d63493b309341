# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drive drains, starts and moves through random interleavings.

A fixed number in the tests, by this command as many as wanted. CONTRIBUTING.md has the command. A history is one way of
the model from its first moment to its rest, of about a hundred steps; each look and each thing that happens is one.
Those of a round follow from a seed, which is told with what was found, and lead there again; what was mended is a
history of `histories` from then on.
"""

from __future__ import annotations

import argparse
import random
import time
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from simulation.driven import Driven
from simulation.histories import HISTORIES, replay
from simulation.invocations import (
    TwoInvocations,
    TwoInvocationsAsPlanned,
    TwoInvocationsOfTwoBatches,
    TwoInvocationsOfTwoNodes,
)
from simulation.machine import (
    OneNode,
    OneNodeAsPlanned,
    OneOfTwo,
    OneOfTwoAsPlanned,
    TwoBatches,
    TwoBatchesAsPlanned,
    TwoNodes,
    TwoNodesAsPlanned,
)
from simulation.moving import Moved
from simulation.restoring import Restored
from simulation.returning import Returns, ReturnsTwice

BY_MODEL: tuple[type[Driven], ...] = (
    OneNode,
    TwoNodes,
    OneOfTwo,
    TwoBatches,
    TwoInvocations,
    TwoInvocationsOfTwoNodes,
    TwoInvocationsOfTwoBatches,
    Returns,
    ReturnsTwice,
    Restored,
    Moved,
)
# A history of theirs takes some ten times as long.
AS_PLANNED: tuple[type[Driven], ...] = (
    OneNodeAsPlanned,
    TwoNodesAsPlanned,
    OneOfTwoAsPlanned,
    TwoBatchesAsPlanned,
    TwoInvocationsAsPlanned,
)
MACHINES = (*BY_MODEL, *AS_PLANNED)
# Of a round by each machine.
_EXAMPLES = 100


def drive(machine: type[Driven], examples: int, *, by: int | None = None, shrink: bool = True) -> int:
    """The number of steps taken. by: a seed; None for the same each time. shrink: look for the shortest failure."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    before = machine.steps
    # What a seed is given to bears it from then on.
    begun: Any = machine if by is None else seed(by)(partial(machine))
    run_state_machine_as_test(
        begun,
        settings=settings(
            max_examples=examples,
            stateful_step_count=10,
            derandomize=by is None,
            database=None,
            deadline=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return machine.steps - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Random interleavings of drains, starts, moves and a model of the cluster."
    )
    names = [machine.__name__ for machine in MACHINES]
    parser.add_argument("--histories", type=int, default=100_000, help="how many at least (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument("--machine", choices=names, action="append", help="only this one; may be given more than once")
    parser.add_argument(
        "--seed", type=int, help="of the first round; each further one has the next (default: by chance)"
    )
    parser.add_argument("--replay", choices=sorted(HISTORIES), help="go through this history alone")
    given = parser.parse_args()
    if given.replay:
        replay(given.replay)
        return
    machines = [machine for machine in MACHINES if machine.__name__ in (given.machine or names)]
    number = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    begun, done = time.monotonic(), 0
    try:
        while done < given.histories and time.monotonic() - begun < given.seconds:
            for machine in machines:
                _search(machine, min(_EXAMPLES, given.histories), number)
            done, number = sum(machine.histories for machine in machines), number + 1
            print(f"{done} histories after {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        _tell()


def _search(machine: type[Driven], examples: int, number: int) -> None:
    try:
        drive(machine, examples, by=number)
    except BaseException:
        print(f"again by --machine {machine.__name__} --seed {number} --histories {examples}", flush=True)
        raise


def _tell() -> None:
    """What was gone through, by machine and by kind."""
    for machine in MACHINES:
        print(f"\n{machine.__name__}: {machine.histories} histories, {machine.steps} steps")
        for what, times in sorted(machine.happened.items()):
            print(f"{times:>12} {what}")


if __name__ == "__main__":
    main()

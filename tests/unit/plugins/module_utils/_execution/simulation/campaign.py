# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drive drains and starts through random interleavings: a fixed number in the tests, by this command as many as wanted.

CONTRIBUTING.md has the command. A history is one way of the model from its first moment to its rest, of about a hundred
steps; each look and each thing that happens is one.
"""

from __future__ import annotations

import argparse
import time

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from unit.plugins.module_utils._execution.simulation.driven import Driven
from unit.plugins.module_utils._execution.simulation.invocations import TwoInvocations
from unit.plugins.module_utils._execution.simulation.machine import OneNode, TwoNodes
from unit.plugins.module_utils._execution.simulation.returning import Returns

MACHINES: tuple[type[Driven], ...] = (OneNode, TwoNodes, TwoInvocations, Returns)
_EXAMPLES = 500


def drive(machine: type[Driven], examples: int, *, fixed: bool, shrink: bool = True) -> int:
    """The number of steps taken. fixed: the same ones each time. shrink: look for the shortest way to a failure."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    before = machine.steps
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=10,
            derandomize=fixed,
            database=None,
            deadline=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return machine.steps - before


def main() -> None:
    parser = argparse.ArgumentParser(description="Random interleavings of drains and a model of the cluster.")
    parser.add_argument("--histories", type=int, default=100_000, help="how many at least (default: %(default)s)")
    wanted = parser.parse_args().histories
    begun, done = time.monotonic(), 0
    try:
        while done < wanted:
            for machine in MACHINES:
                drive(machine, min(_EXAMPLES, wanted), fixed=False)
            done = sum(machine.histories for machine in MACHINES)
            print(f"{done} histories after {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        _tell()


def _tell() -> None:
    """What was gone through, by machine and by kind."""
    for machine in MACHINES:
        print(f"\n{machine.__name__}: {machine.histories} histories, {machine.steps} steps")
        for what, times in sorted(machine.happened.items()):
            print(f"{times:>12} {what}")


if __name__ == "__main__":
    main()

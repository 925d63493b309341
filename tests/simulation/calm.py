# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of everything when nobody disturbs any more."""

from __future__ import annotations

from simulation import controllers
from simulation.process import Process
from simulation.world import OURS, World

_ROUNDS, _QUIET = 150, 13


def come_to_rest(world: World, processes: list[Process]) -> dict[str, bool]:
    """Whether each node is empty at the end. What is left on one has to be named, and the end to come in good time."""
    world.calm, world.tight = True, False
    holders = [process for process in processes if process.invocation == world.holder]
    world.cordons = {node: OURS for process in holders for node in process.batch}
    for process in processes:
        process.calm_down()
    quiet, before = 0, ""
    for _round in range(_ROUNDS):
        for _step in range(40):
            if not controllers.take(world, 0):
                break
        world.now += 3.0
        for process in processes:
            process.tick()
            process.judge.moment()
        state = "\n".join(map(_state, processes))
        quiet, before = quiet + 1 if state == before else 0, state
        if quiet > _QUIET:
            break
    else:
        raise AssertionError(f"this does not come to an end: {before}")
    # One that is done, or has run out of time, or has lost its node, looks no more.
    for process in (process for process in holders if process.is_running or process.drain.is_lost):
        process.judge.end(process.drain)
    return {process.node: world.is_empty(process.node, process.drain.first) for process in holders}


def _state(process: Process) -> str:
    drain = process.drain
    entries = ", ".join(f"{entry.action}: {entry.outcome}" for entry in drain.record.entries.values())
    blocked = ", ".join(f"{entry.object.title}: {entry.reasons}" for entry in drain.plan.blocked)
    return f"{drain.here.titles()} is there; {entries}; blocked {blocked}; then {controllers.possible(process.world)}"

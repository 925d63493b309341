# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for one VMI, in order: the first that has something to do decides."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.simulator.changes import NOTHING, Decision
from testbed.simulator.guest import end, start
from testbed.simulator.launchers import end_pods, kill_target
from testbed.simulator.migrating import migrate
from testbed.simulator.situation import Situation

RULES = (start, kill_target, migrate, end)


def decide(situation: Situation) -> Decision:
    """The next change to a VMI or one of its pods."""
    wakes = []
    for decision in _decisions(situation):
        if decision and decision.change:
            return decision
        wakes += [decision.wake] if decision and decision.wake else []
    return Decision(wake=min(wakes)) if wakes else NOTHING


def _decisions(situation: Situation) -> Iterator[Decision | None]:
    if situation.vmi is not None:
        for rule in RULES:
            yield rule(situation, situation.vmi)
    yield end_pods(situation)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for one VMI, in order: the first that has something to do decides."""

from __future__ import annotations

from testbed.simulator.changes import NOTHING, Decision
from testbed.simulator.guest import end, start
from testbed.simulator.launchers import end_pods, kill_target
from testbed.simulator.migrating import migrate
from testbed.simulator.situation import Situation

RULES = (start, kill_target, migrate, end)


def decide(situation: Situation) -> Decision:
    """The next change to a VMI or one of its pods."""
    wake = None
    if situation.vmi is not None:
        for rule in RULES:
            decision = rule(situation, situation.vmi)
            if decision and decision.change:
                return decision
            wake = wake or (decision.wake if decision else None)
    decision = end_pods(situation)
    return decision or (Decision(wake=wake) if wake else NOTHING)

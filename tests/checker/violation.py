# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be wrong with a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """TWICE: it stands in the plan more than once. UNKNOWN: nothing has that name. CIRCLE: it waits for itself.

    UNFINISHED: a node is not emptied, maintained and given back in this order. TOTALS: they are not what the actions
    say.

    At its moment, ABSENT: who is to leave is not there. BUSY: something else is being done to it. REFUSED: KubeVirt or
    the API server do not take it. NO_PLACE: the scheduler does not put the pod there. BUDGET: no eviction is ever
    allowed. OCCUPIED: a node is maintained with something on it. IN_SERVICE: a node is maintained without a cordon.
    OUT_OF_TURN: a node is taken while one of another batch is out of service. NOT_STUCK: what is blocked could leave.
    """

    TWICE = "twice"
    UNKNOWN = "unknown"
    CIRCLE = "circle"
    UNFINISHED = "unfinished"
    TOTALS = "totals"
    ABSENT = "absent"
    BUSY = "busy"
    REFUSED = "refused"
    NO_PLACE = "no place"
    BUDGET = "budget"
    OCCUPIED = "occupied"
    IN_SERVICE = "in service"
    OUT_OF_TURN = "out of turn"
    NOT_STUCK = "not stuck"


@dataclass(frozen=True, slots=True)
class PlanFlaw:
    """subject: id of an action, else the title of an object, or a part of the plan. problem: a clause."""

    fault: Fault
    subject: str
    problem: str

    @property
    def sentence(self) -> str:
        return f"{self.subject}: {self.problem.rstrip('.')}."


# Told of a violation when it is met.
TellFlaw = Callable[[Fault, str, str], None]

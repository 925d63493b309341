# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module in rounds: how an action plugin gets to tell of a long task's progress while it runs.

The action calls the module again and again with the option `_round`. The module works until there is news or
`seconds` have passed, and returns its state instead of a result, to go on from in the next round, with lines for the
terminal. Called without the option, the module runs to its end in one go.

Beside the result travel `_round`, the state, if the task goes on, and `_progress`, the lines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure

# Between two tries of a server that does not answer, in seconds.
_PAUSE = 1.0


def argument() -> dict[str, Any]:
    """The action's option, no part of the interface. Its documentation stands in doc_fragments/_rounds.py."""
    return {"_round": {"type": "dict"}}


@dataclass(frozen=True)
class Round:
    """Times are in seconds. timeout, elapsed: of the whole task. seconds: how long the round may last.

    state: what the round before returned, None in the first one.
    """

    timeout: float
    elapsed: float = 0.0
    seconds: float = math.inf
    state: Mapping[str, Any] | None = None
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Round:
        timeout, given = params["wait_timeout"], params["_round"]
        if not given:
            return cls(timeout)
        return cls(timeout, float(given["elapsed"]), float(given["seconds"]), given.get("state"))

    @property
    def heard(self) -> bool:
        """Whether somebody listens for news."""
        return self.seconds != math.inf

    @property
    def left(self) -> float:
        """Until the task's deadline."""
        return max(0.0, self.timeout - self.elapsed - (time.monotonic() - self.begun))

    @property
    def span(self) -> float:
        """How long to go on in this round."""
        return min(self.seconds, self.left)


def going_on(state: Mapping[str, Any], lines: list[str]) -> dict[str, Any]:
    """The result of a round that is not the last."""
    return {"changed": False, "_round": state, **progress(lines)}


def enduring(this_round: Round, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the work returns; or, if the server is away for a moment in a later round, that the next one tries again.

    What is on its way in the cluster goes on without us. Raises Failure.
    """
    try:
        return work()
    except Failure as error:
        if this_round.state and error.passing and this_round.left:
            return _postponed(this_round.state, error)
        raise


def _postponed(state: Mapping[str, Any], error: Failure) -> dict[str, Any]:
    """The result of a round that could not reach the server. It is told once, in `away`."""
    time.sleep(_PAUSE)
    return going_on({**state, "away": True}, [] if state["away"] else [f"{error} Trying again."])


def progress(lines: list[str]) -> dict[str, Any]:
    return {"_progress": lines} if lines else {}

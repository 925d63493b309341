# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs whose API server stands still, from a certain request of theirs on."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.campaign import disturbed
from faults.disturbances.parts import stand_still
from faults.proxy import Moment
from faults.scene import Scene
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

# A run of three nodes, one after the other.
SEED, NODES, VMS = 7, 4, 8
# Seconds; longer than what is passed over in silence. A Lease runs out in 60, which `make search` tries.
AWAY = float(os.environ.get("VIRTOPS_AWAY", "20"))
_IN_LEASES = r"/apis/coordination\.k8s\.io/v1/namespaces/medik8s-leases/leases"
_MIGRATIONS = r"/apis/kubevirt\.io/v1/namespaces/[^/]+/virtualmachineinstancemigrations"
_NODE, _RUN = r"/api/v1/nodes/[^/]+", rf"{_IN_LEASES}/virtops-run-[^/]+"


@dataclass(frozen=True)
class Phase:
    """Begins with a request. nth: which one of its kind. says: what stands in its body.

    begun: of how many nodes, at least, the maintenance itself has begun by then.
    """

    command: str
    path: str
    nth: int = 1
    says: bytes = b""
    begun: int = 0

    def when(self, made: Scene, **what: Any) -> Moment:
        """Let something happen then; `what` as a moment of the proxy has it."""
        return made.proxy.at(
            self.command,
            self.path,
            after=self.nth - 1,
            provided=lambda body: self.says in body and _begun(made) >= self.begun,
            **what,
        )


# Each node has some of them, so that there is time between two.
PHASES = {
    "asks for its rights": Phase("POST", r"/apis/authorization\.k8s\.io/v1/selfsubjectaccessreviews"),
    "is held": Phase("POST", _IN_LEASES),
    "reads the cluster": Phase("GET", r"/api/v1/pods"),
    "keeps its plan": Phase("POST", r"/api/v1/namespaces/medik8s-leases/configmaps"),
    "cordons a node": Phase("PATCH", _NODE),
    "moves a VM": Phase("POST", _MIGRATIONS),
    "does the user's own tasks": Phase("PUT", _RUN, begun=1),  # its Lease is renewed meanwhile
    "releases a node": Phase("DELETE", rf"{_IN_LEASES}/node-[^/]+"),
    "gives a node back": Phase("PATCH", _NODE, nth=2, says=b'"unschedulable": null'),
    "waits for a node to be fit": Phase("GET", _NODE, begun=3),
    "is released": Phase("DELETE", _RUN),
}


def test_a_server_that_is_away_in_each_phase_is_waited_for(testbed: RunningTestbed, tmp_path: Path) -> None:
    met: list[str] = []
    renewed = tmp_path / "renewed"

    def away(made: Scene, phase: str) -> None:
        met.append(phase)
        stand_still(made, partial(time.sleep, AWAY))
        if phase == "does the user's own tasks":
            renewed.touch()

    def prepare(made: Scene) -> None:
        made.standstills = 2 * AWAY * len(PHASES)
        # As long as it lasts, whenever the Lease is renewed.
        made.tasks = [{"ansible.builtin.wait_for": {"path": str(renewed)}, "delegate_to": "localhost"}]
        for name, phase in PHASES.items():
            phase.when(made, act=partial(away, made, name))

    outcome = disturbed(testbed, tmp_path, SEED, NODES, VMS, schedule=[], prepare=prepare)
    assert (outcome.wrong, outcome.attempts) == ([], [0]), (outcome, met, tmp_path)
    assert sorted(met) == sorted(PHASES)


# What the run is given to wait for it; reading has a time of its own. To give a node back it is no less than 120 s.
STAYING_AWAY = {
    "reads the cluster": {"drain_wait_timeout": 30},
    "moves a VM": {"drain_wait_timeout": 30},
    "gives a node back": {"uncordon_wait_timeout": 120},
}


@pytest.mark.parametrize("phase", STAYING_AWAY)
def test_a_server_that_stays_away_is_told_of_once_and_the_same_command_goes_on(
    testbed: RunningTestbed, tmp_path: Path, phase: str
) -> None:
    log = tmp_path / "attempt-0.log"

    def prepare(made: Scene) -> None:
        made.variables = STAYING_AWAY[phase]
        # As long as the task waits, and then the one that releases the run.
        made.standstills = 300
        away = partial(stand_still, made, _until(log, "PLAY RECAP"))
        if phase == "gives a node back":
            # The last that the server does; whoever looks whether it was done finds nobody.
            given = PHASES[phase].when(made, lost=True)
            made.proxy.at("GET", _NODE, provided=lambda _body: given.met > 0, act=away)
        else:
            PHASES[phase].when(made, act=away)

    outcome = disturbed(testbed, tmp_path, SEED, NODES, VMS, schedule=[], prepare=prepare)
    assert (outcome.wrong, outcome.attempts) == ([], [2, 0]), (outcome, tmp_path)
    # What could not be done, and that the run could not be released, where it is held already.
    assert outcome.messages
    for told in outcome.messages:
        assert re.search(r"since \d\d:\d\d:\d\d", told), told


def _begun(made: Scene) -> int:
    """Of how many nodes the maintenance itself has begun, as its journal tells."""
    return len({look["node"] for look in made.looks()})


def _until(log: Path, words: str) -> Callable[[], object]:
    return lambda: wait_for(f"{words} in {log}", lambda: words in log.read_text(errors="replace"), 400)

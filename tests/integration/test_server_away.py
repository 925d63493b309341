# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs whose API server stands still, from a certain request of theirs on."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from faults.campaign import disturbed
from faults.disturbances.parts import stand_still
from faults.scene import Scene
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

# A run of three nodes, one after the other.
SEED, NODES, VMS = 7, 4, 8
# Seconds; longer than what is passed over in silence. A Lease runs out in 60, which VIRTOPS_AWAY=60 tries.
AWAY = float(os.environ.get("VIRTOPS_AWAY", "20"))
_IN_LEASES = r"/apis/coordination\.k8s\.io/v1/namespaces/medik8s-leases/leases"
_MIGRATIONS = r"/apis/kubevirt\.io/v1/namespaces/[^/]+/virtualmachineinstancemigrations"
# The first request of each phase.
PHASES = {
    "asks for its rights": ("POST", r"/apis/authorization\.k8s\.io/v1/selfsubjectaccessreviews"),
    "is held": ("POST", _IN_LEASES),
    "reads the cluster": ("GET", r"/api/v1/pods"),
    "keeps its plan": ("POST", r"/api/v1/namespaces/medik8s-leases/configmaps"),
    "cordons a node": ("PATCH", r"/api/v1/nodes/[^/]+"),
    "moves a VM": ("POST", _MIGRATIONS),
    "releases a node": ("DELETE", rf"{_IN_LEASES}/node-[^/]+"),
    "is released": ("DELETE", rf"{_IN_LEASES}/virtops-run-[^/]+"),
}


def test_a_server_that_is_away_in_each_phase_is_waited_for(testbed: RunningTestbed, tmp_path: Path) -> None:
    met: list[str] = []

    def away(made: Scene, phase: str) -> None:
        met.append(phase)
        stand_still(made, partial(time.sleep, AWAY))

    def prepare(made: Scene) -> None:
        made.standstills = 2 * AWAY * len(PHASES)
        for phase, (command, path) in PHASES.items():
            made.proxy.at(command, path, act=partial(away, made, phase))

    outcome = disturbed(testbed, tmp_path, SEED, NODES, VMS, schedule=[], prepare=prepare)
    assert (outcome.wrong, outcome.attempts) == ([], [0]), (outcome, met, tmp_path)
    assert sorted(met) == sorted(PHASES)


# How long it is waited for is the reading's own, or what the run was given.
@pytest.mark.parametrize("phase", ["reads the cluster", "moves a VM"])
def test_a_server_that_stays_away_is_told_of_once_and_the_same_command_goes_on(
    testbed: RunningTestbed, tmp_path: Path, phase: str
) -> None:
    log = tmp_path / "attempt-0.log"

    def prepare(made: Scene) -> None:
        made.variables = {"drain_wait_timeout": 30}
        command, path = PHASES[phase]
        made.proxy.at(command, path, act=partial(stand_still, made, _until(log, "PLAY RECAP")))

    outcome = disturbed(testbed, tmp_path, SEED, NODES, VMS, schedule=[], prepare=prepare)
    assert (outcome.wrong, outcome.attempts) == ([], [2, 0]), (outcome, tmp_path)
    # What the drain could not do, and that the run could not be released, where it is held already.
    assert outcome.messages
    for told in outcome.messages:
        assert re.search(r"since \d\d:\d\d:\d\d", told), told


def _until(log: Path, words: str) -> Callable[[], object]:
    return lambda: wait_for(f"{words} in {log}", lambda: words in log.read_text(errors="replace"), 400)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs that are disturbed by what broke one once; `python -m faults` disturbs them by chance, and for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.campaign import Schedule, disturbed
from testbed.handle import RunningTestbed

NODES, VMS = 4, 8
# By what they are about. Seconds after the begin of the run, of which the first few plan it.
CASES: dict[str, Schedule] = {
    "a node is given back by somebody, and the run is lost": [
        (12, "leases_deleted"),
        (14, "uncordoned"),
        (17, "token_expired"),
        (24, "killed"),
        (30, "memory_deleted"),
    ],
    "two people start one command, and a third one another run": [(10, "same_run_again"), (25, "another_run")],
    "the API server is silent for longer than virt-controller outlives": [(12, "server_away")],
    "kubectl drain beside it, and VMs that come": [(8, "vm_created"), (12, "drained_by_somebody"), (18, "pod_evicted")],
}


# By the seed of their dice; the first has three nodes, one after the other. None of it is worth a second start.
DICE = (7, 1, 2)


@pytest.mark.parametrize("seed", [pytest.param(DICE[0], marks=pytest.mark.gate), *DICE[1:]])
def test_a_lost_answer_or_a_busy_server_is_news_and_not_the_end(
    testbed: RunningTestbed, tmp_path: Path, seed: int
) -> None:
    outcome = disturbed(testbed, tmp_path, seed, NODES, VMS, schedule=[(0, "answers_lost")])
    assert (outcome.wrong, outcome.attempts) == ([], [0]), (outcome, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_what_broke_once_holds(testbed: RunningTestbed, tmp_path: Path, name: str) -> None:
    outcome = disturbed(testbed, tmp_path, 1, NODES, VMS, schedule=CASES[name])
    assert not outcome.wrong, (outcome, tmp_path)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller's benchmark is told, and what it holds a run against."""

from __future__ import annotations

import os

import pytest
from benchmarks import controller
from benchmarks.controller import Course, Played, bound, parsed


@pytest.mark.parametrize(
    ("words", "sizes"),
    [("", (3, 33, 3)), ("--batch 2", (2, 22, 2)), ("--nodes 60 --vms 600 --batch 3", (60, 600, 3))],
)
def test_without_more_it_is_a_single_batch(words: str, sizes: tuple[int, int, int]) -> None:
    options = parsed(words.split())
    assert (options.nodes, options.vms, options.batch) == sizes


@pytest.mark.parametrize("words", ["--batch 0", "--nodes 2", "--nodes 60 --vms 59"])
def test_what_cannot_be_measured_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(words.split())
    assert "there has to be a batch of nodes, and a VM on each node at least" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sources", "turns"),
    [("a", 1), ("aab", 1), ("aaa", 2), ("aabbcc", 2), ("aaaabbbbcccc", 3), ("aaaaaaab", 4)],
)
def test_a_batch_is_held_against_the_caps_of_cluster_and_node(sources: str, turns: int) -> None:
    assert bound([Course(source, 0.0, 1.0, 7.0) for source in sources]) == turns * 6.0


def test_memory_is_that_of_all_processes_in_a_span_of_time() -> None:
    assert controller._memory(os.getpid()) > 1
    played = Played([], [], [{"action": controller.DRAIN}, {"action": "other"}], [(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)])
    assert (played.most_memory(), played.most_memory(2.5, 4.0)) == (9.0, 7.0)
    assert played.most_memory(3.5) == 0.0
    assert played.drains == [{"action": controller.DRAIN}]

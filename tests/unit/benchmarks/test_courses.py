# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When migrations began and ended by their events, and what they are held against."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.courses import Course, Courses, bound


@pytest.mark.parametrize(
    ("sources", "turns"),
    [("a", 1), ("aab", 1), ("aaa", 2), ("aabbcc", 2), ("aaaabbbbcccc", 3), ("aaaaaaab", 4)],
)
def test_a_batch_is_held_against_the_caps_of_cluster_and_node(sources: str, turns: int) -> None:
    assert bound([Course(source, 0.0, 1.0, 7.0) for source in sources]) == turns * 6.0


def migration(name: str, phase: str) -> dict[str, Any]:
    status = {"status": {"phase": phase, "migrationState": {"sourceNode": f"node-of-{name}"}}} if phase else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **status}


def test_moments_are_those_of_the_first_word_of_each_phase() -> None:
    courses = Courses()
    told = ["a ", "b ", "a Pending", "a Scheduling", "a Scheduling", "b Pending", "a Running", "a Succeeded"]
    for number, word in enumerate([*told, "a Succeeded", "b Scheduled", "b Succeeded"]):
        courses.note(migration(*word.split(" ")), number / 4)
    assert courses.found == [Course("node-of-a", 0.0, 0.75, 1.75), Course("node-of-b", 0.25, 2.25, 2.5)]
    assert [course.seconds for course in courses.found] == [1.0, 0.25]


@pytest.mark.parametrize(("phase", "what"), [("", "not begun"), ("Running", "Running"), ("Failed", "Failed")])
def test_what_has_not_gone_well_is_no_figure(phase: str, what: str) -> None:
    courses = Courses()
    courses.note(migration("a", phase), 1.0)
    with pytest.raises(RuntimeError, match=f"Migration a is {what}:"):
        assert courses.found

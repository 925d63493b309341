# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused is told on one screen, however much is wrong with it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest


def printed(problems: list[str]) -> str:
    """As Ansible prints the result of a module that fails."""
    error = InvalidRequest("plan the maintenance", problems, "Correct the names, or take a new snapshot.")
    assert error.problems == problems
    return json.dumps({"changed": False, "error": error.to_json(), "msg": str(error)})


@pytest.mark.parametrize(
    "words", ["is not there", "goes to a node that cannot take it, as " + "its memory is low, " * 10]
)
def test_of_sixty_mistakes_the_first_are_told(words: str) -> None:
    problems = [f"worker-{number}.example.org {words}" for number in range(60)]
    told = printed(problems)
    assert len(told) < 3000
    assert told.count(problems[0]) == told.count(problems[3]) == 2
    assert ", 60 mistakes: " in told
    shown = sum(problem in told for problem in problems)
    left_out = 60 - shown
    assert (told.count(f"; and {left_out} more."), told.count(f'"problems_left_out": {left_out},')) == (1, 1)
    assert set(json.loads(told)["error"]["problems"]) <= set(problems)


def test_a_few_are_told_as_they_are() -> None:
    error = InvalidRequest("plan", ["a is not there", "b is no name"], "Correct them.")
    assert str(error) == "Cannot plan, 2 mistakes: a is not there; b is no name. Correct them."
    told = {"attempted": "plan", "problems": ["a is not there", "b is no name"], "remedy": "Correct them."}
    assert error.to_json() == told


def test_a_long_one_keeps_its_ends() -> None:
    problem = f"label {'a' * 6000} is no label"
    told = printed([problem, "b is no name"])
    assert len(told) < 3000
    assert told.count(" [5018 characters are left out] ") == told.count("is no label") == 2
    assert "; and 1 more." in told

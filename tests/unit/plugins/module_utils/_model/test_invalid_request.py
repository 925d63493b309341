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
    assert told.count(f"and {60 - shown} more") == 2


def test_a_few_are_told_as_they_are() -> None:
    error = InvalidRequest("plan", ["a is not there", "b is no name"], "Correct them.")
    assert str(error) == "Cannot plan, 2 mistakes: a is not there; b is no name. Correct them."
    assert error.to_json()["problems"] == ["a is not there", "b is no name"]
    assert InvalidRequest("plan", ["x" * 2000], "Correct it.").to_json()["problems"] == ["x" * 2000]

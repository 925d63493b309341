# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of a planned run may begin."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import Turn, turn_of

BATCHES = [["n1"], ["n2", "n3"], ["n4"]]


@pytest.mark.parametrize(
    ("batch", "done", "most", "turn"),
    [
        (["n1"], [], 0, Turn(1, (), True, "")),
        (
            ["n2", "n3"],
            [],
            0,
            Turn(2, ("n1",), False, "n2, n3: not begun, because n1 of an earlier batch is not done."),
        ),
        (["n2", "n3"], ["n1"], 0, Turn(2, (), True, "")),
        (
            ["n4"],
            ["n1", "n3"],
            0,
            Turn(3, ("n2",), False, "n4: not begun, because n2 of an earlier batch is not done."),
        ),
        (["n4"], ["n1", "n3"], 1, Turn(3, ("n2",), True, "")),
        (
            ["n4"],
            ["n3"],
            1,
            Turn(3, ("n1", "n2"), False, "n4: not begun, because n1, n2 of an earlier batch are not done."),
        ),
    ],
)
def test_a_batch_waits_for_all_before_it_but_for_those_that_may_fail(
    batch: list[str], done: list[str], most: int, turn: Turn
) -> None:
    assert turn_of(batch, BATCHES, done, most) == turn


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (["n3", "n2"], ""),
        (["n2"], ": n3 of the same batch has failed before, could not be reached, or is left out"),
        (["n5"], ""),
        ([], ""),
    ],
)
def test_hosts_that_are_no_batch_have_no_turn(batch: list[str], why: str) -> None:
    turn = turn_of(batch, BATCHES, ["n1", "n2", "n3", "n4"])
    assert (turn.number, turn.is_open) == (None, False)
    assert turn.message.endswith(f"these hosts are no batch of the plan, so nothing was begun{why}.")


def test_without_a_run_there_is_always_a_turn() -> None:
    assert turn_of(["n1", "n2"], [], []) == Turn(None, (), True, "")

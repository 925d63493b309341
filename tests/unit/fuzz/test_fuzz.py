# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoilt clusters and documents get an answer or one clear error, and what judges that can tell."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import SnapshotError, from_plain

from fuzz import campaign, documents, doors, grounds

SPOILT = 400


def test_spoilt_input_gets_an_answer_or_one_clear_error() -> None:
    outcomes = [campaign.attempt(f"unit/{number}") for number in range(SPOILT)]
    assert [(outcome.seed, outcome.door, outcome.wrong) for outcome in outcomes if outcome.wrong] == []
    # All doors, and on both sides of what can be read.
    assert {outcome.door for outcome in outcomes} == {*doors.DOORS, *documents.DOORS}
    answers = sum(outcome.said == "an answer" for outcome in outcomes)
    assert SPOILT / 4 < answers < SPOILT * 3 / 4


def test_what_is_spoilt_was_right() -> None:
    for seed in range(100):
        from_plain(grounds.cluster(random.Random(seed)))


def unexpected() -> None:
    raise KeyError("uid")


def endless() -> None:
    while True:
        pass


def steering() -> None:
    error = SnapshotError("Node")
    error.args = ("Node \x1b[2J",)
    raise error


def wordy() -> None:
    error = SnapshotError("Node")
    error.args = ("x" * 100_000,)
    raise error


@pytest.mark.parametrize(
    ("ask", "wrong"),
    [
        (unexpected, "KeyError: 'uid'"),
        (endless, "no answer after 1 s"),
        (steering, "an error with '\\x1b' in it"),
        (wordy, "an error of 100000 characters"),
    ],
)
def test_what_is_wrong_is_noticed(ask: Callable[[], Any], wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PATIENCE", 1)
    assert campaign.judged("seed", "door", (), ask).wrong == wrong

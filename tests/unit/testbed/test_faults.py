# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of `testbed inject`."""

from __future__ import annotations

import argparse

import pytest

from testbed import faults
from testbed.simulator.fault import Fault


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    faults.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_durations(text: str, seconds: float) -> None:
    assert parsed("node-lost", "--for", text).span == seconds


@pytest.mark.parametrize(
    "words",
    [
        ("earthquake",),
        ("node-lost", "--for", "soon"),
        ("never-converges", "--selector", "app"),
        ("never-converges", "--selector", "=db"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert words[-1] in capsys.readouterr().err


def test_selectors() -> None:
    assert parsed("never-converges", "--selector", "app=db,tier=").selector == {"app": "db", "tier": ""}


def test_ids_count_up_and_fill_gaps() -> None:
    known = {name: Fault(name, "node-lost", node="a") for name in ("node-lost-1", "node-lost-3")}
    assert faults.unused("node-lost", known) == "node-lost-2"
    assert faults.unused("node-reboot", known) == "node-reboot-1"


def test_a_description_tells_what_differs_from_the_default() -> None:
    fault = Fault("x-1", "migration-failure", vmi="ns/vm", probability=0.5, since=100, until=160)
    assert faults.describe(fault, 130).split() == ["x-1", "vmi=ns/vm", "probability=0.5", "for", "another", "30", "s"]

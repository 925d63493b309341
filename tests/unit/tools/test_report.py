# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last sixty lines of a red run say which tests failed, and why; those of a green one, which were unsteady."""

from __future__ import annotations

import pytest

from tools import machine, report
from tools.report import Outcome, Words


def shown(capsys: pytest.CaptureFixture[str], *outcomes: Outcome) -> list[str]:
    report.show(outcomes, 60, ["machine: of today"])
    return capsys.readouterr().out.splitlines()


def broken(title: str, *worth: str, lines: int = 500) -> Outcome:
    said = tuple(f"chatter {number}" for number in range(lines))
    return Outcome(title, programs=(Words(f"$ {title}", True, 1, said, worth),))


def test_failed_tests_are_named_with_their_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, broken("unit", "failed: test_a", "failed:     assert 1 == 2"), Outcome("lint"))
    assert "failed: test_a" in lines
    assert "failed:     assert 1 == 2" in lines
    assert not any(line.startswith("chatter") for line in lines)
    assert lines[-1] == "1 passed, 1 failed"


def test_a_program_that_names_nothing_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, broken("types"))
    assert "chatter 499" in lines
    assert "chatter 400" not in lines


def test_what_ansible_test_has_found_long_before_its_last_lines_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, broken("sanity", "ERROR: draining.py:89:4: dangerous-default-value"))
    assert "ERROR: draining.py:89:4: dangerous-default-value" in lines
    assert not any(line.startswith("chatter") for line in lines)


def test_sixty_lines_hold_all_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    tests = [f"failed: test_{number} {'x' * 9000}" for number in range(50)]
    parts = [Outcome(f"fine {number}") for number in range(11)]
    lines = shown(capsys, *parts, *(broken(f"part {number}", *tests) for number in range(3)))[-60:]
    assert all(len(line) <= report.WIDTH for line in lines)
    for number in range(3):
        at = lines.index(f"===== part {number} failed =====")
        assert lines[at + 2].startswith("failed: test_0")
    assert "machine: of today" in lines


def test_what_was_unsteady_is_said_of_a_green_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = Words("$ integration", worth=("unsteady: test_b", "unsteady:     first failed with", "logs: here"))
    lines = shown(capsys, Outcome("integration", programs=(words,)))
    assert lines.index("logs: here") < lines.index("unsteady: test_b")
    assert lines[-1] == "1 passed, 0 failed"


def test_the_machine_is_looked_at() -> None:
    with machine.watched() as seen:
        pass
    assert len(seen.loads) >= 1
    assert seen.told()[0].startswith("machine: ")

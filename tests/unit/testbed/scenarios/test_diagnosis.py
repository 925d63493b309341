# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about pods and VMIs that do not run. The integration tests show that controllers' words get there."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenarios.diagnosis import LINES, pod_problem, shortened, vmi_problem

Conditions = dict[str, tuple[str, str]]


def described(phase: str, conditions: Conditions, message: str = "") -> dict[str, Any]:
    """An object with its conditions as type: (status, message)."""
    listed = [{"type": kind, "status": status, "message": text} for kind, (status, text) in conditions.items()]
    status = {"phase": phase, "conditions": listed, "message": message}
    return {"metadata": {"namespace": "ns", "name": "x"}, "status": status}


@pytest.mark.parametrize(
    ("phase", "conditions", "message", "expected"),
    [
        ("Running", {"Ready": ("True", "")}, "", ""),
        ("Succeeded", {"Ready": ("False", "PodCompleted")}, "", ""),
        ("Pending", {"PodScheduled": ("False", "0/1 nodes")}, "", "pod ns/x is Pending: 0/1 nodes"),
        ("Running", {"PodScheduled": ("True", ""), "Ready": ("False", "sick")}, "", "pod ns/x is Running: sick"),
        ("Failed", {}, "node lost", "pod ns/x is Failed: node lost"),
        ("Pending", {}, "", "pod ns/x is Pending"),
    ],
)
def test_pods(phase: str, conditions: Conditions, message: str, expected: str) -> None:
    assert pod_problem(described(phase, conditions, message)) == expected


@pytest.mark.parametrize(
    ("phase", "conditions", "expected"),
    [
        ("Running", {"Ready": ("True", "")}, ""),
        ("Running", {"Ready": ("False", "paused")}, "VMI ns/x is Running but not Ready: paused"),
        ("Pending", {"Synchronized": ("False", "no claim y")}, "VMI ns/x is Pending: no claim y"),
        ("", {}, "VMI ns/x is Pending"),
    ],
)
def test_vmis(phase: str, conditions: Conditions, expected: str) -> None:
    assert vmi_problem(described(phase, conditions)) == expected


def test_a_long_list_ends_with_how_much_longer_it_is() -> None:
    lines = [str(number) for number in range(LINES + 3)]
    assert shortened(lines) == [*lines[:LINES], "… and 3 more"]
    assert shortened(lines[:LINES]) == lines[:LINES]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from testbed.simulator.facts import Vmi
from testbed.simulator.fault import (
    GUEST_SHUTDOWN,
    MIGRATION_FAILURE,
    NODE_LOST,
    NODE_REBOOT,
    Fault,
    Faults,
    from_json,
)
from unit.testbed.simulator.builders import NOW, vmi

VM = Vmi(vmi())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"kind": "earthquake"}, "There is no fault 'earthquake'"),
        ({"kind": NODE_LOST}, "needs a node"),
        ({"kind": NODE_LOST, "node": "a", "vmi": "ns/vm"}, "leave --vmi"),
        ({"kind": GUEST_SHUTDOWN, "vmi": "vm"}, "NAMESPACE/NAME"),
        ({"kind": MIGRATION_FAILURE, "phase": "Flying"}, "no phase 'Flying'"),
        ({"kind": MIGRATION_FAILURE, "probability": 1.5}, "between 0 and 1"),
        ({"kind": NODE_REBOOT, "node": "a", "duration": 0}, "above 0"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(words: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Fault(id="x", **words)


def test_json_and_back() -> None:
    fault = Fault("x-1", MIGRATION_FAILURE, "ns/vm", {"app": "db"}, "a", "Handoff", 0.25, NOW, NOW + 60)
    assert from_json("x-1", fault.to_json()) == fault
    plain = Fault("x-2", NODE_REBOOT, node="a", since=NOW, duration=5)
    assert from_json("x-2", plain.to_json()) == plain


@pytest.mark.parametrize("text", ["{}", "[]", '{"kind": "node-lost", "node": "a", "colour": "red"}', "not json"])
def test_text_that_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"holds no fault|Expecting"):
        from_json("x", text)


def test_a_fault_is_in_force_for_its_time() -> None:
    fault = Fault("x", GUEST_SHUTDOWN, since=NOW, until=NOW + 10)
    assert [fault.active(NOW + t, 1) for t in (-1, 0, 9, 10)] == [False, True, True, False]


def test_an_outage_that_is_noticed_late_has_its_full_length() -> None:
    late = Fault("x", NODE_LOST, node="a", since=NOW, until=NOW + 2).noticed(NOW + 3)
    assert (late.since, late.until) == (NOW + 3, NOW + 5)
    reboot = Fault("x", NODE_REBOOT, node="a", since=NOW, duration=60)
    assert reboot.noticed(NOW + 3).ends(60) == NOW + 4
    assert reboot.noticed(NOW + 3600) == reboot, "a simulator that has just been started does not repeat the past"
    assert reboot.noticed(NOW - 1) == reboot
    shutdown = Fault("x", GUEST_SHUTDOWN, since=NOW, until=NOW + 2)
    assert shutdown.noticed(NOW + 1) == shutdown


def test_a_reboot_lasts_simulated_seconds() -> None:
    fault = Fault("x", NODE_REBOOT, node="a", since=NOW, duration=60)
    assert [fault.active(NOW + t, 10) for t in (0, 5, 6)] == [True, True, False]


@pytest.mark.parametrize(
    ("words", "hit"),
    [
        ({}, True),
        ({"vmi": "ns/vm"}, True),
        ({"vmi": "ns/other"}, False),
        ({"selector": {"app": "db"}}, True),
        ({"selector": {"app": "web"}}, False),
        ({"node": "a"}, True),
        ({"node": "b"}, False),
        ({"vmi": "ns/vm", "node": "b"}, False),
    ],
)
def test_whom_it_concerns(words: dict[str, Any], hit: bool) -> None:
    assert Fault("x", GUEST_SHUTDOWN, **words).concerns(VM) is hit


def test_a_migration_concerns_its_target_node_too() -> None:
    moving = Vmi(vmi(migrationState={"sourceNode": "a", "targetNode": "b"}))
    assert Fault("x", MIGRATION_FAILURE, node="b").concerns(moving)


def test_chances_are_as_given_and_repeat() -> None:
    fault = Fault("x", MIGRATION_FAILURE, probability=0.3)
    faults, other = Faults((fault,), seed=1), Faults((fault,), seed=2)

    def hits(faults: Faults) -> list[bool]:
        return [faults.for_migration("Running", VM, NOW, f"ns/vm#{n}") is not None for n in range(2000)]

    assert hits(faults) == hits(faults) != hits(other)
    assert 500 < sum(hits(faults)) < 700

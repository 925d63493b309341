# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of each node of a batch what is known by any of its drains, and of each VM and pod what that knows who knows most."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import (
    evicting,
    interrupting,
    migrating,
    record,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.departures import WELL, Departed, departed

from unit.plugins.module_utils._report.drained import CUT, MOVE, POD, remnant

WAITS = {**MOVE, "outcome": "waiting"}
MOVED = {**MOVE, "node": "n3", "seconds": 6}
GONE = {**POD, "outcome": "gone"}
ENDED = {**CUT, "outcome": "ended"}
ALL: dict[str, Any] = {"moves": [MOVED], "evicted": [POD], "interrupted": [CUT]}
TOLD = ["migrated", "evicted", "stopped"]


def of_n1(own: dict[str, Any], *mates: dict[str, Any]) -> Departed:
    return departed({"n1": own, **{f"m{number}": mate for number, mate in enumerate(mates)}})["n1"]


def outcomes(found: Departed) -> list[str]:
    return [entry.outcome for entry in found.departures]


@pytest.mark.parametrize(
    ("own", "mates", "told"),
    [
        ({"failed": True}, [ALL], TOLD),
        ({"failed": True}, [ALL, ALL], TOLD),
        ({"moves": [WAITS], "evicted": [GONE], "interrupted": [{**CUT, "outcome": "ending"}]}, [ALL], TOLD),
        (ALL, [{"moves": [WAITS], "evicted": [GONE], "interrupted": [ENDED]}], TOLD),
        ({}, [{"moves": [WAITS]}, {"moves": [MOVED]}], TOLD[:1]),
        ({}, [{"moves": [WAITS]}], []),
        ({"moves": [WAITS]}, [{"moves": [WAITS]}], ["waiting"]),
        ({}, [{"moves": [{**MOVE, "outcome": "migrating"}]}], ["migrating"]),
        ({"moves": [WAITS]}, [{"moves": [{**MOVE, "outcome": "already_there"}]}], ["already_there"]),
        ({"moves": [{**MOVE, "outcome": "failed"}]}, [{"moves": [{**MOVE, "outcome": "ended"}]}], ["ended"]),
        ({"moves": [{**MOVE, "outcome": "failed"}]}, [{"moves": [{**MOVE, "outcome": "migrating"}]}], ["failed"]),
        ({"moves": [WAITS], "evicted": [{**POD, "name": "web"}]}, [], ["waiting", "evicted"]),
        ({}, [{"interrupted": [CUT]}, {"moves": [MOVED]}], ["migrated", "stopped"]),
    ],
    ids=(
        "failed early|of two|left off|itself|one that waits|others wait|all wait|on its way|had left|left after all|"
        "equals|of one name|in order"
    ).split("|"),
)
def test_who_has_done_it_is_believed(own: dict[str, Any], mates: list[dict[str, Any]], told: list[str]) -> None:
    """Who has waited for it may have carried it out, and be the only one who knows."""
    assert outcomes(of_n1(own, *mates)) == told


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ("restarted", ["restarted"]),
        ("ending", ["ending"]),
        ("failed", ["failed"]),
        ("ended", ["failed", "ended"]),
        ("already_gone", ["failed", "already_gone"]),
    ],
)
def test_who_could_not_be_migrated_and_is_interrupted_leaves_once(cut: str, told: list[str]) -> None:
    """But who had ended may have come again under its name, and that one could not be migrated."""
    own = {"moves": [{**MOVE, "name": "db", "outcome": "failed"}], "interrupted": [{**CUT, "outcome": cut}]}
    assert outcomes(of_n1(own)) == told
    assert outcomes(of_n1({"failed": True}, own)) == told


def test_who_was_restarted_and_is_here_again_has_not_left() -> None:
    left = [remnant("vm", "db", "failed, no network")]
    own = {
        "moves": [{**MOVE, "name": "db", "outcome": "failed"}],
        "interrupted": [{**CUT, "outcome": "restarted"}],
        "left": left,
    }
    assert outcomes(of_n1(own)) == ["failed", "restarted"]


def test_each_is_told_of_the_node_that_it_left() -> None:
    elsewhere = {**ALL, "moves": [MOVED, {**MOVED, "for_node": "m0", "name": "theirs"}, {**MOVED, "for_node": "z"}]}
    found = departed({"n1": {}, "m0": elsewhere})
    assert outcomes(found["n1"]) == TOLD
    assert [entry.name for entry in found["m0"].departures] == ["theirs"]


def test_what_is_left_is_told_once() -> None:
    """With the departure that did not go well, or by itself."""
    left = [
        remnant("vm", "web", "waiting, it is held"),
        remnant("pod", "web", "it has come"),
        remnant("node", "n1", "x"),
    ]
    found = of_n1({"moves": [WAITS], "left": left})
    assert [entry.left for entry in found.departures] == ["waiting, it is held"]
    assert [entry.kind for entry in found.left] == ["pod", "node"]


def test_what_others_have_moved_since_is_not_left() -> None:
    waits = remnant("vm", "theirs", "waiting", "m0")
    left = [remnant("vm", "web", "waiting"), remnant("pod", "api", "waiting"), waits]
    theirs = {**MOVED, "name": "theirs", "for_node": "m0"}
    own = {"moves": [WAITS, {**theirs, "outcome": "waiting"}], "left": left}
    assert of_n1(own, {"moves": [MOVED, theirs], "evicted": [POD]}).left == []
    found = departed({"n1": own, "m0": {"moves": [MOVED]}})
    assert {node: [entry.name for entry in each.left] for node, each in found.items()} == {
        "n1": ["api"],
        "m0": ["theirs"],
    }


def test_what_is_left_of_a_batch_is_told_once_where_it_is() -> None:
    """A batch that is refused as a whole is so by the drain of each of its nodes; the node's own word counts."""
    left = [remnant("vm", "db", "it is old", "n1"), remnant("vm", "pet", "it is old", "m0")]
    own = [remnant("vm", "pet", "it cannot be migrated", "m0")]
    found = departed({"n1": {"left": left}, "m0": {"left": own}, "m1": {"left": left}})
    assert {node: [(entry.name, entry.why) for entry in each.left] for node, each in found.items()} == {
        "n1": [("db", "it is old")],
        "m0": [("pet", "it cannot be migrated")],
        "m1": [],
    }


def test_what_has_come_again_is_left() -> None:
    """Also if another drain is believed of how it left."""
    own = {"moves": [{**MOVE, "outcome": "already_there"}], "left": [remnant("vm", "web", "it has come since")]}
    assert [entry.why for entry in of_n1(own, ALL).left] == ["it has come since"]


def test_what_went_well_is_what_drains_call_so() -> None:
    known = {
        migrating.MIGRATED,
        migrating.ALREADY_THERE,
        migrating.WOULD_MIGRATE,
        record.ENDED,
        evicting.EVICTED,
        evicting.GONE,
        evicting.WOULD_EVICT,
        interrupting.RESTARTED,
        interrupting.STOPPED,
        interrupting.ALREADY_GONE,
        *interrupting.WOULD.values(),
    }
    assert known == WELL


class _Read(dict[str, Any]):
    """An entry that counts how often it is asked for something."""

    asked = 0

    def __getitem__(self, key: str) -> Any:
        self.asked += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("nodes", [1, 200])
def test_each_vm_is_looked_at_once_however_many_nodes_a_batch_has(nodes: int) -> None:
    entries = [_Read(MOVED, for_node=f"n{node}") for node in range(nodes)]
    departed({f"n{node}": {"moves": [entry]} for node, entry in enumerate(entries)})
    once = _Read(MOVED)
    departed({"n1": {"moves": [once]}})
    assert {entry.asked for entry in entries} == {once.asked}

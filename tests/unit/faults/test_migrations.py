# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migrations of a run have touched a VM in vain."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from faults.migrations import Migrations
from faults.scene import RUN_LABEL
from testbed.api import Object

RUN, NODES = "faults-1", ("a", "b")
# Node b was looked at, the last time, in this second after the begin.
LOOKED = 30
AWAY_FROM = "ns/vm was migrated away from"


def at(second: int) -> datetime:
    return datetime(2026, 11, 3, 12, 0, second, tzinfo=UTC)


def migration(second: int, source: str, phase: str = "Succeeded", run: str = RUN, vm: str = "vm") -> Object:
    """Created in that second. What has not begun to move has no state."""
    metadata: Object = {"namespace": "ns", "name": f"m{second}", "uid": f"m{second}"}
    metadata |= {"labels": {RUN_LABEL: run}, "creationTimestamp": at(second).strftime("%Y-%m-%dT%H:%M:%SZ")}
    status: Object = {"phase": phase} | ({"migrationState": {"sourceNode": source}} if phase == "Succeeded" else {})
    return {"metadata": metadata, "spec": {"vmiName": vm}, "status": status}


def vmi(uid: str) -> Object:
    return {"metadata": {"namespace": "ns", "name": "vm", "uid": uid}}


def told(*looks: tuple[str, Object], excused: tuple[str, ...] = ()) -> list[str]:
    """looks: at the uid that the VM has, and one migration."""
    seen = Migrations(RUN)
    for uid, item in looks:
        seen.see([vmi(uid)], [item])
    return list(seen.in_vain(NODES, {"b": at(LOOKED).timestamp()}, excused))


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ([migration(1, "a")], []),
        ([migration(1, "a"), migration(5, "b")], []),
        ([migration(1, "a"), migration(5, "a")], [f"{AWAY_FROM} a once more"]),
        ([migration(1, "a"), migration(5, "a"), migration(9, "a")], [f"{AWAY_FROM} a once more"] * 2),
        ([migration(1, "a", "Failed"), migration(5, "a")], []),
        ([migration(1, "a"), migration(5, "a", "Failed")], []),
        ([migration(1, "a"), migration(5, "a", "Pending")], []),
        ([migration(1, "a"), migration(5, "a", vm="other")], []),
        ([migration(LOOKED, "b")], []),
        ([migration(LOOKED + 1, "b")], [f"{AWAY_FROM} b, which had been maintained"]),
        ([migration(LOOKED + 1, "a")], []),
        ([migration(1, "c")], [f"{AWAY_FROM} c, which is no node of the run"]),
    ],
)
def test_a_vm_leaves_a_node_of_the_run_once_and_before_its_maintenance(items: list[Object], wrong: list[str]) -> None:
    assert told(*(("1", item) for item in items)) == wrong


def test_where_kubevirt_has_not_noted_the_source_it_is_as_asked_for() -> None:
    """It notes it after the end, from a VMI that may have its next migration by then."""
    item = migration(1, "a")
    item["status"]["migrationState"] = {}
    item["metadata"]["labels"]["virtops.kubevirt/source-node"] = "a"
    assert told(("1", item), ("1", migration(5, "a"))) == [f"{AWAY_FROM} a once more"]


def test_a_vm_that_was_made_anew_is_another_one() -> None:
    assert told(("1", migration(1, "a")), ("2", migration(5, "a"))) == []


@pytest.mark.parametrize("run", ["", "faults-2"])
def test_what_others_migrate_is_not_judged_nor_what_they_have_migrated(run: str) -> None:
    assert told(("1", migration(1, "c", run=run))) == []
    twice = ("1", migration(1, "a")), ("1", migration(9, "a"))
    assert told(*twice, ("1", migration(5, "b", run=run))) == []
    assert told(*twice, ("1", migration(5, "b", "Failed", run=run))) == [f"{AWAY_FROM} a once more"]
    assert told(*twice, ("1", migration(5, "b", run=run, vm="other"))) == [f"{AWAY_FROM} a once more"]


@pytest.mark.parametrize(
    ("excused", "wrong"), [("ns/vm", []), ("a", []), ("ns/other", ["once more"]), ("b", ["once more"])]
)
def test_who_was_touched_by_others_is_excused(excused: str, wrong: list[str]) -> None:
    found = told(("1", migration(1, "a")), ("1", migration(9, "a")), excused=(excused,))
    assert [sentence.removeprefix(f"{AWAY_FROM} a ") for sentence in found] == wrong


def test_it_is_counted_by_its_last_phase() -> None:
    """A cancelled one is gone without an end of its own."""
    seen = Migrations(RUN)
    for phase in ("Running", "Succeeded"):
        seen.see([], [migration(1, "a", phase), migration(2, "a", "Failed"), migration(3, "a", run="faults-2")])
    seen.see([], [migration(4, "a", "Running")])
    assert seen.ended() == {"succeeded": 1, "failed": 2}

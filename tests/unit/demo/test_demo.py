# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demonstration's picture, reckoning and judgements: each tells what it is given, and a bad end is seen."""

from __future__ import annotations

from typing import Any

from demo import outcomes
from demo.outcomes import Cluster
from demo.picture import draw
from demo.running import reckon
from testbed.api import Object

ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str, *, cordoned: bool = False, boot_id: str = "1", run: str = "", **labels: str) -> Object:
    return {
        "metadata": {"name": name, "labels": {ZONE: zone, outcomes.LABEL: run, **labels}},
        "spec": {"unschedulable": cordoned},
        "status": {"nodeInfo": {"bootID": boot_id}},
    }


def pod(app: str, on: str, phase: str = "Running", **labels: str) -> Object:
    spec = {"nodeName": on} if on else {}
    return {"metadata": {"name": app, "labels": {"app": app, **labels}}, "spec": spec, "status": {"phase": phase}}


def test_the_picture_shows_who_is_where() -> None:
    machine = {"kubevirt.io": "virt-launcher"}
    pods = [
        pod("cache", "n1"),
        pod("blackbox", "n1", **machine),
        pod("blackbox", "n2", "Succeeded", **machine),
        pod("db", "", **machine),
    ]
    assert draw([node("n2", "b", cordoned=True, performance="high"), node("n1", "a")], pods) == [
        "         zone a                    zone b",
        "┌───────── n1 ─────────┐  ┌──── n2* cordoned ────┐",
        "│ ▣ blackbox           │  │                      │",
        "│ ○ cache              │  └──────────────────────┘",
        "└──────────────────────┘",
        "waiting for a node: ▣ db",
    ]


def entry(task: str, began: float, ended: float, moving: int = 0) -> dict[str, Any]:
    return {"host": "n1", "task": task, "began": began, "ended": ended, "moving": moving}


def test_what_is_neither_reboot_nor_moving_is_ansibles() -> None:
    entries = [
        entry("virtops.kubevirt.drain : Cordon the node and move everything away", 100, 110, moving=6),
        entry("Reboot", 110, 115),
        entry("Wait until it has another boot ID", 115, 122),
        entry("virtops.kubevirt.uncordon : Let virtual machines come to the node again", 122, 125),
    ]
    (found,) = reckon(entries, ["n0", "n1"])
    assert (found.node, found.total, found.hook, found.moving, found.overhead) == ("n1", 25, 12, 6, 7)


def at_home() -> list[Object]:
    pods = [pod("mssql2016", name) for name in outcomes.HIGH]
    return pods + [pod(app, name) for app in ("cache", "blackbox") for name in outcomes.REGULAR]


def test_everybody_at_home_is_seen() -> None:
    assert all(outcome.holds for outcome in outcomes.at_home(Cluster([], at_home())))


def test_somebody_astray_is_seen() -> None:
    astray = [*at_home()[:-1], pod("blackbox", "kni-worker2")]
    assert [outcome.holds for outcome in outcomes.at_home(Cluster([], astray))] == [True, True, False]


def test_a_node_that_is_left_out_is_seen() -> None:
    before = Cluster([node("n1", "a"), node("n2", "b")], [])
    done = node("n1", "a", boot_id="2", run="run")
    for left_out in (node("n2", "b", run="run"), node("n2", "b", boot_id="2")):
        assert not all(outcome.holds for outcome in outcomes.maintained(Cluster([done, left_out], []), before, "run"))
    both = Cluster([done, node("n2", "b", boot_id="2", run="run")], [])
    assert all(outcome.holds for outcome in outcomes.maintained(both, before, "run"))


def drain(host: str, moves: list[str], interrupted: list[str]) -> dict[str, Any]:
    return {"host": host, "ways": {"moves": moves, "interrupted": interrupted}}


def test_a_move_to_another_zone_is_seen() -> None:
    stops = [drain(name, [], ["db"]) for name in outcomes.HIGH]
    moves = [drain(f"kni-worker{old}", [f"kni-worker{new}"], []) for old, new in (("", 2), (3, 4), (5, 6))]
    assert all(outcome.holds for outcome in outcomes.drained([*stops, *moves]))
    assert not all(
        outcome.holds for outcome in outcomes.drained([*stops, *moves[:2], drain("kni-worker5", ["kni-worker4"], [])])
    )


def test_the_end_says_how_much_of_the_plan_came_true() -> None:
    def drained(host: str, *deviations: tuple[str, str, bool]) -> dict[str, Any]:
        return {"host": host, "ways": {"as_planned": 3, "deviations": list(deviations)}}

    good = [{"host": "n0", "ways": None}, drained("n1"), drained("n2")]
    assert list(outcomes.came_true(good)) == [("6 of 6 virtual machines and pods left their nodes as planned", True)]
    told, holds = next(outcomes.came_true([*good, drained("n3", ("vm", "db: goes to n2, migrated to n4", False))]))
    assert (told.startswith("9 of 10 virtual"), "goes to n2, migrated to n4" in told, holds) == (True, True, False)
    for line, assumed, judged in (
        ("api: is evicted, was not there", False, True),
        ("api: comes back on n2, came back on n3", True, True),
        ("api: comes back on n2, came back on n3", False, False),
    ):
        told, holds = next(outcomes.came_true([*good, drained("n3", ("pod", line, assumed))]))
        assert (told.startswith("9 of 10 virtual"), line in told, holds) == (True, True, judged)
    assert not next(outcomes.came_true([])).holds

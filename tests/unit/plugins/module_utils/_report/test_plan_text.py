# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan for people: every line of it, and that it stays short and harmless whatever the cluster is like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    Plan,
    Totals,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report import plan_text as text
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import told as told_at_once
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import blocked_text, plan_text

from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

FIRST = action(ActionKind.MIGRATE, vm("a"), "n1", "n2")
SECOND = action(ActionKind.MIGRATE, vm("b"), "n1", "n3", FIRST)
THIRD = action(ActionKind.MIGRATE, vm("c"), "n1", "n3", FIRST, SECOND)
GONE = action(ActionKind.EVICT, pod("p"), "n4", batch=2)


def told(*actions: Action, **changes: Any) -> list[str]:
    return plan_text(replace(plan(*actions), **changes))


def test_a_run_of_two_batches() -> None:
    moved = action(ActionKind.EVICT, pod("q"), "n4", "n1", batch=2)
    stopped = replace(action(ActionKind.STOP, vm("db"), "n4", batch=2), why="It cannot be migrated.")
    anew = replace(
        action(ActionKind.RESTART, vm("old"), "n4", "n2", batch=2), why="Its replica set replaces it at once."
    )
    totals = Totals(migrations=3, batch_seconds=(24, 0), lower_bound=3, proof="optimal")
    found = plan(FIRST, SECOND, THIRD, replace(GONE, why="Nothing replaces it."), moved, stopped, anew)
    assert plan_text(replace(found, totals=totals)) == [
        "Run patch: 2 of 2 nodes to maintain, 1 at a time.",
        "1. n1",
        "     migrations take about 24 s if the guests are idle",
        "     VM  shop/a -> n2",
        "     VM  shop/b -> n3, after VM shop/a",
        "     VM  shop/c -> n3, after VM shop/b",
        "2. n4",
        "     pod shop/p goes. Nothing replaces it.",
        "     pod shop/q -> n1",
        "     VM  shop/db is off until the node is back",
        "         It cannot be migrated.",
        "     VM  shop/old starts anew on n2",
        "         Its replica set replaces it at once.",
        "In all: 3 migrations, 2 evictions, 1 restart, 1 stop. No plan of these batches has fewer migrations.",
    ]


def test_nodes_that_are_done_are_only_named() -> None:
    found = replace(plan(FIRST, GONE), totals=Totals(migrations=1, batch_seconds=(6, 0), lower_bound=1))
    assert plan_text(found, done=["n1"]) == [
        "Run patch: 1 of 2 nodes to maintain, 1 at a time.",
        "Done already: n1",
        "2. n4",
        "     pod shop/p goes. Of 3 nodes that fit it is the best.",
        "In all: 1 eviction.",
    ]
    assert plan_text(found, done=["n1", "n4"]) == ["Run patch: 0 of 2 nodes to maintain.", "Done already: n1, n4"]


def test_a_bound_that_is_not_reached() -> None:
    totals = Totals(migrations=3, lower_bound=2)
    assert told(FIRST, SECOND, THIRD, totals=totals)[-1] == (
        "In all: 3 migrations. No plan of these batches has fewer than 2 migrations."
    )


def test_caps_that_let_none_start() -> None:
    lines = told(FIRST, totals=Totals(migrations=1, seconds=None, batch_seconds=(None,)))
    assert lines[2] == "     migrations never start, as KubeVirt's caps allow none"


@pytest.mark.parametrize(
    ("seconds", "words"), [(119, "119 s"), (600, "10 min"), (7260, "2 h 1 min"), (86400, "24 h 0 min")]
)
def test_long_times_are_told_in_larger_units(seconds: int, words: str) -> None:
    lines = told(FIRST, totals=Totals(migrations=1, batch_seconds=(seconds,)))
    assert lines[2] == f"     migrations take about {words} if the guests are idle"


@pytest.mark.parametrize(
    ("passing", "state", "verb"),
    [(True, "has to wait a while", "has to be waited for"), (False, "cannot be emptied now", "cannot leave")],
)
def test_what_cannot_leave_is_named_with_its_reasons(passing: bool, state: str, verb: str) -> None:
    kept = Blocked(vm("busy"), "n1", ("it is backed up.", "let it end"), passing)
    lines = told(FIRST, blocked=(kept,))
    assert lines[1] == f"1. n1: {state}"
    assert f"     VM  shop/busy {verb}: it is backed up; let it end" in lines
    assert blocked_text(kept) == f"VM shop/busy on n1 {verb}: it is backed up; let it end."


def test_many_waits_are_counted() -> None:
    others = [action(ActionKind.MIGRATE, vm(f"w{number}"), "n1", "n2") for number in range(5)]
    last = action(ActionKind.MIGRATE, vm("z"), "n1", "n2", *others)
    lines = told(*others, last)
    assert "     VM  shop/z -> n2, after VM shop/w0, VM shop/w1, VM shop/w2 and 2 more" in lines


def test_assumptions_are_told_once_and_the_commonest_first() -> None:
    common = [
        replace(
            action(ActionKind.MIGRATE, vm(f"w{number}"), "n1", "n2"), assumed=("guests are idle", f"device {number}")
        )
        for number in range(7)
    ]
    lines = told(*common)
    assert "     assumed of 7: guests are idle" in lines
    assert "     assumed of VM shop/w0: device 0" in lines
    assert "     and 3 more assumptions, which are in the plan's file" in lines


def test_in_a_large_batch_all_that_somebody_waits_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others wait for already is not worked out then, which would grow with the square of the batch."""
    monkeypatch.setattr(text, "_MOST_WAITING", 2)
    assert "     VM  shop/c -> n3, after VM shop/a, VM shop/b" in told(FIRST, SECOND, THIRD)


def twice(name: str) -> list[Action]:
    """A VM that starts anew on a node of a later batch."""
    first = action(ActionKind.RESTART, vm(name), "n1", "n3")
    return [first, action(ActionKind.RESTART, vm(name), "n3", "n1", first, batch=3)]


def test_who_is_interrupted_more_than_once_is_named() -> None:
    once = action(ActionKind.STOP, vm("pets"), "n1")
    moved = action(ActionKind.MIGRATE, vm("pets"), "n3", "n1", batch=3)
    found = replace(plan(*twice("db"), once, moved), batches=(("n1",), ("n2",), ("n3",)))
    line = "1 VM is interrupted more than once: shop/db (n1 in batch 1, n3 in batch 3)"
    assert plan_text(found)[-1] == line
    assert told_at_once(found)[2:5] == [
        "1 VM is off until its node is back: shop/pets",
        "1 VM is shut down, and starts anew elsewhere: shop/db",
        line,
    ]
    assert not any("more than once" in told for told in (*plan_text(found, ["n1"]), *told_at_once(found, ["n1"])))


def test_many_who_are_interrupted_more_than_once_are_counted() -> None:
    every = [each for number in range(5) for each in twice(f"db-{number}")]
    found = replace(plan(*every), batches=(("n1",), ("n2",), ("n3",)))
    assert plan_text(found)[-1] == (
        "5 VMs are interrupted more than once: shop/db-0 (n1 in batch 1, n3 in batch 3), "
        "shop/db-1 (n1 in batch 1, n3 in batch 3), shop/db-2 (n1 in batch 1, n3 in batch 3) and 2 more"
    )
    assert "5 VMs are shut down, and start anew elsewhere: shop/db-0, shop/db-1, shop/db-2 and 2 more" in told_at_once(
        found
    )


def test_nothing_of_the_cluster_steers_the_terminal() -> None:
    hostile: Plan = plan(
        replace(FIRST, assumed=("\x1b[2J",)), blocked=(Blocked(vm("e\r\nvil"), "n1", ("\x1b]0;owned\x07",)),)
    )
    lines = [*plan_text(hostile), blocked_text(hostile.blocked[0])]
    assert all(line.isprintable() for line in lines)
    assert any("]0;owned" in line for line in lines)


def test_a_plan_outside_a_run_that_has_nothing_to_move() -> None:
    assert plan_text(replace(plan(), run="")) == ["1 of 1 nodes to maintain, 1 at a time.", "1. n1"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry, FailedAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.telling import (
    News,
    brought_back,
    counts,
    news,
    of_others,
    standing,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan, Totals
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import of_batch

from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

MOVE, EVICT = action(ActionKind.MIGRATE, vm("web"), "n1", "n2"), action(ActionKind.EVICT, pod("cache"), "n1")
BEGUN = Record({MOVE.id: Migrating.begin(MOVE), EVICT.id: Evicting.begin(EVICT)})
WEB, CACHE = Migrating.begin(MOVE), Evicting.begin(EVICT)
PHASES = (("Scheduling", "2026-11-22T02:00:00Z"), ("Succeeded", "2026-11-22T02:00:06Z"))


@pytest.mark.parametrize(
    ("entry", "line", "detail"),
    [
        (replace(WEB, outcome="migrating", phases=PHASES[:1]), "shop/web: n1 -> n2: Scheduling", True),
        (
            replace(WEB, outcome="migrating", phases=PHASES[:1], scheduler_message="0/6"),
            "shop/web: n1 -> n2: Scheduling, no node fits: 0/6",
            False,
        ),
        (
            replace(WEB, outcome="migrated", node="n2", phases=PHASES),
            "shop/web: n1 -> n2: migrated to n2 in 6 s",
            False,
        ),
        (replace(WEB, refusal="n2 is cordoned"), "shop/web: n1 -> n2: waiting, n2 is cordoned", False),
    ],
    ids=["phase", "stuck", "arrived", "refused"],
)
def test_a_line_tells_what_has_changed(entry: Migrating, line: str, detail: bool) -> None:
    assert list(news(BEGUN, Record({**BEGUN.entries, MOVE.id: entry}))) == [News(line, detail)]


def test_a_failure_comes_before_where_the_next_attempt_stands_and_once() -> None:
    failed = (FailedAttempt("uid", "no network", "n2"),)
    again = replace(WEB, outcome="migrating", failed=failed, attempts=2, has_acted=True)
    after = Record({MOVE.id: again})
    assert list(news(BEGUN, after)) == [
        News("shop/web: n1 -> n2: attempt 1 failed, no network; trying again"),
        News("shop/web: n1 -> n2: Pending, attempt 2", detail=True),
    ]
    running = Record({MOVE.id: replace(again, phases=(("Running", PHASES[0][1]),))})
    assert list(news(after, running)) == [News("shop/web: n1 -> n2: Running, attempt 2", detail=True)]
    given_up = Record({MOVE.id: replace(again, outcome="failed", failed=(*failed, *failed))})
    assert list(news(running, given_up)) == [News("shop/web: n1 -> n2: failed, no network")]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("n1", "somebody has brought it back to n1; it is to leave again"),
        ("n3", "it has come to n3; it is to leave that as well"),
    ],
)
def test_where_it_is_again_is_told_as_it_was_seen(node: str, words: str) -> None:
    assert brought_back(WEB, node) == f"shop/web: {words}"


def test_that_somebody_has_brought_it_back_is_told_once() -> None:
    again = replace(WEB, outcome="migrating", past=("uid",), attempts=2, has_acted=True)
    assert list(news(BEGUN, Record({MOVE.id: again}))) == [
        News("shop/web: somebody has brought it back to n1; it is to leave again"),
        News("shop/web: n1 -> n2: Pending, migrated before, attempt 2", detail=True),
    ]
    running = Record({MOVE.id: replace(again, phases=(("Running", PHASES[0][1]),))})
    assert [told.detail for told in news(Record({MOVE.id: again}), running)] == [True]


def test_what_has_not_changed_is_no_news() -> None:
    assert list(news(BEGUN, BEGUN)) == []
    assert list(news(Record(), BEGUN)) == []


def test_a_failure_is_told_before_the_next_attempt() -> None:
    again = replace(WEB, failed=(FailedAttempt("uid", "no network.", "n2"),))
    after = Record({**BEGUN.entries, MOVE.id: again})
    (line,) = (entry.line for entry in news(BEGUN, after))
    assert line == "shop/web: n1 -> n2: attempt 1 failed, no network; trying again"


def test_pods_are_told_for_pods() -> None:
    held = replace(CACHE, refusal="a budget")
    assert [entry.line for entry in news(BEGUN, Record({EVICT.id: held}))] == ["pod shop/cache: held back, a budget"]


def test_counts_tell_how_far_all_is() -> None:
    assert counts(BEGUN) == "0 of 2 done, 2 waiting"
    assert counts(BEGUN, later=3) == "0 of 5 done, 5 waiting"
    moving = replace(WEB, outcome="migrating", phases=PHASES[:1])
    flying = Record({MOVE.id: moving, EVICT.id: replace(CACHE, outcome="failed")})
    assert counts(flying) == "1 of 2 done, 1 in flight"


def test_what_kubevirt_queues_counts_as_waiting() -> None:
    queued, flying = replace(WEB, outcome="migrating"), replace(WEB, outcome="migrating", phases=PHASES[:1])
    over = replace(WEB, outcome="migrated", phases=PHASES)
    entries = [over, over, flying, queued, WEB]
    assert counts(Record({str(number): entry for number, entry in enumerate(entries)})) == (
        "2 of 5 done, 1 in flight, 2 waiting"
    )


def test_where_a_drain_of_its_own_stands() -> None:
    flying = Record({MOVE.id: replace(WEB, outcome="migrating"), EVICT.id: replace(CACHE, outcome="evicted")})
    found = standing(replace(plan(MOVE, EVICT), run="", totals=Totals()), "n1", flying, None)
    assert (found.run, found.node, found.batch, found.batches, found.nodes, found.done) == ("", "n1", 1, 1, 1, None)
    assert (found.leaving, found.gone, found.flying) == (2, 1, 1)
    assert (found.migrations, found.settled, found.migrated, found.planned) == (1, 0, 0, 1)
    assert (found.span, found.later) == (None, None)


LATER = action(ActionKind.MIGRATE, vm("db"), "n3", "n2", batch=2)


@pytest.mark.parametrize("cut", [lambda given, _node: given, of_batch], ids=["run", "batch"])
def test_where_a_drain_stands_in_its_run(cut: Callable[[Plan, str], Plan]) -> None:
    """A drain has its batch alone."""
    given = replace(plan(MOVE, LATER), totals=Totals(migrations=2, seconds=600, batch_seconds=(400, 200)))
    first = standing(cut(given, "n1"), "n1", Record({MOVE.id: WEB}), 0)
    assert (first.batch, first.batches, first.nodes, first.done) == (1, 2, 2, 0)
    assert (first.planned, first.span, first.later) == (1, 400, 200)
    last = standing(cut(given, "n3"), "n3", Record({LATER.id: Migrating.begin(LATER)}), 1)
    assert (last.batch, last.done, last.planned, last.span, last.later) == (2, 1, 1, 200, 0)
    assert first.run == last.run != ""
    assert standing(replace(given, run="other"), "n1", BEGUN, 0).run != first.run


def test_a_span_that_the_plan_does_not_know_is_none_of_zero() -> None:
    given = replace(plan(MOVE, LATER), totals=Totals(migrations=2, seconds=None, batch_seconds=(400, None)))
    assert (standing(given, "n1", BEGUN, 0).span, standing(given, "n1", BEGUN, 0).later) == (400, None)
    assert standing(given, "n3", BEGUN, 0).span is None


@pytest.mark.parametrize(
    ("outcome", "counts_"),
    [
        ("waiting", (0, 0, 0)),
        ("migrated", (1, 1, 1)),
        ("already_there", (1, 1, 0)),
        ("failed", (0, 1, 0)),
    ],
)
def test_what_counts_as_moved_as_over_and_as_seen(outcome: str, counts_: tuple[int, int, int]) -> None:
    found = standing(plan(MOVE), "n1", Record({MOVE.id: replace(WEB, outcome=outcome)}), 0)
    assert (found.gone, found.settled, found.migrated) == counts_


@pytest.mark.parametrize(("outcome", "gone"), [("waiting", 1), ("ending", 1), ("restarted", 2), ("failed", 1)])
def test_a_vm_that_is_restarted_as_it_could_not_be_migrated_leaves_once(outcome: str, gone: int) -> None:
    restart = action(ActionKind.RESTART, vm("web"), "n1", "n2")
    entries: dict[str, Entry] = {
        MOVE.id: replace(WEB, outcome="failed"),
        restart.id: replace(Interrupting.begin(restart), outcome=outcome),
        EVICT.id: replace(CACHE, outcome="evicted"),
    }
    found = standing(plan(restart, EVICT), "n1", Record(entries), 0)
    assert (found.leaving, found.gone) == (2, gone)


def test_what_leaves_other_nodes_is_told_by_their_own_drains() -> None:
    """One of another node that this one waits for, one that makes room for this one, and one that the plan forgot."""
    other = action(ActionKind.MIGRATE, vm("other"), "n2", "n3")
    helper = replace(action(ActionKind.MIGRATE, vm("helper"), "n3", "n4"), node="n1")
    forgotten = action(ActionKind.MIGRATE, vm("forgotten"), "n1", "n4")
    entries = {each.id: Migrating.begin(each) for each in (MOVE, other, helper, forgotten)}
    assert standing(plan(MOVE, other, helper), "n1", Record(entries), 0).leaving == 3
    assert standing(plan(MOVE, other, helper), "n2", Record(entries), 0).leaving == 1


def test_what_others_tell_of_as_well_is_a_detail() -> None:
    other = action(ActionKind.MIGRATE, vm("other"), "n2", "n3")
    before = {each.id: Migrating.begin(each) for each in (MOVE, other)}
    after = Record({name: replace(entry, outcome="migrated", node="n3") for name, entry in before.items()})
    others = of_others(plan(MOVE, other), "n1", after)
    assert [entry.detail for entry in news(Record(before), after, others)] == [False, True]


def test_nobody_is_said_to_have_brought_back_who_has_come_as_planned() -> None:
    """From the other node of a batch: it leaves this one by an action of the same name."""
    first, then = (action(ActionKind.MIGRATE, vm("web"), source, "n3") for source in ("n2", "n1"))
    left = replace(Migrating.begin(first), outcome="migrated", migration="m", migration_uid="uid-m", node="n1")
    assert Migrating.begin(then).brought_back(left).status() == "waiting, migrated before"

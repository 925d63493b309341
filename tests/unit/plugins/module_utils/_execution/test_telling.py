# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import FailedAttempt, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.telling import News, counts, news, totals
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


def test_totals_tell_of_the_node() -> None:
    flying = Record({MOVE.id: replace(WEB, outcome="migrating"), EVICT.id: replace(CACHE, outcome="evicted")})
    assert totals(replace(plan(MOVE, EVICT), totals=Totals()), "n1", flying) == "1/2 moved, 1 in flight"


@pytest.mark.parametrize("cut", [lambda given, _node: given, of_batch], ids=["run", "batch"])
def test_totals_tell_of_batch_and_run(cut: Callable[[Plan, str], Plan]) -> None:
    """A drain has its batch alone."""
    later = action(ActionKind.MIGRATE, vm("db"), "n3", "n2", batch=2)
    given = replace(plan(MOVE, later), totals=Totals(migrations=2, seconds=600, batch_seconds=(400, 200)))
    assert totals(cut(given, "n1"), "n1", Record({MOVE.id: WEB})) == (
        "batch 1/2, node 1 of 2 · 0/1 moved · migrations for about 10 min left"
    )
    done = Record({MOVE.id: replace(WEB, outcome="migrated")})
    assert totals(cut(given, "n1"), "n1", done).endswith("migrations for about 3 min left")
    last = totals(cut(given, "n3"), "n3", Record({later.id: Migrating.begin(later)}))
    assert last == "batch 2/2, node 2 of 2 · 0/1 moved · migrations for about 3 min left"

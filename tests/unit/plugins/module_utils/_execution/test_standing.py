# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line for all drains of a batch, which says nothing that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import (
    Scoreboard,
    Standing,
)

from unit.plugins.module_utils._execution.standings import moved, standing

WIDTH = 120 - len("02:14:07 ")


class Watched:
    """A board whose every line is kept, with when it came."""

    def __init__(self) -> None:
        self.board = Scoreboard()
        self.lines: list[tuple[float, str]] = []

    def post(self, now: float, *standings: Standing) -> Watched:
        for each in standings:
            # As it is kept between two tasks.
            self.board, line = Scoreboard.decoded(self.board.encoded()).posted(each, now)
            if line:
                self.lines.append((now, line))
        return self

    def leave(self, *standings: Standing) -> Watched:
        for each in standings:
            self.board = self.board.left(each)
        return self

    @property
    def last(self) -> str:
        return self.lines[-1][1]


def begun(*standings: Standing, now: float = 0.0) -> Watched:
    return Watched().post(now, *standings)


def three(*counts: int, **changes: Any) -> Iterable[Standing]:
    names = ("node-7", "node-8", "node-9")
    return (moved(name, count, **changes) for name, count in zip(names, counts, strict=True))


def test_one_node_by_its_name() -> None:
    watched = begun(standing(leaving=9)).post(10, moved("worker-07", 4, leaving=9, flying=2, later=None))
    assert watched.last == "batch 3/20 · worker-07 4/9 moved, 2 in flight · 6/60 nodes done"


def test_three_nodes_have_one_line_every_ten_seconds() -> None:
    watched = begun(*three(0, 0, 0))
    for second in range(1, 31):
        watched.post(second, *three(second // 2, second // 3, second // 4, flying=1, later=None))
    assert [now for now, _line in watched.lines] == [10, 20, 30]
    assert watched.last == ("batch 3/20 · node-7 15/17, node-8 9/17, node-9 7/17 moved, 3 in flight · 6/60 nodes done")
    assert all(len(line) <= WIDTH for _now, line in watched.lines)


def test_what_was_told_is_not_told_again() -> None:
    watched = begun(moved("worker-07", 1, later=None)).post(10, moved("worker-07", 1, later=None))
    watched.post(20, moved("worker-07", 1, later=None)).post(22, moved("worker-07", 2, later=None))
    assert [now for now, _line in watched.lines] == [10, 22]


def test_who_is_done_still_counts_in_its_batch() -> None:
    watched = begun(*three(17, 3, 0)).leave(standing("node-7")).post(10, moved("node-8", 4, later=None))
    assert "node-7 17/17, node-8 4/17, node-9 0/17 moved" in watched.last


def test_the_next_batch_begins_with_nobody() -> None:
    watched = begun(*three(17, 17, 17)).leave(*three(17, 17, 17))
    watched.post(500, standing("worker-10", batch=4)).post(510, moved("worker-10", 1, batch=4))
    assert watched.last.startswith("batch 4/20 · worker-10 1/17 moved · ")


def test_of_earlier_batches_only_their_pace_is_kept() -> None:
    later: dict[str, Any] = {"batches": 100, "later": 0}
    watched = Watched()
    for number in range(1, 101):
        watched.post(1000 * number, *(standing(f"{'n' * 50}-{node}", batch=number, **later) for node in range(3)))
    assert len(watched.board.encoded()) < 20_000
    assert outlook(watched.post(100_100, standing(batch=100, **later))) == "about 15 min left"


def test_other_runs_have_lines_of_their_own() -> None:
    watched = begun(standing("a"), standing("b", run="other")).post(10, moved("a", 1), moved("b", 2, run="other"))
    assert [line.split(" · ")[1] for _now, line in watched.lines] == ["a 1/17 moved", "b 2/17 moved"]


ALONE: dict[str, Any] = {"run": "", "batch": 1, "batches": 1, "done": None, "span": None, "later": None}


def test_drains_of_no_run_share_a_line_as_long_as_they_last() -> None:
    """Those of an earlier task have nothing to do with them."""
    watched = begun(standing("a", **ALONE)).post(10, moved("a", 1, **ALONE)).post(11, standing("b", **ALONE))
    watched.leave(standing("a", **ALONE)).post(20, moved("b", 3, **ALONE))
    watched.leave(standing("b", **ALONE)).post(21, standing("c", **ALONE)).post(31, moved("c", 1, **ALONE))
    assert [line for _now, line in watched.lines] == ["a 1/17 moved", "a 1/17, b 3/17 moved", "c 1/17 moved"]


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["n" * 60], f"{'n' * 60} 4/17 moved"),
        (["n" * 200], "1 node 4/17 moved"),
        (["kni-worker", "kni-worker2"], "kni-worker 4/17, kni-worker2 4/17 moved"),
        (
            [f"kni-worker{number}" for number in range(5)],
            f"{', '.join(f'kni-worker{n}' for n in range(5))} 20/85 moved",
        ),
        ([f"worker-{number}.rack-4.example.net" for number in range(3)], "3 nodes 12/51 moved"),
        ([f"worker-{number:02}" for number in range(50)], "50 nodes 200/850 moved"),
        (["a\x1b[2J\r\nok: b"], "a�[2J ok: b 4/17 moved"),
    ],
    ids=["long", "too-long", "two", "five", "three-long", "many", "hostile"],
)
def test_a_line_is_not_wider_than_a_terminal(names: list[str], what: str) -> None:
    watched = begun(*(moved(name, 4, later=None) for name in names)).post(10, moved(names[0], 4, later=None))
    assert watched.last.split(" · ")[1] == what
    assert len(watched.last) <= WIDTH


def outlook(watched: Watched) -> str:
    return watched.last.rpartition(" · ")[2]


def test_before_a_batch_is_over_only_migrations_are_foretold() -> None:
    """17 batches of 300 s are to come, and all of this one."""
    assert outlook(begun(*three(0, 0, 0)).post(10, *three(0, 0, 0))) == "migrations for about 1.5 h left"
    last: dict[str, Any] = {"later": 0, "batch": 20}
    assert outlook(begun(standing(**last)).post(10, standing(**last))) == "migrations for about 5 min left"


@pytest.mark.parametrize("changes", [{"span": None}, {"later": None}])
def test_where_the_plan_tells_nothing_nothing_is_foretold(changes: dict[str, Any]) -> None:
    assert begun(standing(**changes)).post(10, standing(**changes)).last.endswith("6/60 nodes done")


def test_nothing_is_left_when_all_has_migrated() -> None:
    done: dict[str, Any] = {"later": 0, "batch": 20, "planned": 17}
    assert begun(moved("a", 17, **done)).post(10, moved("a", 17, **done)).last.endswith("nodes done")


def test_the_more_has_migrated_the_more_counts_how_long_that_took() -> None:
    """Planned are 300 s for 50 VMs; they take three times that."""
    given: dict[str, Any] = {"later": 0, "batch": 20, "planned": 50, "migrations": 50, "leaving": 50}
    watched = begun(standing(**given))
    told = []
    for count in (0, 10, 25, 40):
        watched.post(10 + 18 * count, moved("worker-07", count, **given))
        told.append(outlook(watched))
    assert told == [f"migrations for about {left} left" for left in ("5 min", "6 min", "5 min", "3 min")]


def test_nodes_that_have_not_begun_count_by_the_plan() -> None:
    """17 of 51 have settled without having been migrated here."""
    given: dict[str, Any] = {"later": 0, "batch": 20, "settled": 17}
    assert outlook(begun(standing(**given)).post(10, standing(**given))) == "migrations for about 3 min left"


# Batches begin every 1000 s, of which the plan expects 300 s of migrations: 700 s for the rest.
def paced(batches: int) -> Watched:
    watched = Watched()
    for number in range(1, batches + 1):
        watched.post(1000 * (number - 1), standing(batch=number, batches=5, later=300 * (5 - number)))
    return watched


def test_after_the_first_batch_its_pace_counts_with_the_maintenance() -> None:
    """Of five batches the first is over, and four of 1000 s are to come, of which 100 s are over."""
    watched = paced(2).post(1100, standing(batch=2, batches=5, later=900))
    assert outlook(watched) == "about 65 min left"


def test_a_batch_that_takes_longer_than_others_takes_its_migrations_at_least() -> None:
    watched = paced(5).post(6000, standing(batch=5, batches=5, later=0))
    assert outlook(watched) == "about 5 min left"


def test_the_pace_is_the_mean_of_what_was_seen() -> None:
    """The second batch took 2000 s: 1200 s beside migrations on average."""
    watched = (
        paced(2).post(3000, standing(batch=3, batches=3, later=0)).post(3100, standing(batch=3, batches=3, later=0))
    )
    assert outlook(watched) == "about 23 min left"


def test_a_pace_that_nobody_has_seen_is_not_made_up() -> None:
    """Who goes on with a run has not seen its earlier batches."""
    watched = begun(standing(batch=1, batches=5)).post(900, standing(batch=3, batches=5, later=600))
    assert outlook(watched.post(910, standing(batch=3, batches=5, later=600))) == "migrations for about 15 min left"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": {"begun": 1}}', '"text"'])
def test_what_is_no_scoreboard_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any kind
        Scoreboard.decoded(text)

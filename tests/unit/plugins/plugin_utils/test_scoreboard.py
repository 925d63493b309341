# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of several hosts have one line of totals, and none of them is ever held up by another."""

from __future__ import annotations

import fcntl
import multiprocessing
import re
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress, encode_line
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _progress, _scoreboard
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._scoreboard import SharedScoreboard

from unit.plugins.module_utils._execution.standings import moved, standing

NODES = ("n1", "n2", "n3")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def boards(folder: Path, clock: Clock) -> list[SharedScoreboard]:
    """Of three tasks."""
    return [SharedScoreboard(folder, clock) for _node in NODES]


def the_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_three_tasks_have_one_line_of_all_of_them(tmp_path: Path, clock: Clock) -> None:
    lines = []
    for clock.now in (0, 4, 9, 10, 15, 20):
        for board, node in zip(boards(tmp_path, clock), NODES, strict=True):
            lines.append((clock.now, board.post(moved(node, int(clock.now), later=None))))
    assert [entry for entry in lines if entry[1]] == [
        (10, "batch 3/20 · n1 10/17, n2 9/17, n3 9/17 moved · 6/60 nodes done"),
        (20, "batch 3/20 · n1 20/17, n2 15/17, n3 15/17 moved · 6/60 nodes done"),
    ]
    assert the_file(tmp_path).stat().st_mode & 0o777 == 0o600


def test_a_task_that_ends_leaves_the_board(tmp_path: Path, clock: Clock) -> None:
    first, second, _third = boards(tmp_path, clock)
    first.post(standing("a", run=""))
    first.leave(standing("a", run=""))
    second.post(standing("b", run="", later=None))
    clock.now = 10
    assert second.post(moved("b", 1, run="", later=None)).split(" · ")[1] == "b 1/17 moved"


def post_often(folder: str, node: str) -> None:
    board = SharedScoreboard(Path(folder), lambda: 0.0)
    for count in range(40):
        board.post(moved(node, count))


def test_processes_that_post_at_the_same_time_lose_nothing(tmp_path: Path, clock: Clock) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=post_often, args=(str(tmp_path), node)) for node in NODES]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert {process.exitcode for process in processes} == {0}
    clock.now = 10
    line = SharedScoreboard(tmp_path, clock).post(standing("n4", later=None))
    assert "n1 39/17, n2 39/17, n3 39/17, n4 0/17 moved" in line


def test_who_stands_still_with_the_board_holds_nobody_up(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_scoreboard, "_PAUSE", 0.0)
    board, _second, _third = boards(tmp_path, clock)
    board.post(standing("a"))
    with the_file(tmp_path).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        board.post(standing("b"))
        clock.now = 10
        assert board.post(moved("b", 2)).split(" · ")[1] == "b 2/17 moved"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]"])
def test_what_is_half_written_is_begun_anew(tmp_path: Path, clock: Clock, content: bytes) -> None:
    board, _second, _third = boards(tmp_path, clock)
    board.post(standing("a"))
    the_file(tmp_path).write_bytes(content)
    board.post(standing("b"))
    clock.now = 10
    assert board.post(moved("b", 1)).split(" · ")[1] == "b 1/17 moved"


def test_where_no_file_can_be_made_each_task_has_its_own_line(tmp_path: Path, clock: Clock) -> None:
    lines = []
    tasks = boards(tmp_path / "gone", clock)
    for clock.now in (0, 10):
        lines += [board.post(moved(node, 1)) for board, node in zip(tasks, NODES, strict=True)]
    assert [line.split(" · ")[1] for line in lines if line] == [f"{node} 1/17 moved" for node in NODES]


def test_only_a_file_of_its_own_is_written(tmp_path: Path, clock: Clock) -> None:
    board, _second, _third = boards(tmp_path, clock)
    board.post(standing("a"))
    place = the_file(tmp_path)
    place.unlink()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    place.symlink_to(precious)
    board.post(standing("b"))
    assert precious.read_text() == "precious"


def message(node: str, moved_vms: int) -> bytes:
    messages: list[bytes] = []
    Progress(messages.append).stands(moved(node, moved_vms, run="", batches=1, done=None, later=None))
    return messages[0].rstrip(b"\n")


def test_totals_are_shown_with_the_time_of_day_as_long_as_the_drain_lasts(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(_progress.display, "display", lambda line, *, stderr: shown.append(f"{stderr} {line}"))
    board = SharedScoreboard(tmp_path, clock)
    with _progress.Screen(board) as screen:
        screen.show(message("n1", 1))
        screen.show(encode_line("node n1: told", detail=False))
        screen.show(encode_line("node n1: a detail", detail=True))
        clock.now = 10
        screen.show(message("n1", 2))
    with _progress.Screen(board) as screen:
        screen.show(message("n2", 3))
        clock.now = 20
        screen.show(message("n2", 4))
    assert [re.sub(r"\d\d:\d\d:\d\d", "TIME", line) for line in shown] == [
        "True node n1: told",
        "True TIME n1 2/17 moved",
        "True TIME n2 4/17 moved",
    ]


def test_what_no_module_says_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(_progress.display, "display", lambda line, **_options: shown.append(str(line)))
    with _progress.Screen(SharedScoreboard(tmp_path)) as screen, _progress.listening(screen.show) as path:
        assert path
        with Path(path).open("wb", buffering=0) as fifo:
            fifo.write(b"#rubbish\n#{}\n=a line\n")
    assert shown == ["a line"]
    assert not any(tmp_path.iterdir())

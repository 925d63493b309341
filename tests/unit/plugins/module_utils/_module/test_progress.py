# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that a module tells: whole, harmless, not too many, and never at the cost of the task."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import TOTALS_EVERY
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import (
    Progress,
    decode_line,
    encode_line,
    find_standing,
)

from unit.plugins.module_utils._execution.standings import standing


@contextmanager
def reader(path: Path) -> Iterator[int]:
    os.mkfifo(path)
    fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield fifo
    finally:
        os.close(fifo)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Board:
    """Whatever is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, message: bytes) -> None:
        standing = find_standing(message)
        line, is_detail = decode_line(message) if standing is None else (f"{standing.gone} gone", False)
        self.lines.append(f"({line})" if is_detail else line)


def test_lines_arrive_with_their_kind_and_subject(tmp_path: Path) -> None:
    with reader(tmp_path / "fifo") as fifo:
        progress = Progress.of({"_progress": str(tmp_path / "fifo")}, "node n1")
        progress.tell("shop/db: migrated")
        progress.detail("shop/db: Running")
        messages = os.read(fifo, 1 << 16).splitlines()
    assert [decode_line(message) for message in messages] == [
        ("node n1: shop/db: migrated", False),
        ("node n1: shop/db: Running", True),
    ]


@pytest.mark.parametrize("params", [{}, {"_progress": None}, {"_progress": "/nowhere/fifo"}])
def test_without_a_listener_nothing_happens(params: dict[str, str | None]) -> None:
    Progress.of(params).tell("unheard")


def test_a_reader_that_has_gone_does_no_harm(tmp_path: Path) -> None:
    progress = Progress.of({"_progress": str(tmp_path / "fifo")})
    with reader(tmp_path / "fifo") as fifo:
        progress.tell("heard")
        assert decode_line(os.read(fifo, 1 << 16))[0] == "heard"
    progress.tell("unheard")


def tell_much(progress: Progress) -> None:
    for _number in range(100):
        progress.tell("x" * 4000)


def test_a_reader_that_stands_still_does_not_hold_the_task_up(tmp_path: Path) -> None:
    with reader(tmp_path / "fifo"):
        progress = Progress.of({"_progress": str(tmp_path / "fifo")})
        telling = threading.Thread(target=tell_much, args=(progress,), daemon=True)
        telling.start()
        telling.join(20)
        assert not telling.is_alive()


def test_only_a_fifo_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    with reader(tmp_path / "fifo") as fifo:
        for name in ("file", "link"):
            Progress.of({"_progress": str(tmp_path / name)}).tell("anything")
        # The end of the file: nobody has written.
        assert os.read(fifo, 1) == b""
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("text", ["\x1b]0;title\x07after", "one\r\ntwo\u2028three", "\u202eesrever", "żółć 你好 ✓"])
def test_hostile_text_is_only_text(text: str) -> None:
    shown = printable(text)
    assert decode_line(encode_line(text, detail=False)) == (shown, False)
    # The listener does not rely on it that the module has seen to that.
    assert decode_line(b"=" + text.encode())[0] == shown


@pytest.mark.parametrize("text", ["x" * 10_000, "é" * 5_000, "a" + "é" * 5_000, "\ud800" * 9_000, "x" * 4_094])
def test_a_message_is_written_in_one_piece(text: str) -> None:
    message = encode_line(text, detail=True)
    assert len(message) <= select.PIPE_BUF
    assert message.count(b"\n") == 1
    line, is_detail = decode_line(message.rstrip(b"\n"))
    assert is_detail
    assert set(line) <= {*printable(text), "…"}, "nothing is cut in its middle"


def test_several_writers_do_not_mix(tmp_path: Path) -> None:
    lines: list[bytes] = []
    with reader(tmp_path / "fifo") as fifo:
        os.set_blocking(fifo, True)
        keeper = os.open(tmp_path / "fifo", os.O_WRONLY)

        def read() -> None:
            content = b""
            while part := os.read(fifo, 1 << 16):
                content += part
            lines.extend(content.splitlines())

        def write(letter: str) -> None:
            progress = Progress.of({"_progress": str(tmp_path / "fifo")})
            for _number in range(50):
                progress.tell(letter * 9_000)

        threads = [threading.Thread(target=write, args=(letter,)) for letter in "abc"]
        listener = threading.Thread(target=read)
        for thread in [listener, *threads]:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(keeper)
        listener.join()
    assert lines
    assert {len(set(decode_line(line)[0].rstrip("…"))) for line in lines} == {1}


def test_totals_are_told_seldom_and_only_if_there_is_something_new() -> None:
    clock, board = Clock(), Board()
    progress = Progress(board, "node n1", clock)
    told = []
    for seconds, text in ((1, "1 of 9"), (11, "2 of 9"), (12, "3 of 9"), (22, "2 of 9"), (23, "4 of 9"), (40, "")):
        clock.now = seconds * TOTALS_EVERY / 10
        progress.totals(text)
        told.append(len(board.lines))
    assert told == [0, 1, 1, 1, 2, 2]
    time_of_day, _space, line = board.lines[-1].partition(" ")
    assert line == "node n1: 4 of 9"
    assert time_of_day.count(":") == 2
    progress.tell("told")
    progress.detail("detail")
    assert board.lines[2:] == ["node n1: told", "(node n1: detail)"]


def test_a_standing_is_told_at_once_if_it_is_new_and_else_now_and_then() -> None:
    clock, board = Clock(), Board()
    progress = Progress(board, "node n1", clock)
    told = []
    for seconds, gone in ((0, 0), (1, 0), (2, 1), (3, 2), (7, 2), (8, 2), (9, 2)):
        clock.now = seconds
        progress.stands(standing(gone=gone))
        told.append(len(board.lines))
    assert told == [1, 1, 2, 3, 3, 4, 4]
    assert board.lines == ["0 gone", "1 gone", "2 gone", "2 gone"]


def test_a_standing_is_read_as_it_was_told() -> None:
    messages: list[bytes] = []
    told = standing("żółć\n" + "n" * 253, done=None)
    Progress(messages.append).stands(told)
    (message,) = messages
    assert message.count(b"\n") == 1
    assert find_standing(message.rstrip(b"\n")) == told
    assert find_standing(encode_line("#a line", detail=False)) is None


@pytest.mark.parametrize("message", [b"#", b"#{}", b"#[]", b'#"text"', b"#\xff", b"#" + b"[" * 5])
def test_what_is_no_standing_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any kind
        find_standing(message)


def test_a_standing_of_wrong_types_is_refused() -> None:
    message = b"#" + standing(gone=1).encoded().replace('"gone":1', '"gone":"1"').encode()
    with pytest.raises(ValueError, match="this is no standing \\(gone\\)"):
        find_standing(message)


def test_a_standing_that_is_too_long_for_one_piece_is_not_told(tmp_path: Path) -> None:
    with reader(tmp_path / "fifo") as fifo:
        progress = Progress.of({"_progress": str(tmp_path / "fifo")})
        progress.stands(standing("n" * 5_000))
        progress.stands(standing("n1"))
        (message,) = os.read(fifo, 1 << 16).splitlines()
    assert find_standing(message) == standing("n1")

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import threading
from pathlib import Path

from testbed.locks import locked


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with locked(path) as mine:
        assert mine
        with locked(path, wait=False) as second:
            assert not second
    with locked(path, wait=False) as again:
        assert again


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        assert path.exists()
    assert not path.exists()


def test_waiters_never_hold_it_together(tmp_path: Path) -> None:
    """The file is removed at each release: a waiter that got the lock of a removed file must not think it holds it."""
    path = tmp_path / "lock"
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _turn in range(200):
            with locked(path):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert not path.exists()

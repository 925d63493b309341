# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tells of a whole cluster is written whole or not at all, for its owner alone, and where the user meant it."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import plan_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

WHAT = "the plan"
CONTENT = [b"new " * 5000]


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is belongs to another user from now on, as far as can be told."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 4711)
    monkeypatch.setattr(private_file, "_SYSTEM", -1)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_for_its_owner_alone_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    path.chmod(0o644)
    assert not private_file.has_mode(path)
    before = os.umask(0)
    try:
        assert private_file.write(path, CONTENT, WHAT) == 20_000
    finally:
        os.umask(before)
    assert (mode(path), path.read_bytes()) == (0o600, CONTENT[0])
    assert private_file.has_mode(path)


def test_who_has_the_old_file_open_reads_nothing_new(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with path.open("rb") as stream:
        private_file.write(path, CONTENT, WHAT)
        assert stream.read() == b"old"


def test_an_own_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, real = tmp_path / "plan.json", tmp_path / "real/plan.json"
    link.symlink_to(real)
    private_file.check_writable(link, WHAT)
    private_file.write(link, CONTENT, WHAT)
    assert link.is_symlink()
    assert (mode(real), real.read_bytes()) == (0o600, CONTENT[0])


@pytest.mark.usefixtures("somebody_else")
def test_the_link_of_somebody_else_is_not(tmp_path: Path) -> None:
    precious, link = tmp_path / "authorized_keys", tmp_path / "plan.json"
    precious.write_bytes(b"old")
    link.symlink_to(precious)
    for attempt in (
        lambda: private_file.check_writable(link, WHAT),
        lambda: private_file.write(link, CONTENT, WHAT),
    ):
        with pytest.raises(Failure, match=r"it is a link that another user has made. Give the path of the file itself"):
            attempt()
    assert precious.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [precious, link]


@pytest.mark.usefixtures("somebody_else")
def test_the_file_of_somebody_else_is_not_taken_for_private(tmp_path: Path) -> None:
    """Its owner could change it after it was found to hold the right content."""
    path = tmp_path / "plan.json"
    path.touch(0o600)
    assert not private_file.has_mode(path)


@pytest.fixture
def small_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_what_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with pytest.raises(Failure, match=r"^Cannot write the plan \(.*plan.json\): File too large. Raise the limit"):
        private_file.write(path, CONTENT, WHAT)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("plan.json", b"old")]


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        private_file.write(path, chunks(), WHAT)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("plan.json", b"old")]


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_what_never_ends_is_not_read(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failure, match=r"Cannot read the plan .*: it is no regular file. Check the path"):
        private_file.read(tmp_path / path, WHAT, "maintenance_plan")


def test_a_folder_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="Is a directory"):
        private_file.read(tmp_path, WHAT, "maintenance_plan")


@pytest.mark.parametrize("others", [0o640, 0o604, 0o620, 0o602, 0o644])
def test_what_others_may_read_or_change_is_not_taken_for_private(tmp_path: Path, others: int) -> None:
    """As after a checkout, or a download."""
    path = tmp_path / "plan.json"
    path.write_bytes(b"content")
    path.chmod(others)
    with pytest.raises(Failure) as refused:
        private_file.read(path, WHAT, "maintenance_plan", private=True)
    assert str(refused.value) == (
        f"Cannot read the plan ({path}): its mode is 0{others:o}, so that others may read or change it. "
        f"Run `chmod 600 {path}` once it is what you expect, as after a checkout or download."
    )
    assert private_file.read(path, WHAT, "maintenance_plan") == b"content"
    path.chmod(0o400)
    assert private_file.read(path, WHAT, "maintenance_plan", private=True) == b"content"


@pytest.mark.parametrize(
    "ask",
    [
        lambda path: private_file.read(path, WHAT, "maintenance_plan"),
        lambda path: private_file.write(path, CONTENT, WHAT),
        lambda path: private_file.check_writable(path, WHAT),
    ],
    ids=["read", "write", "check"],
)
def test_the_home_of_somebody_whom_nobody_knows_is_told(ask: Callable[[Path], object]) -> None:
    with pytest.raises(Failure, match="nobody knows the home of ~nobody-of-this-name"):
        ask(Path("~nobody-of-this-name/plan.json"))


def test_links_that_lead_nowhere_are_no_traceback(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(Failure, match="symbolic links"):
        private_file.read(first, WHAT, "maintenance_plan")
    assert not plan_file.is_same_file(tmp_path / "plan.json", first)
    with pytest.raises(Failure, match="symbolic links"):
        private_file.write(first, CONTENT, WHAT)
    assert first.is_symlink()

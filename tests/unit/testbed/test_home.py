# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import stat
from pathlib import Path

import pytest

from testbed import home as home_module
from testbed.home import Home, Settings, TestbedError, existing


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a" * 41, "a_b"])
def test_names_that_could_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(TestbedError, match="is no testbed name"):
        Home(name)


@pytest.mark.parametrize("name", ["a", "default", "pytest-12345", "a" * 40])
def test_ordinary_names_are_taken(name: str, cache: Path) -> None:
    assert Home(name).root == cache / "testbeds" / name


def test_settings_come_back_as_written() -> None:
    home = Home("one")
    assert home.settings() is None
    home.create()
    settings = Settings({"api": 20001}, (4711, 12.5), 60.0, 7, ready=True)
    home.write(settings)
    assert home.settings() == settings


def test_settings_cut_off_while_written_count_as_none() -> None:
    home = Home("one")
    home.create()
    home.write(Settings({"api": 20001}))
    home.settings_file.write_text(home.settings_file.read_text()[:10])
    assert home.settings() is None


def test_folders_are_private() -> None:
    home = Home("one")
    home.create()
    for folder in (home.root, home.pki, home.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_existing_lists_folders_and_not_locks() -> None:
    assert existing() == []
    for name in ("two", "one"):
        Home(name).create()
    (home_module.testbeds() / ".one.lock").touch()
    (home_module.testbeds() / "file").touch()
    assert existing() == [Home("one"), Home("two")]


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTOPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert home_module.cache() == Path("/somewhere/virtops.kubevirt")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert home_module.cache() == Path.home() / ".cache/virtops.kubevirt"

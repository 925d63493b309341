# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan from its path or handle, and one sentence for what is not the plan that was meant."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.plan_file import (
    find_plan,
    load_plan,
    write,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import PlanError, sha256, to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._plan.plans import action, plan, vm

FIRST = plan(action(ActionKind.MIGRATE, vm("a"), "n1", "n2"))
OTHER = plan(action(ActionKind.MIGRATE, vm("a"), "n1", "n3"))


def test_a_handle_and_a_path_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "plan.json"
    write(path, FIRST)
    sources: list[Any] = [
        path,
        str(path),
        "~/plan.json",
        {"plan_path": str(path), "sha256": sha256(FIRST), "changed": 1},
        to_json(FIRST),
        {"plan_path": "", "document": to_json(FIRST)},
    ]
    assert [load_plan(source) for source in sources] == [FIRST] * 6
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_handle_of_a_plan_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write(path, OTHER)
    with pytest.raises(PlanError, match=r"plan.json: the plan is not the one that was meant \(sha256 .*expected"):
        load_plan({"plan_path": str(path), "sha256": sha256(FIRST)})


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"Cannot read the plan \(.*plan.json\): No such file or directory. Check"):
        load_plan(tmp_path / "plan.json")


def test_a_file_that_is_no_plan_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("text")
    path.chmod(0o600)
    with pytest.raises(PlanError, match=r"plan.json: This is no plan"):
        load_plan(path)
    assert find_plan(path) is None


def test_a_file_that_others_may_change_is_only_looked_at_before_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write(path, FIRST)
    path.chmod(0o664)
    with pytest.raises(Failure, match=r"Cannot read the plan \(.*plan.json\): its mode is 0664, .*`chmod 600 "):
        load_plan(path)
    assert find_plan(path) == FIRST


@pytest.mark.parametrize("source", [None, 5, ["a"], {}, {"plan_path": 5}, {"plan_path": ""}])
def test_what_is_neither_path_nor_handle(source: Any) -> None:
    with pytest.raises(PlanError, match="A plan is expected, got"):
        load_plan(source)


def test_a_folder_that_is_not_there_is_said_when_writing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"Cannot write the plan \(.*plan.json\): .*Create its folder first"):
        write(tmp_path / "none" / "plan.json", FIRST)

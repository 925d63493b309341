# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task asks about many VMs: the snapshot is read once, and what is made of it is made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import feasible_nodes
from ansible_collections.virtops.kubevirt.plugins.filter.launcher_pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _once
from ansible_collections.virtops.kubevirt.plugins.test.drainable import drainable
from ansible_collections.virtops.kubevirt.plugins.test.live_migratable import live_migratable

from unit.plugins.module_utils._kubevirt.machines import launcher, node, vmi

LISTS = {"vmis": [vmi("a"), vmi("b")], "pods": [launcher(vmi("a")), launcher(vmi("b"))], "nodes": [node()]}
QUESTIONS: list[Callable[[str, str], object]] = [
    lambda path, name: launcher_pod(path, name, migration=True),
    feasible_nodes,
    lambda path, name: live_migratable(name, path),
    lambda path, _name: drainable(node()["metadata"]["name"], path),
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    sources: list[object] = []

    def counted(source: object) -> Snapshot:
        sources.append(source)
        return load(source)

    monkeypatch.setattr(_once, "load", counted)
    return sources


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "cluster.json"
    found.write_text(json.dumps(LISTS))
    return found


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_file_is_read_once_for_all_vms(ask: Callable[[str, str], object], reads: list[object], path: Path) -> None:
    for name in ("shop/a", "shop/b", "shop/a"):
        ask(str(path), name)
    assert reads == [str(path)]


def test_answers_do_not_depend_on_what_was_asked_before(path: Path) -> None:
    first: Any = feasible_nodes(str(path), "shop/a", scores=True)
    feasible_nodes(str(path), "shop/b", added_node_selector={"rack": "2"})
    assert feasible_nodes(str(path), "shop/a", scores=True) == first == feasible_nodes(LISTS, "shop/a", scores=True)


def test_what_is_made_is_made_once_of_each_state_of_a_file(path: Path) -> None:
    made: list[int] = []

    def count(lists: Any) -> int:
        made.append(len(lists["vmis"]))
        return made[-1]

    assert [_once.once(count, str(path)) for _call in range(3)] == [2, 2, 2]
    path.write_text(json.dumps({**LISTS, "vmis": [vmi("a")]}))
    assert _once.once(count, str(path)) == 1
    assert made == [2, 1]


def test_lists_may_have_changed_between_two_calls() -> None:
    lists = {"vmis": [vmi("a")]}
    found = [_once.once(lambda given: len(given["vmis"]), lists)]
    lists["vmis"].append(vmi("b"))
    found.append(_once.once(lambda given: len(given["vmis"]), lists))
    assert found == [1, 2]

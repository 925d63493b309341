# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.test.drainable import TestModule as Plugin

from unit.plugins.module_utils._planner.scene import Lists, Scene, node

drainable = Plugin().tests()["drainable"]


def lists() -> Lists:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    return scene.lists


def test_one_node_and_several_together() -> None:
    assert drainable("a", lists()) is True
    assert drainable(["a", "b"], lists()) is False


def test_policies_count() -> None:
    assert drainable(["a", "b"], lists(), policies=[{"policy": "stop"}]) is True


def test_answers_do_not_depend_on_what_was_asked_before(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(lists()))
    asked: list[str | list[str]] = ["a", ["a", "b"], "b", "a"]
    assert [drainable(nodes, str(path)) for nodes in asked] == [True, False, True, True]
    with pytest.raises(AnsibleFilterError, match="there is no node z"):
        drainable("z", str(path))
    assert [drainable(nodes, str(path)) for nodes in reversed(asked)] == [True, True, False, True]


def test_an_unknown_node_is_an_error_and_not_false() -> None:
    with pytest.raises(AnsibleFilterError, match="there is no node z"):
        drainable("z", lists())

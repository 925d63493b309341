# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.doc_fragments import _policies, _profile
from ansible_collections.virtops.kubevirt.plugins.filter.drain_feasibility import FilterModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._planner.scene import Lists, Scene, node

plan = FilterModule().filters()["drain_feasibility"]


def lists() -> Lists:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("vm", "a")
    return scene.lists


def test_one_node_by_name_and_several_in_a_list() -> None:
    assert plan(lists(), "a") == plan(lists(), ["a"])
    assert plan(lists(), (name for name in "ab"))["nodes"] == ["a", "b"]


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(lists()))
    assert plan(str(path), "a")["feasible"]


def test_batches_have_a_plan_each_of_one_look_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(lists()))
    reads: list[Path] = []
    open_file = Path.open

    def counted(file: Path, *how: Any) -> Any:
        reads.append(file)
        return open_file(file, *how)

    monkeypatch.setattr(Path, "open", counted)
    batches = [["a"], ("b", "c")]
    assert plan(str(path), batches) == [plan(lists(), batch) for batch in batches]
    assert reads == [path]
    assert plan(lists(), (name for name in (["a"], ["b"]))) == [plan(lists(), "a"), plan(lists(), "b")]


def test_options_reach_the_plan() -> None:
    assert plan(lists(), "a", avoid=["b"])["moves"][0]["target_node"] == "c"
    assert plan(lists(), "a", targets={"shop/vm": "c"})["moves"][0]["target_node"] == "c"
    assert plan(lists(), "a", profile="NoScoring")["moves"][0]["score"] == 1
    alone = {**lists(), "nodes": [node("a")]}
    assert plan(alone, "a", policies=[{"policy": "stop"}])["stuck"][0]["outcome"] == "stops"


def test_pods_that_may_not_go_are_in_the_way() -> None:
    scene = Scene(node("a"), node("b"))
    scene.pod("data-1", "a", volumes=[{"name": "v", "emptyDir": {}}])
    scene.pod("lone", "a", owner="")
    assert plan(scene.lists, "a")["feasible"], "nothing is said of what may go"
    assert plan(scene.lists, "a", delete_emptydir_data=True, force=True) == plan(scene.lists, "a")
    forbidden = plan(scene.lists, "a", delete_emptydir_data=False, force=False)
    assert not forbidden["feasible"]
    assert forbidden["message"] == (
        "a cannot be drained like this. These pods would lose what they keep in emptyDir volumes, or would not be "
        "replaced: shop/data-1, shop/lone. Let them go by delete_emptydir_data and force, or move them yourself."
    )
    both = plan(scene.lists, [["a"], ["b"]], delete_emptydir_data=True, force=False)
    assert [step["feasible"] for step in both] == [False, True]
    assert "emptyDir volumes, or would not be replaced: shop/lone. Let them go by force, or" in both[0]["message"]


def test_pods_that_may_not_go_are_told_beside_other_obstacles() -> None:
    scene = Scene(node("a"))
    scene.vm("vm", "a")
    scene.pod("lone", "a", owner="")
    message = plan(scene.lists, "a")["message"]
    assert plan(scene.lists, "a", force=False)["message"].startswith(f"{message} These pods would lose")


def test_pods_that_may_not_go_do_not_pass() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status={"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}})
    scene.pod("lone", "a", owner="")
    assert plan(scene.lists, "a")["passing"]
    assert not plan(scene.lists, "a", force=False)["passing"]


BROKEN: list[tuple[Any, Any, dict[str, Any], str]] = [
    (lists(), 7, {}, "`nodes` is a list of names of nodes, got 7."),
    (lists(), [7], {}, "`nodes` is a list of names of nodes, got [7]."),
    (lists(), [["a"], "b"], {}, "`nodes` is a list of names of nodes, or of such lists, got [['a'], 'b']."),
    (lists(), [["a"], [7]], {}, "`nodes` is a list of names of nodes, got [7]."),
    (lists(), [["a"], ["z"]], {}, "Cannot plan the drain: there is no node z. "),
    (lists(), [["a"], []], {}, "Cannot plan the drain: no node is named. "),
    (lists(), ["a"], {"avoid": "b"}, "`avoid` is a list of names of nodes, got 'b'."),
    (lists(), ["a"], {"targets": ["b"]}, "`targets` maps VMIs to nodes"),
    (lists(), ["a"], {"targets": {"shop/vm": 1}}, "`targets` maps VMIs to nodes"),
    (lists(), ["a"], {"profile": "Best"}, "There is no profile 'Best'. Give one of LowNodeUtilization, "),
    (lists(), ["a"], {"policies": [{"policy": "skip"}]}, "policies[0] has the policy 'skip'"),
    (lists(), ["a"], {"force": "yes"}, "`force` is true or false, got 'yes'."),
    (lists(), ["z"], {}, "Cannot plan the drain: there is no node z. "),
    ({"node": []}, ["a"], {}, "Do you mean 'nodes'"),
    ("/nowhere/cluster.json", ["a"], {}, "Cannot read the snapshot"),
]


@pytest.mark.parametrize(("source", "nodes", "options", "text"), BROKEN)
def test_errors_are_one_sentence(source: Any, nodes: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        plan(source, nodes, **options)
    assert text in str(raised.value)
    assert raised.value.__cause__ is None


def test_all_choices_are_documented() -> None:
    documented = f"{_policies.ModuleDocFragment.DOCUMENTATION}{_profile.ModuleDocFragment.DOCUMENTATION}"
    choices = [entry.value for kind in (Profile, Policy) for entry in kind]
    assert all(f"- {choice}\n" in documented for choice in choices)

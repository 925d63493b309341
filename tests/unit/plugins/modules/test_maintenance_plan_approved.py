# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that was approved is taken from its file as it is, if it is the one meant and can be one for this run."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.plan_file import load_plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import encode
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.modules.test_maintenance_plan import EVENING, FIXED, LABEL, MENDED, NOON, RIGHT, Files, taken
from unit.plugins.support.modules import ModuleRunner


@pytest.fixture
def make(run_module: ModuleRunner) -> Any:
    return partial(run_module, main)


@pytest.fixture
def scene() -> Scene:
    """Three nodes, with a VM on the first."""
    scene = Scene(*map(node, ("n1", "n2", "n3")))
    scene.vm("web", "n1")
    return scene


@pytest.fixture
def files(scene: Scene, tmp_path: Path) -> Files:
    return Files(tmp_path).see(scene)


@pytest.fixture
def noon(make: Any, files: Files) -> dict[str, Any]:
    """A plan that is approved."""
    made: dict[str, Any] = make(
        **files.given, run="patch", nodes=["n1", "n2"], policies=[{"policy": "stop"}], force=True
    )
    return made


def test_an_approved_plan_is_refused_where_nothing_can_be_pinned(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any]
) -> None:
    result = taken(make, files.see(scene, EVENING, kubevirt="v1.5.3"), sha256=noon["sha256"])
    assert "the cluster has KubeVirt v1.5.3, which cannot pin a migration to a node" in result["msg"]


@pytest.mark.parametrize("drift", ["repair", "fail"])
@pytest.mark.parametrize("check", [False, True])
def test_an_approved_plan_is_taken_as_it_is(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any], check: bool, drift: str
) -> None:
    content = files.plan.read_bytes()
    result = taken(make, files.see(scene, EVENING), sha256=noon["sha256"], check=check, drift=drift)
    same = ("plan_path", "sha256", "origin", "batches", "verdict", "totals", "options", "differences")
    assert {name: result[name] for name in same} == {name: noon[name] for name in same}
    assert result["lines"] == [RIGHT, *noon["lines"]]
    assert (result["changed"], result["options"]) == (
        False,
        {"policies": [{"policy": "stop"}], "force": True, "delete_emptydir_data": False},
    )
    assert files.plan.read_bytes() == content


def test_an_approved_plan_that_is_not_right_any_more_is_told_as_it_is_mended(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any]
) -> None:
    """In its last batch, too. The file stays what was approved."""
    content = files.plan.read_bytes()
    scene.vm("late", "n2")
    result = taken(make, files.see(scene, EVENING), sha256=noon["sha256"])
    (change,) = result["differences"]
    assert change.startswith("VM shop/late goes to ")
    assert result["lines"][:3] == [MENDED, f"Mended: {change}", "Run patch: 2 of 2 nodes to maintain, 1 at a time."]
    assert result["totals"]["migrations"] == noon["totals"]["migrations"] + 1
    assert {result[name] for name in ("sha256", "origin")} == {noon["sha256"]}
    assert (result["plan_path"], result["changed"]) == (str(files.plan), False)
    assert files.plan.read_bytes() == content


def test_what_has_come_to_stand_against_a_later_batch_is_told_before_the_first(
    make: Any, files: Files, scene: Scene
) -> None:
    assert make(**files.given, run="patch", nodes=["n1", "n2"])["verdict"] == "feasible"
    scene.vm("fixed", "n2", status=FIXED)
    result = taken(make, files.see(scene, EVENING))
    assert (result["verdict"], result["possible"]) == ("partial", ["n1"])
    assert [entry["name"] for entry in result["blocked"]] == ["fixed"]


def test_a_plan_that_avoids_a_node_that_is_gone_is_told_whatever_stands_against_it(
    make: Any, files: Files, scene: Scene
) -> None:
    assert make(**files.given, run="patch", nodes=["n1", "n2"], avoid=["n3"])["verdict"] == "feasible"
    scene.vm("fixed", "n2", status=FIXED)
    scene.lists["nodes"] = [item for item in scene.lists["nodes"] if item["metadata"]["name"] != "n3"]
    result = taken(make, files.see(scene, EVENING))
    assert (result["verdict"], result["possible"]) == ("partial", [])
    assert [entry["name"] for entry in result["blocked"]] == ["fixed"]


def test_with_drift_to_fail_an_approved_plan_is_refused_in_words(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any]
) -> None:
    scene.vm("late", "n2")
    refused = taken(make, files.see(scene, EVENING), drift="fail", option_prefix="plan_maintenance_")
    (problem,) = refused["error"]["problems"]
    assert problem.startswith("VM shop/late goes to ")
    assert refused["error"]["remedy"] == (
        "Plan and approve anew, or set plan_maintenance_drift to repair; nothing was touched."
    )
    assert f"Cannot go by the plan of {NOON}, as the cluster has changed: VM shop/late" in refused["msg"]


def test_what_passes_by_itself_is_told_and_no_reason_to_refuse(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any]
) -> None:
    (move,) = [entry for entry in files.actions if entry["id"] == "1.migrate.shop/web"]
    (item,) = [item for item in scene.lists["nodes"] if item["metadata"]["name"] == move["to"]]
    item["spec"]["unschedulable"] = True
    result = taken(make, files.see(scene, EVENING), drift="fail")
    assert result["lines"][0] == f"{RIGHT.removesuffix('.')}, but for what passes by itself:"
    assert result["lines"][1].startswith("For now: VM shop/web ")
    assert (result["sha256"], result["differences"]) == (noon["sha256"], [])


def test_of_an_approved_plan_what_is_done_is_left_out(
    make: Any, files: Files, scene: Scene, noon: dict[str, Any]
) -> None:
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    result = taken(make, files.see(scene, EVENING))
    assert (result["batches"], result["done"], result["sha256"]) == ([["n2"]], ["n1"], noon["sha256"])
    assert result["lines"][:3] == [RIGHT, "Run patch: 1 of 2 nodes to maintain, 1 at a time.", "Done already: n1"]
    assert "2. n2" in result["lines"]
    assert "1. n1" not in result["lines"]


def test_what_stood_against_nodes_that_are_done_counts_no_more(make: Any, files: Files, scene: Scene) -> None:
    scene.vm("fixed", "n1", status=FIXED)
    assert make(**files.see(scene).given, run="patch", nodes=["n1", "n2"])["verdict"] == "partial"
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    result = taken(make, files.see(scene, EVENING))
    assert (result["verdict"], result["blocked"]) == ("feasible", [])


def test_the_verdict_is_on_what_is_left(make: Any, files: Files, scene: Scene) -> None:
    """Of which nothing can be done when all that could be is done."""
    scene.vm("fixed", "n2", status=FIXED)
    assert make(**files.see(scene).given, run="patch", nodes=["n1", "n2"])["verdict"] == "partial"
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    result = taken(make, files.see(scene, EVENING))
    assert (result["verdict"], result["possible"]) == ("infeasible", [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "other"}, "it is for run 'patch', and this is run 'other'. Make a plan anew"),
        ({"sha256": "0" * 64}, "the plan is not the one that was meant"),
        ({"sha256": ""}, "sha256 is empty; leave it out"),
        ({"plan": "/none/plan.json"}, "Cannot read the plan (/none/plan.json): No such file"),
        ({"path": "/tmp/a"}, "path is given with plan, but without resume nothing is written"),
    ],
)
def test_another_plan_is_refused(
    make: Any, files: Files, noon: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    assert words in taken(make, files, **changes)["msg"]


def test_a_plan_by_which_things_only_move_is_refused(make: Any, files: Files, noon: dict[str, Any]) -> None:
    files.plan.write_bytes(encode(replace(load_plan(files.plan), actions=(), batches=())))
    assert "it maintains no node, as by it things only move; vmi_migration carries it out" in taken(make, files)["msg"]


def test_another_cluster_is_refused(make: Any, files: Files, scene: Scene, noon: dict[str, Any]) -> None:
    result = taken(make, files.see(scene, EVENING, uid="uid-of-another"))
    assert "it is for the cluster uid-of-cluster, and this is uid-of-another" in result["msg"]
    del scene.lists["nodes"][1]
    assert "node n2 is no longer there" in taken(make, files.see(scene, EVENING))["msg"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"batch": 2}, "batch is 2, and the plan has 1"),
        ({"batch": "auto"}, 'batch is "auto", and the plan has 1'),
        ({"order": "free"}, 'order is "free", and the plan has "given"'),
        ({"batch_constraints": {"first": ["n2"]}}, 'batch_constraints.first is ["n2"], and the plan has []'),
        (
            {"policies": [{"policy": "restart"}]},
            'policies is [{"policy": "restart"}], and the plan has [{"policy": "stop"}]',
        ),
        ({"avoid": ["n2"]}, 'avoid is ["n2"], and the plan has []'),
        ({"delete_emptydir_data": True}, "delete_emptydir_data is true, and the plan has false"),
        ({"room": 3}, "room is 3, and the plan has 0"),
        ({"reserve": "zone"}, 'reserve is "zone", and the plan has "none"'),
        ({"profile": "NoScoring"}, 'profile is "NoScoring", and the plan has "LowNodeUtilization"'),
        ({"room": 3, "option_prefix": "plan_maintenance_"}, "plan_maintenance_room is 3, and the plan has 0"),
        ({"nodes": ["n3", "n1", "n2"]}, "nodes stands for n3, which the plan does not maintain"),
        ({"nodes": ["n2"], "option_prefix": "your_"}, "your_nodes does not stand for n1, which the plan maintains"),
    ],
)
def test_options_that_contradict_an_approved_plan_are_refused(
    make: Any, files: Files, noon: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    refused = taken(make, files, **changes)
    assert refused["error"]["problems"] == [problem]
    assert refused["error"]["remedy"] == (
        "Leave them out, as the plan has its own, or make a plan anew and have it approved."
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"batch": "1"}, "batch is 1, and the plan has 2"),
        ({"order": "given"}, 'order is "given", and the plan has "free"'),
        ({"batch_constraints": {}}, 'batch_constraints.last is [], and the plan has ["n2"]'),
        ({"batch_constraints": {"apart": []}}, 'batch_constraints.last is [], and the plan has ["n2"]'),
        ({"policies": []}, 'policies is [], and the plan has [{"policy": "stop"}]'),
        ({"avoid": []}, 'avoid is [], and the plan has ["n3"]'),
        ({"targets": {}}, 'targets is {}, and the plan has {"shop/web": "n3"}'),
        ({"delete_emptydir_data": False}, "delete_emptydir_data is false, and the plan has true"),
        ({"force": "no"}, "force is false, and the plan has true"),
        ({"room": 0}, "room is 0, and the plan has 1"),
        ({"reserve": "none"}, 'reserve is "none", and the plan has "largest_node"'),
        ({"profile": "LowNodeUtilization"}, 'profile is "LowNodeUtilization", and the plan has "NoScoring"'),
        ({"force": " ", "room": None, "policies": ""}, None),
    ],
)
def test_defaults_contradict_an_approved_plan_when_they_are_given(
    make: Any, files: Files, given: dict[str, Any], problem: str | None
) -> None:
    """A blank answer of a survey gives nothing."""
    asked: dict[str, Any] = {
        "batch": 2,
        "order": "free",
        "batch_constraints": {"last": ["n2"]},
        "policies": [{"policy": "stop"}],
        "avoid": ["n3"],
        "targets": {"shop/web": "n3"},
        "delete_emptydir_data": True,
        "force": True,
        "room": 1,
        "reserve": "largest_node",
        "profile": "NoScoring",
    }
    made = make(**files.given, run="patch", nodes=["n1", "n2"], **asked)
    assert made["verdict"] == "feasible"
    found = taken(make, files, **given)
    assert found.get("error", {}).get("problems", []) == ([problem] if problem else [])
    assert taken(make, files, **asked)["sha256"] == made["sha256"]


def test_options_that_an_approved_plan_was_made_with_may_be_given_again(make: Any, files: Files, scene: Scene) -> None:
    """Also when a part of its nodes is done, of which a share is one as well."""
    asked: dict[str, Any] = {"run": "patch", "batch": "67%", "order": "free", "policies": [{"policy": "stop"}]}
    make(**files.given, **asked, nodes=["n1", "n2", "n3"], room=1, avoid=["n2"], force=True)
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    files.see(scene, EVENING)
    assert taken(make, files, **asked, room=1, avoid=["n2"], force=True)["done"] == ["n1"]
    make(**files.given, **asked, nodes=["n1", "n2", "n3"])
    assert len(taken(make, files, **asked)["batches"][0]) == 2


def test_an_approved_plan_may_come_with_its_nodes(make: Any, files: Files, scene: Scene, noon: dict[str, Any]) -> None:
    """In whatever order, and when one of them is done, too."""
    assert taken(make, files, nodes=["n2", "n1"])["sha256"] == noon["sha256"]
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    assert taken(make, files.see(scene, EVENING), nodes=["n1", "n2"])["done"] == ["n1"]


def test_a_plan_of_given_batches_contradicts_wishes_for_them(make: Any, files: Files) -> None:
    make(**files.given, run="patch", batches=[["n1"], ["n2"]])
    refused = taken(make, files, batch=2)
    assert refused["error"]["problems"] == ["batch is 2, and the plan has batches that were given"]
    assert taken(make, files, order="given", batch_constraints={})["batches"] == [["n1"], ["n2"]]


def test_a_plan_that_was_edited_is_refused_without_the_digest_that_was_approved(
    make: Any, files: Files, noon: dict[str, Any]
) -> None:
    assert json.loads(files.plan.read_text())["sha256"] == noon["sha256"]
    files.plan.write_text(files.plan.read_text().replace('"to": "n3"', '"to": "n2"'))
    assert f"{files.plan}: The plan was edited since it was made: its digest would be " in taken(make, files)["msg"]


def test_a_plan_that_others_may_read_or_change_is_refused(make: Any, files: Files, noon: dict[str, Any]) -> None:
    files.plan.chmod(0o644)
    for result in (
        taken(make, files),
        make(**{**files.given, "path": f"{files.plan}.new"}, run="patch", nodes=["n1"], compare=str(files.plan)),
    ):
        assert "its mode is 0644, so that others may read or change it. Run `chmod 600 " in result["msg"]
    files.plan.chmod(0o600)
    assert taken(make, files)["verdict"] == "feasible"


def test_a_plan_that_sends_something_to_a_node_that_is_not_there_is_not_right(
    make: Any, files: Files, scene: Scene
) -> None:
    make(**files.given, run="patch", nodes=["n1", "n2"], avoid=["n2"])
    del scene.lists["nodes"][2]
    changes = ["VM shop/web goes to n2, as node n3 is gone; it was: goes to n3", "VM shop/web goes to n1, which is new"]
    assert taken(make, files.see(scene, EVENING))["differences"] == changes
    assert taken(make, files, drift="fail")["error"]["problems"] == changes
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    done = taken(make, files.see(scene, EVENING))
    assert done["lines"][0] == RIGHT, "what is done needs no node any more"


def test_a_plan_from_plain_lists_is_for_no_cluster(make: Any, files: Files, scene: Scene) -> None:
    files.snapshot.write_text(json.dumps(scene.lists))
    make(**files.given, run="patch", nodes=["n1"])
    assert "it does not say for which cluster it is" in taken(make, files)["msg"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan comes from a snapshot's file, and what is wrong with the task or the file is said in a sentence."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import write
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import arrays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import document, encode_all
from ansible_collections.virtops.kubevirt.plugins.modules.rebalance_plan import main

from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.plan_schema import plan_in

FAST = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
        ]
    }
}


@pytest.fixture
def plan(run_module: ModuleRunner) -> Any:
    return partial(run_module, main)


@pytest.fixture
def scene() -> Scene:
    """A VM that would rather be on the other node."""
    scene = Scene(node("n1"), node("n2", fast="yes"))
    scene.vm("db", "n1", rules={"affinity": FAST})
    return scene


@pytest.fixture
def snapshot(scene: Scene, tmp_path: Path) -> str:
    return file_of(scene, tmp_path)


def file_of(scene: Scene, folder: Path, taken: str = "2026-01-01T00:00:00Z") -> str:
    lists = {name: encode_all(items) for name, items in scene.lists.items()}
    path = folder / "cluster.json"
    write(path, document(lists, cluster=Cluster("u", "v1", "v1"), taken_at=taken))
    return str(path)


@pytest.mark.parametrize("check", [False, True])
def test_the_plan_of_a_snapshot(plan: Any, snapshot: str, check: bool) -> None:
    result = plan(snapshot=snapshot, check=check)
    assert (result["changed"], result["message"]) == (False, "1 VM migrates.")
    assert result["moves"] == [
        {
            "kind": "VirtualMachineInstance",
            "namespace": "shop",
            "name": "db",
            "source_node": "n1",
            "target_node": "n2",
            "wave": 1,
            "gain": 200,
            "why": "Its preferred rules are met better there.",
        }
    ]


def test_the_plan_is_the_document_that_everything_obeys(plan: Any, snapshot: str, tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    assert plan(snapshot=snapshot, path=str(path), check=True)["changed"]
    assert not path.exists()
    result = plan(snapshot=snapshot, run="patch", path=str(path), document=True)
    written = json.loads(path.read_text())
    assert plan_in(written).batches == ()
    assert (result["changed"], result["document"], result["plan_path"]) == (True, written, str(path))
    assert (written["run"], written["cluster"]["uid"], written["sha256"]) == ("patch", "u", result["sha256"])
    assert result["totals"]["migrations"] == 1
    (action,) = written["actions"]
    assert (action["kind"], action["from"], action["to"]) == ("migrate", "n1", "n2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_suffix(".txt").read_text().splitlines()[1:] == result["lines"]
    assert not plan(snapshot=snapshot, run="patch", path=str(path))["changed"]


def test_the_same_again_keeps_the_file_and_its_digest(plan: Any, scene: Scene, tmp_path: Path) -> None:
    """Whenever the cluster was looked at."""
    path = tmp_path / "moves.json"
    first = plan(snapshot=file_of(scene, tmp_path), path=str(path))
    content = path.read_bytes()
    again = plan(snapshot=file_of(scene, tmp_path, "2026-01-01T20:00:00Z"), path=str(path))
    assert (again["changed"], again["sha256"], path.read_bytes()) == (False, first["sha256"], content)


def test_a_plan_is_not_written_over_its_snapshot(plan: Any, snapshot: str) -> None:
    before = Path(snapshot).read_bytes()
    refused = plan(snapshot=snapshot, path=snapshot)
    assert "path is the file of snapshot, which would be lost. Nothing was written." in refused["msg"]
    assert Path(snapshot).read_bytes() == before


def test_the_lines_say_what_moves(plan: Any, snapshot: str) -> None:
    assert plan(snapshot=snapshot)["lines"] == [
        "1 VM migrates.",
        "1. VM shop/db: n1 -> n2. Its preferred rules are met better there.",
    ]


def test_a_path_that_cannot_be_written(plan: Any, snapshot: str, tmp_path: Path) -> None:
    assert "Cannot write the plan" in plan(snapshot=snapshot, path=str(tmp_path / "none/moves.json"))["msg"]


def test_a_snapshot_of_another_cluster(plan: Any, snapshot: str, tmp_path: Path) -> None:
    assert plan(snapshot=snapshot, cluster_uid="u")["moves"]
    result = plan(snapshot=snapshot, cluster_uid="uid-of-before")
    assert (result["error"]["reason"], result["error"]["object"]) == ("OtherCluster", snapshot)
    (tmp_path / "plain.json").write_text('{"nodes": []}')
    result = plan(snapshot=str(tmp_path / "plain.json"), cluster_uid="u")
    assert "its uid is unknown, not u" in result["msg"]


def test_no_moves_cannot_be_meant(plan: Any, snapshot: str) -> None:
    assert "max_moves is 0" in plan(snapshot=snapshot, max_moves=0)["msg"]


def test_a_snapshot_that_is_not_there(plan: Any, tmp_path: Path) -> None:
    assert "No such file or directory" in plan(snapshot=str(tmp_path / "none.json"))["msg"]


def test_an_amount_that_is_none(plan: Any, scene: Scene, tmp_path: Path) -> None:
    scene.lists["nodes"][0]["status"]["allocatable"]["memory"] = "much"
    result = plan(snapshot=file_of(scene, tmp_path))
    assert result["msg"] == "Cannot plan moves: 'much' is not a quantity. Remove the cause and run the task again."
    assert result["error"]["problems"] == ["'much' is not a quantity"]


def test_a_selector_that_is_none(plan: Any, scene: Scene, tmp_path: Path) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["db"]}]}
    budget = {"metadata": {"name": "b", "namespace": "shop"}, "spec": {"selector": selector}, "status": {}}
    scene.lists["pdbs"] = [budget]
    assert "Cannot plan moves: 'Like' is not a valid label selector" in plan(snapshot=file_of(scene, tmp_path))["msg"]


def test_no_numpy(plan: Any, snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "np", None)
    assert "library (numpy) on" in plan(snapshot=snapshot)["msg"]


def test_a_file_that_is_no_snapshot(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("text")
    assert "It is not JSON" in plan(snapshot=str(tmp_path / "a.json"))["msg"]

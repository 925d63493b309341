# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the nodes of a run that is started again are those of its plan, however many are done, and in any order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, KEPT
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import what_is_left
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from testbed.pki import Authority
from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.modules.test_maintenance_plan import EVENING, Files
from unit.plugins.modules.test_maintenance_plan_resumed import ANEW, GOES_ON, cordoned, done, moved, planned
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi, running


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.hold_run("a1", seconds=10**9)
        yield fake


@pytest.fixture
def scene() -> Scene:
    """Nodes in two halves of a room, with a VM on each of the first two."""
    scene = Scene(*(node(f"n{number}", half="ab"[number % 2]) for number in range(1, 5)))
    scene.vm("web", "n1")
    scene.vm("db", "n2")
    return scene


@pytest.fixture
def files(scene: Scene, tmp_path: Path) -> Files:
    return Files(tmp_path).see(scene)


@pytest.fixture
def start(run_module: ModuleRunner, connection: dict[str, Any], files: Files) -> Any:
    """The run, each time on a controller that has no plan."""

    def make(*nodes: str, **changes: Any) -> Any:
        files.plan.unlink(missing_ok=True)
        run = {"run": "kernel", "resume": True, "invocation": "a1", "nodes": list(nodes)}
        return run_module(main, **{**connection, **files.given, **run, **changes})

    return make


@pytest.mark.parametrize("order", ["given", "free"])
def test_what_is_done_is_not_done_again_where_it_is_not_named_any_more(
    start: Any, files: Files, scene: Scene, order: str
) -> None:
    first = [name for (name,) in start("n1", "n2", "n3", order=order)["batches"]]
    done(scene, first[0])
    cordoned(scene, first[1])
    files.see(scene, EVENING)
    again = start(*first[1:], order=order)
    assert (again["resumed"], again["batches"], again["done"]) == (True, [[first[1]], [first[2]]], [first[0]])
    assert [line for line in again["lines"] if line.startswith("Run kernel: 2 of 3 nodes to maintain, 1 at a time")]


def test_of_what_is_done_a_new_plan_has_nothing_to_tell(start: Any, files: Files, scene: Scene, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    start("n1", "n2")
    files.plan.rename(earlier)
    moved(scene, "web", "n3")
    done(scene, "n1")
    files.see(scene, EVENING)
    again = start("n2", resume=False, invocation=None, compare=str(earlier))
    assert (again["batches"], again["done"], again["differences"]) == ([["n2"]], [], [])


def test_a_run_is_compared_with_no_plan_of_another_release(start: Any, tmp_path: Path) -> None:
    """Which it replaces, as the role does that gives it in check mode."""
    earlier = tmp_path / "earlier.json"
    earlier.touch(mode=0o600)
    earlier.write_text('{"schema": "virtops.kubevirt/plan/0"}')
    assert start("n1", compare=str(earlier))["differences"] == []
    refused = start("n1", compare=str(earlier), resume=False, invocation=None)
    assert "'virtops.kubevirt/plan/0'" in refused["msg"]


@pytest.mark.parametrize("note", [CORDON_NOTE, KEPT])
def test_what_has_left_in_a_batch_behind_a_failed_one_is_no_drift(
    start: Any, files: Files, scene: Scene, note: str
) -> None:
    """Also where an administrator had cordoned that node before."""
    scene.pod("app-1", "n2")
    files.see(scene)
    start("n1", "n2", "n3", drift="fail")
    cordoned(scene, "n1")
    cordoned(scene, "n2", note=note)
    scene.lists["pods"] = [pod for pod in scene.lists["pods"] if pod["metadata"]["name"] != "app-1"]
    scene.pod("app-2", "n4")
    files.see(scene, EVENING)
    again = start("n1", "n2", "n3", drift="fail")
    assert "error" not in again, again["error"]
    assert (again["resumed"], [line for line in again["lines"] if "it was:" in line]) == (True, [])


def test_who_goes_back_to_a_node_that_it_has_yet_to_leave_has_not_left_the_other_one(
    start: Any, files: Files, scene: Scene
) -> None:
    """Though both nodes are taken, of which somebody has uncordoned the second one."""
    for name in ("n3", "n4"):
        cordoned(scene, name, "somebody")
    files.see(scene)
    start("n1", "n2", drift="fail")
    assert [entry.target for entry in planned(files).actions if entry.object.name == "web"] == ["n2", "n1"]
    for name in ("n1", "n2"):
        cordoned(scene, name)
    scene.lists["nodes"][1]["spec"]["unschedulable"] = False
    files.see(scene, EVENING)
    again = start("n1", "n2", drift="fail")
    assert "error" not in again, again["error"]
    assert (again["resumed"], [line for line in again["lines"] if "it was:" in line]) == (True, [])


@pytest.mark.parametrize(("batch", "names"), [("1", "n1 n3 n2 n4"), ("2", "n1 n2 n4 n3")])
def test_in_another_order_it_is_another_plan(start: Any, files: Files, scene: Scene, batch: str, names: str) -> None:
    start("n1", "n2", "n3", "n4", batch=batch)
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = start(*names.split(), batch=batch)
    assert again["lines"][0] == ANEW % "its nodes are in another order"


def test_who_is_back_where_a_failed_batch_before_has_sent_it_from_does_not_go_again(
    start: Any, files: Files, scene: Scene
) -> None:
    """n1 of that batch is done, n3 is not."""
    cordoned(scene, "n4", "somebody")
    files.see(scene)
    start("n1", "n3", "n2", batch=2)
    assert [entry.source for entry in planned(files).actions if entry.object.name == "web"] == ["n1", "n2"]
    done(scene, "n1")
    for name in ("n2", "n3"):
        cordoned(scene, name)
    files.see(scene, EVENING)
    rest = what_is_left(planned(files), from_plain(scene.lists), ["n1"])
    assert "n2" not in [entry.source for entry in rest.actions if entry.object.name == "web"]


@pytest.mark.parametrize("taken", [[], ["n3"]])
def test_a_batch_that_is_partly_done_is_in_its_order(start: Any, files: Files, scene: Scene, taken: list[str]) -> None:
    """n3 comes before n2, as it was taken when the plan was made; also where its Node was made anew since."""
    cordoned(scene, "n3")
    files.see(scene)
    first = start("n1", "n2", "n3", "n4", batch=2)["batches"]
    assert first == [["n1", "n3"], ["n2", "n4"]]
    scene.lists["nodes"][2]["metadata"]["annotations"] = {}
    for name in taken:
        cordoned(scene, name)
    done(scene, "n1")
    files.see(scene, EVENING)
    again = start("n1", "n2", "n3", "n4", batch=2)
    assert (again["resumed"], again["lines"][0]) == (True, GOES_ON)


def test_a_share_is_one_of_all_nodes_of_the_run(start: Any, files: Files, scene: Scene) -> None:
    first = start("n1", "n2", "n3", "n4", batch="50%")["batches"]
    done(scene, "n1")
    cordoned(scene, "n2")
    files.see(scene, EVENING)
    again = start("n2", "n3", "n4", batch="50%")
    assert (again["resumed"], again["batches"]) == (True, [["n2"], *first[1:]])


@pytest.mark.parametrize(
    ("names", "rules"),
    [
        (["n1", "n2", "n3", "n4"], {"batch_constraints": {"last": ["n1"]}}),
        (["n1", "n2", "n3", "n4"], {"batch_constraints": {"together": "half"}}),
        (["n1", "n3", "n2", "n4"], {"batch_constraints": {"apart": ["half"]}, "batch": 2}),
    ],
    ids=["last", "together", "apart"],
)
def test_an_order_that_rules_have_changed_is_the_same(
    start: Any, files: Files, scene: Scene, names: list[str], rules: dict[str, Any]
) -> None:
    first = start(*names, **rules)["batches"]
    assert [name for batch in first for name in batch] != names
    cordoned(scene, first[0][0])
    files.see(scene, EVENING)
    again = start(*names, **rules)
    assert (again["resumed"], again["lines"][0], again["batches"]) == (True, GOES_ON, first)


def test_where_the_order_is_free_that_of_the_names_does_not_matter(start: Any, files: Files, scene: Scene) -> None:
    scene.vm("cache", "n1")
    files.see(scene)
    assert start("n1", "n2", order="free")["batches"] == [["n2"], ["n1"]]
    cordoned(scene, "n2")
    files.see(scene, EVENING)
    again = start("n2", "n1", order="free")
    assert (again["resumed"], again["batches"]) == (True, [["n2"], ["n1"]])


def test_a_new_plan_begins_with_what_is_out_of_service(start: Any, files: Files, scene: Scene) -> None:
    """n1 would not be the first one, as there is more on it, nor as it is named last."""
    scene.vm("cache", "n1")
    files.see(scene)
    start("n1", "n2", order="free")
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = start("n3", "n2", "n1", order="free")
    assert again["lines"][0] == ANEW % "it is for other nodes"
    assert again["batches"][0] == ["n1"]


def test_in_the_order_that_is_given_a_new_plan_begins_with_it_too_and_is_gone_on_by(
    start: Any, files: Files, scene: Scene
) -> None:
    """A second node would be out of service beside one that was left half way."""
    start("n2", "n1")
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = start("n3", "n2", "n1")
    assert (again["lines"][0], again["batches"]) == (ANEW % "it is for other nodes", [["n1"], ["n3"], ["n2"]])
    assert start("n3", "n2", "n1")["resumed"]

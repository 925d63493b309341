# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is started again goes on by the plan that the cluster keeps, if that is one for the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, sha256
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce, mended
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from testbed.pki import Authority
from unit.plugins.module_utils._planner.scene import HOST, Scene, node
from unit.plugins.modules.test_maintenance_plan import EVENING, FIXED, LABEL, MENDED, NOON, RIGHT, Files
from unit.plugins.support.fake_api import refusal
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CONFIG_MAPS, RunApi, running

GOES_ON = f"Run kernel goes on by the plan of {NOON}."
ANEW = f"Run kernel does not go on by the plan of {NOON}, as %s. This is another one."


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    """Invocation a1 holds the run."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.hold_run("a1", seconds=10**9)
        yield fake


@pytest.fixture
def store(api: RunApi, connection: dict[str, Any]) -> RunStore:
    return RunStore(connect_by(connection, 5), "kernel", "medik8s-leases")


@pytest.fixture
def scene() -> Scene:
    """Nodes to maintain with a VM each, and two that could take them."""
    scene = Scene(*map(node, ("n1", "n2", "n3", "n4")))
    scene.vm("web", "n1")
    scene.vm("db", "n2")
    return scene


@pytest.fixture
def files(scene: Scene, tmp_path: Path) -> Files:
    return Files(tmp_path).see(scene)


@pytest.fixture
def start(run_module: ModuleRunner, connection: dict[str, Any], files: Files) -> Any:
    """The run, as whoever starts it calls it; each time on a controller that has no plan. None leaves an option out."""

    def make(**changes: Any) -> Any:
        files.plan.unlink(missing_ok=True)
        run = {"run": "kernel", "resume": True, "invocation": "a1"}
        asked = {**files.given, **run, "nodes": ["n1", "n2"]}
        given = {**connection, **asked, **changes}
        return run_module(main, **{name: value for name, value in given.items() if value is not None})

    return make


def moved(scene: Scene, name: str, target: str) -> None:
    for vmi in scene.lists["vmis"]:
        if vmi["metadata"]["name"] == name:
            vmi["status"]["nodeName"] = target
    for pod in scene.lists["pods"]:
        if pod["metadata"]["name"] == f"virt-launcher-{name}":
            pod["spec"]["nodeName"] = target


def cordoned(scene: Scene, name: str, owner: str = "kernel", note: str = CORDON_NOTE) -> None:
    for item in scene.lists["nodes"]:
        if item["metadata"]["name"] == name:
            item["metadata"]["annotations"] = {note: Mark(owner, NOON).to_text()}
            item["spec"]["unschedulable"] = True


def done(scene: Scene, name: str) -> None:
    for item in scene.lists["nodes"]:
        if item["metadata"]["name"] == name:
            item["metadata"]["labels"][LABEL] = "kernel"


def targets(plan: Plan) -> dict[str, str | None]:
    return {action.object.name: action.target for action in plan.actions if action.kind is ActionKind.MIGRATE}


def planned(files: Files) -> Plan:
    return decode(files.plan.read_bytes())


def test_a_plan_is_kept_and_gone_on_by(start: Any, files: Files, scene: Scene, store: RunStore) -> None:
    """What would be planned anew goes elsewhere: a VM that has come since makes another node the better one."""
    assert start()["resumed"] is False
    assert store.names() == ["plan"]
    first = targets(planned(files))
    moved(scene, "web", first["web"] or "")
    done(scene, "n1")
    scene.vm("late", first["db"] or "", "4Gi")
    files.see(scene, EVENING)
    start(resume=False, invocation=None)
    assert targets(planned(files)) != first

    again = start()
    assert (again["resumed"], again["batches"], again["done"]) == (True, [["n2"]], ["n1"])
    assert again["lines"][:3] == [GOES_ON, RIGHT, "Run kernel: 1 of 2 nodes to maintain, 1 at a time."]
    assert targets(planned(files))["db"] == first["db"]


def test_what_has_left_is_told_no_more(start: Any, files: Files, scene: Scene) -> None:
    start(nodes=["n1", "n2"], batch=2)
    moved(scene, "web", targets(planned(files))["web"] or "")
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = start(batch=2)
    assert again["lines"][0] == GOES_ON
    assert not any("shop/web" in line or "Mended" in line for line in again["lines"])
    assert set(targets(planned(files))) == {"db"}


def test_what_is_right_no_more_is_mended(start: Any, files: Files, scene: Scene, store: RunStore) -> None:
    start()
    target = targets(planned(files))["web"]
    cordoned(scene, "n1")
    cordoned(scene, target or "", "somebody")
    files.see(scene, EVENING)
    again = start()
    other = targets(planned(files))["web"]
    assert other != target
    why = f"the scheduler says of {target}: node(s) were unschedulable"
    line = f"Mended: VM shop/web goes to {other}, as {why}; it was: goes to {target}"
    assert again["lines"][:3] == [GOES_ON, MENDED, line]
    found = store.get("plan")
    assert found
    assert found.generation == 2


def test_what_is_right_no_more_in_a_later_batch_is_refused_or_mended_before_that(
    start: Any, files: Files, scene: Scene, store: RunStore
) -> None:
    begun, kept = start(), store.get("plan")
    cordoned(scene, "n1")
    scene.vm("late", "n2")
    files.see(scene, EVENING)
    (problem,) = start(drift="fail")["error"]["problems"]
    assert store.get("plan") == kept
    again = start()
    assert (again["lines"][2], again["origin"]) == (f"Mended: {problem}", begun["sha256"])


def test_a_run_that_has_taken_no_node_is_planned_anew(start: Any, files: Files, scene: Scene) -> None:
    start()
    files.see(scene, EVENING)
    again = start()
    assert (again["resumed"], planned(files).snapshot.taken) == (False, EVENING)
    assert again["lines"][0].startswith("Run kernel: 2 of 2 nodes")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nodes": ["n1", "n2", "n3"]}, "it is for other nodes"),
        ({"batch": 2}, "it was asked for with other wishes for its batches"),
        ({"order": "free"}, "it was asked for with other wishes for its batches"),
        ({"batches": [["n1", "n2"]], "nodes": None}, "its batches are others"),
        ({"avoid": ["n3"], "force": True}, "it was asked for with other avoid, allowances for evictions"),
    ],
)
def test_a_plan_for_something_else_is_not_gone_on_by(
    start: Any, files: Files, scene: Scene, changes: dict[str, Any], why: str
) -> None:
    start()
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = start(**changes)
    assert (again["resumed"], again["lines"][0]) == (False, ANEW % why)
    assert planned(files).snapshot.taken == EVENING


def test_the_same_batches_in_other_words_are_the_same(start: Any, files: Files, scene: Scene) -> None:
    start()
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    assert start(nodes=None, batches=[["n1"], ["n2"]])["resumed"]


def test_a_plan_of_another_cluster_is_not_gone_on_by(start: Any, files: Files, scene: Scene) -> None:
    start()
    cordoned(scene, "n1")
    files.see(scene, EVENING, uid="uid-of-another")
    assert start()["lines"][0] == ANEW % "it is for another cluster"


def test_a_plan_against_which_something_stands_gives_way_to_one_that_can_be(
    start: Any, files: Files, scene: Scene
) -> None:
    """As with infeasible plans that are only reported."""
    scene.vm("fixed", "n2", status=FIXED)
    files.see(scene)
    assert start()["verdict"] == "partial"
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    assert start()["resumed"], "a new one would not be better"
    del scene.lists["vmis"][-1], scene.lists["pods"][-1]
    files.see(scene, EVENING)
    again = start()
    assert (again["verdict"], again["resumed"]) == ("feasible", False)
    assert again["lines"][0] == ANEW % "something stands against it by now"


def test_what_is_no_plan_is_passed_over(start: Any, files: Files, scene: Scene, store: RunStore, api: RunApi) -> None:
    store.put("plan", b"{}")
    again = start()
    assert again["resumed"] is False
    assert again["lines"][0].startswith("What the cluster keeps as the plan of run kernel is passed over: ")
    (item,) = api.config_maps()
    item["binaryData"]["content"] = "rubbish"
    assert "passed over: its content is not what its checksum says" in start()["lines"][0]


def test_check_mode_goes_on_by_it_and_keeps_nothing(start: Any, files: Files, scene: Scene, api: RunApi) -> None:
    start(check=True)
    assert api.config_maps() == []
    start()
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    writes = len(api.writes())
    assert start(check=True, diff=True)["lines"][0] == GOES_ON
    assert start(invocation=None)["resumed"]
    assert len(api.writes()) == writes


def test_only_who_holds_the_run_keeps_its_plan(start: Any, api: RunApi, files: Files) -> None:
    api.hold_run("b2", seconds=10**9)
    assert start()["error"]["reason"] == "RunLost"
    assert (api.config_maps(), files.plan.exists()) == ([], False)
    api.faults[CONFIG_MAPS] = lambda _request: refusal(403, "Forbidden", "configmaps is forbidden")
    api.hold_run("a1", seconds=10**9)
    assert "configmaps is forbidden" in start()["msg"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": ""}, "resume is given, but no run"),
        ({"run": "", "resume": False}, "invocation is given, but no run"),
        ({"run": "new kernel"}, "run is 'new kernel', but it becomes the value of a label"),
        ({"lease_namespace": "a/b"}, "lease_namespace is 'a/b'"),
    ],
)
def test_what_cannot_be_meant_is_refused(start: Any, changes: dict[str, Any], words: str) -> None:
    assert words in start(**changes)["msg"]


class Approval:
    """A plan that was approved at noon, and starts of the run with it."""

    def __init__(self, start: Any, files: Files) -> None:
        start(resume=False, invocation=None)
        self.path = files.plan.rename(files.plan.with_name("approved.json"))
        self.content = self.path.read_bytes()
        self.start = partial(start, nodes=None, plan=str(self.path), sha256=sha256(decode(self.content)))


@pytest.fixture
def approval(start: Any, files: Files) -> Approval:
    return Approval(start, files)


def test_of_an_approved_plan_it_goes_on_by_what_is_left(
    approval: Approval, files: Files, scene: Scene, store: RunStore
) -> None:
    begun = approval.start()
    assert (begun["plan_path"], begun["resumed"]) == (str(approval.path), False)
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    same = approval.start()
    assert (same["plan_path"], same["resumed"], same["lines"][0]) == (str(approval.path), True, GOES_ON)
    _mend(store, "n1", "n4" if targets(decode(approval.content))["web"] == "n3" else "n3")
    again = approval.start()
    assert (again["plan_path"], again["resumed"], again["changed"]) == (str(files.plan), True, True)
    assert targets(planned(files))["web"] != targets(decode(approval.content))["web"]
    assert again["sha256"] == sha256(planned(files))
    assert approval.path.read_bytes() == approval.content


def test_an_approved_plan_is_mended_before_its_run_begins(
    approval: Approval, files: Files, scene: Scene, store: RunStore
) -> None:
    """What the run goes by then is another file, each time made anew of the approved one."""
    approved = sha256(decode(approval.content))
    scene.vm("late", "n2")
    files.see(scene, EVENING)
    for _time in range(2):
        begun = approval.start()
        assert (begun["plan_path"], begun["resumed"], begun["lines"][0]) == (str(files.plan), False, MENDED)
        kept = store.get("plan")
        assert kept
        assert PlanInForce.decoded(kept.content) == PlanInForce(planned(files), approved)
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    again = approval.start()
    assert (again["resumed"], again["lines"][:2], again["origin"]) == (True, [GOES_ON, RIGHT], approved)


def test_an_approved_plan_that_is_gone_on_by_may_name_a_node_that_has_gone_since(
    approval: Approval, files: Files, scene: Scene, store: RunStore
) -> None:
    """Drains have mended it, or will."""
    approval.start()
    target = targets(decode(approval.content))["web"]
    cordoned(scene, "n1")
    scene.lists["nodes"] = [item for item in scene.lists["nodes"] if item["metadata"]["name"] != target]
    assert approval.start(snapshot=str(files.see(scene, EVENING).snapshot))["resumed"]


def _mend(store: RunStore, name: str, target: str) -> None:
    """As a drain does."""
    kept = store.get("plan")
    assert kept
    plan = PlanInForce.decoded(kept.content).plan
    actions = tuple(
        replace(entry, target=target, selector={HOST: target})
        if entry.node == name and entry.kind is ActionKind.MIGRATE
        else entry
        for entry in plan.actions
    )
    changed = mended(kept.content, replace(plan, actions=actions), name)
    assert changed
    store.put("plan", changed)


def test_another_plan_that_is_approved_counts(approval: Approval, start: Any, files: Files, scene: Scene) -> None:
    start(avoid=["n3"])
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    taken = approval.start()
    assert (taken["resumed"], taken["plan_path"]) == (False, str(approval.path))
    assert taken["lines"][0] == ANEW % "another one was approved"
    assert approval.start()["lines"][0] == GOES_ON


def test_an_approved_plan_of_other_nodes_is_not_kept(approval: Approval, store: RunStore) -> None:
    words = "nodes stands for n3, which the plan does not maintain; nodes does not stand for n2, which the plan"
    assert words in approval.start(nodes=["n1", "n3"])["msg"]
    assert store.names() == []


def test_a_plan_that_was_made_twice_is_the_one_of_its_file(start: Any, files: Files, scene: Scene) -> None:
    """The file stays as it was made first, and whoever gives it goes on by it."""
    path = str(files.plan.with_name("approved.json"))
    start(path=path)
    files.see(scene, EVENING)
    assert not start(path=path)["changed"]
    cordoned(scene, "n1")
    files.see(scene, EVENING)
    taken = start(nodes=None, plan=path)
    assert (taken["resumed"], taken["lines"][0]) == (True, GOES_ON)


def test_the_approved_file_is_never_written(approval: Approval, files: Files) -> None:
    assert "which stays as it was approved" in approval.start(path=str(approval.path))["msg"]
    assert "no path for what may be left of it" in approval.start(path=None)["msg"]

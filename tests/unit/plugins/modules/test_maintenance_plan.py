# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan is made once, written privately, told and compared."""

from __future__ import annotations

import json
import platform
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import write
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import arrays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import document, encode_all
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import policies
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.support.modules import ModuleRunner

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/schemas/maintenance-plan.json").read_text())
LABEL = "virtops.kubevirt/maintained"
NOON, EVENING = "2026-01-01T12:00:00Z", "2026-01-01T20:00:00Z"
RIGHT = f"The plan of {NOON} is right for the cluster as it is now."
MENDED = f"The plan of {NOON} is not right for the cluster as it is now, so that a mended one is in force:"
FIXED: dict[str, Any] = {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostModel"}]}
BUSY: dict[str, Any] = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}


class Files:
    """The snapshot and the plan of a test."""

    def __init__(self, folder: Path) -> None:
        self.snapshot, self.plan = folder / "cluster.json", folder / "plan.json"

    def see(self, scene: Scene, taken: str = NOON, uid: str = "uid-of-cluster", kubevirt: str = "v1.8.4") -> Files:
        lists = {name: encode_all(items) for name, items in scene.lists.items()}
        write(self.snapshot, document(lists, cluster=Cluster(uid, "v1.36.3", kubevirt), taken_at=taken))
        return self

    @property
    def actions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.plan.read_text())["actions"]
        return found

    @property
    def given(self) -> dict[str, str]:
        return {"snapshot": str(self.snapshot), "path": str(self.plan)}


def taken(make: Any, files: Files, **changes: Any) -> Any:
    """The plan, as one that was approved."""
    return make(**{"snapshot": str(files.snapshot), "run": "patch", "plan": str(files.plan), **changes})


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


def test_a_plan_is_written_and_told(make: Any, files: Files) -> None:
    result = make(**files.given, run="patch", nodes=["n1", "n2", "n3"], batch=2)
    assert (result["changed"], result["verdict"], result["plan_path"]) == (True, "feasible", str(files.plan))
    assert result["batches"] == [["n1", "n2"], ["n3"]]
    lines = [" ".join(line.split()) for line in result["lines"]]
    assert lines[:3] == [
        "Run patch: 3 of 3 nodes to maintain, 2 at a time.",
        "Nothing stands against it.",
        "batch migrations time reserve nodes",
    ]
    assert lines[3].startswith("1 1 12 s ")
    assert lines[3].endswith(" GiB n1, n2")
    details = lines.index("1. n1, n2")
    assert lines[details + 1 : details + 3] == [
        "migrations take about 12 s if the guests are idle",
        "VM shop/web -> n3",
    ]
    assert "2. n3" in lines[details:]
    assert (result["blocked"], result["differences"], result["done"]) == ([], [], [])
    assert result["options"] == {"policies": [], "force": False, "delete_emptydir_data": False}
    assert stat.S_IMODE(files.plan.stat().st_mode) == 0o600
    jsonschema.validate(json.loads(files.plan.read_text()), SCHEMA)
    (move,) = [entry for entry in files.actions if entry["kind"] == "migrate"][:1]
    assert (move["object"]["name"], move["to"]) == ("web", "n3")


@pytest.mark.parametrize("kubevirt", ["v1.5.3", "v0.59.2", "1.5.0-150600.5.9"])
def test_a_kubevirt_that_cannot_pin_is_refused(make: Any, files: Files, scene: Scene, kubevirt: str) -> None:
    result = make(**files.see(scene, kubevirt=kubevirt).given, run="patch", nodes=["n1"])
    assert result["msg"] == (
        f"Cannot plan the maintenance: the cluster has KubeVirt {kubevirt}, which cannot pin a migration to a node; "
        "KubeVirt 1.6 or newer is needed. Upgrade KubeVirt first; nothing was touched."
    )
    assert not files.plan.exists()


@pytest.mark.parametrize("kubevirt", ["v1.6.0", "v1.10.1", "v4.19.3", "sha256:5e1f", ""])
def test_a_kubevirt_that_may_be_able_to_is_not(make: Any, files: Files, scene: Scene, kubevirt: str) -> None:
    assert make(**files.see(scene, kubevirt=kubevirt).given, run="patch", nodes=["n1"])["changed"]


@pytest.mark.parametrize(
    ("batch", "sizes"), [("25%", [1, 1, 1]), ("67%", [2, 1]), (" 100%", [3]), ("3", [3]), ("2", [2, 1])]
)
def test_a_batch_may_be_a_share(make: Any, files: Files, batch: str, sizes: list[int]) -> None:
    result = make(**files.given, run="patch", nodes=["n1", "n2", "n3"], batch=batch)
    assert [len(nodes) for nodes in result["batches"]] == sizes


def test_the_order_is_chosen_as_it_is_wanted(make: Any, files: Files) -> None:
    """n1 alone has a VM, which goes where nobody has to move it again."""
    given = {**files.given, "run": "patch", "nodes": ["n1", "n2", "n3"], "order": "free"}
    assert make(**given)["batches"] == [["n2"], ["n3"], ["n1"]]
    assert make(**given, batch="auto")["batches"] == [["n2", "n3"], ["n1"]]
    assert make(**given, batch_constraints={"first": ["n1"]})["batches"][0] == ["n1"]
    assert make(**given, batch=2, batch_constraints={"apart": ["kubernetes.io/arch"]})["totals"]["migrations"] == 1
    refused = make(**given, batch_constraints={"last": ["n9"]})
    assert "there is no node n9" in refused["msg"]


def test_a_batch_is_never_larger_than_the_run(make: Any, files: Files, scene: Scene) -> None:
    """Of which a node that is done is still a part, whether it is named or not."""
    given = {**files.given, "run": "patch", "nodes": ["n2", "n3"], "batch": 3}
    assert make(**given)["error"]["problems"] == ["batch is 3, but the run has 2 nodes"]
    assert not files.plan.exists()
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    files.see(scene)
    assert make(**given)["batches"] == [["n2", "n3"]]
    assert make(**{**given, "nodes": ["n1", "n2", "n3"]})["batches"] == [["n2", "n3"]]


def test_texts_are_understood_and_refused_all_at_once(make: Any, files: Files) -> None:
    given = {**files.given, "run": "patch", "nodes": "n1, n2\nn3", "batch": 2, "force": "", "avoid": ""}
    rule = {"selector": {"app": "web"}, "policy": "stop"}
    result = make(**given, policies=json.dumps([rule]), delete_emptydir_data="yes")
    assert result["batches"] == [["n1", "n2"], ["n3"]]
    assert result["options"]["policies"] == [rule]
    result = make(**given, policies="stop", delete_emptydir_data="perhaps")
    assert [problem.split(",")[0] for problem in result["error"]["problems"]] == [
        'policies is "stop"',
        'delete_emptydir_data is "perhaps"',
    ]


def test_the_same_again_keeps_the_file_and_its_digest(make: Any, files: Files, scene: Scene) -> None:
    """What was approved stays approved, although the cluster was read anew."""
    first = make(**files.given, run="patch", nodes=["n1"])
    before = files.plan.stat().st_mtime_ns
    again = make(**files.see(scene, EVENING).given, run="patch", nodes=["n1"])
    assert (again["changed"], again["sha256"]) == (False, first["sha256"])
    assert files.plan.stat().st_mtime_ns == before
    files.plan.chmod(0o644)
    mended = make(**files.given, run="patch", nodes=["n1"])
    assert (mended["changed"], stat.S_IMODE(files.plan.stat().st_mode)) == (True, 0o600)


def test_check_mode_writes_nothing_and_tells_all(make: Any, files: Files) -> None:
    told = make(**files.given, run="patch", nodes=["n1"], check=True)
    assert not files.plan.exists()
    written = make(**files.given, run="patch", nodes=["n1"])
    # Of a file that a result names by `path` Ansible tells the attributes as well.
    assert {name: written[name] for name in told} == told
    assert (told["path"], written["mode"]) == (str(files.plan), "0600")


def test_what_is_different_is_said_and_shown(make: Any, files: Files, scene: Scene) -> None:
    make(**files.given, run="patch", nodes=["n1"], avoid=["n2"])
    result = make(**files.given, run="patch", nodes=["n1"], avoid=["n3"], diff=True, check=True)
    assert result["changed"] is True
    assert result["differences"] == ["VM shop/web goes to n2; it was: goes to n3", "it was asked for with other avoid"]
    assert "VM  shop/web -> n3\n" in result["diff"]["before"]
    assert "VM  shop/web -> n2\n" in result["diff"]["after"]

    elsewhere = str(files.plan.with_name("evening.json"))
    other = {**files.given, "path": elsewhere, "compare": str(files.plan)}
    assert make(**other, run="patch", nodes=["n1"], avoid=["n3"])["differences"] == result["differences"]
    missing = make(**{**other, "compare": str(files.plan) + ".not"}, run="patch", nodes=["n1"])
    assert "Cannot read the plan" in missing["msg"]


def test_of_nodes_that_are_done_nothing_is_different(make: Any, files: Files, scene: Scene) -> None:
    scene.vm("db", "n2")
    asked: dict[str, Any] = {"run": "patch", "nodes": ["n1", "n2"], "avoid": ["n1"]}
    make(**files.see(scene).given, **asked)
    scene.lists["nodes"][0]["metadata"]["labels"][LABEL] = "patch"
    files.see(scene, EVENING)
    evening = {**files.given, "path": f"{files.plan}.evening", "compare": str(files.plan)}
    assert make(**evening, **asked)["differences"] == []


def test_a_plan_of_another_cluster_is_called_one(make: Any, files: Files, scene: Scene) -> None:
    make(**files.given, run="patch", nodes=["n1"])
    files.see(scene, uid="uid-of-another")
    other = ["it is for cluster uid-of-another; the one before is for cluster uid-of-cluster"]
    evening = {**files.given, "path": f"{files.plan}.evening", "compare": str(files.plan)}
    assert make(**evening, run="patch", nodes=["n1"])["differences"] == other
    assert make(**files.given, run="patch", nodes=["n1"])["differences"] == other


def test_a_plan_is_not_written_over_its_snapshot(make: Any, files: Files, tmp_path: Path) -> None:
    before = files.snapshot.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(files.snapshot)
    handle = {"snapshot_path": str(files.snapshot)}
    for snapshot, path in ((str(files.snapshot), files.snapshot), (handle, files.snapshot), (handle, link)):
        refused = make(snapshot=snapshot, path=str(path), nodes=["n1"])
        assert "path is the file of snapshot, which would be lost. Nothing was written." in refused["msg"]
    assert files.snapshot.read_bytes() == before


def test_beside_what_is_left_of_a_plan_nothing_else_is_written_over(make: Any, files: Files, tmp_path: Path) -> None:
    make(**files.given, run="patch", nodes=["n1"])
    notes = tmp_path / "rest.txt"
    notes.write_text("my own")
    refused = make(
        snapshot=str(files.snapshot),
        plan=str(files.plan),
        path=str(tmp_path / "rest.json"),
        run="patch",
        resume=True,
        invocation="a1",
    )
    assert ("this file is of something else" in refused["msg"], notes.read_text()) == (True, "my own")


@pytest.mark.parametrize("option", ["plan", "snapshot", "compare"])
def test_what_is_written_for_people_is_not_written_over_what_is_given(
    make: Any, files: Files, tmp_path: Path, option: str
) -> None:
    make(**files.given, run="patch", nodes=["n1"])
    given = (files.snapshot if option == "snapshot" else files.plan).rename(tmp_path / "mine.txt")
    before = given.read_bytes()
    asked: dict[str, Any] = {"snapshot": str(files.snapshot), "nodes": ["n1"], option: str(given)}
    if option == "plan":
        asked |= {"nodes": None, "run": "patch", "resume": True, "invocation": "a1"}
    refused = make(**asked, path=str(tmp_path / "mine.json"))
    assert f"mine.txt, which is written beside path for people, is the file of {option}" in refused["msg"]
    assert given.read_bytes() == before


def test_a_label_that_no_node_has_is_warned_of(make: Any, files: Files, scene: Scene) -> None:
    for item in scene.lists["nodes"][:2]:
        item["metadata"]["labels"]["rack"] = "1"
    wishes = {"apart": ["rack", "topology.kubernetes.io/zon"], "together": "hall"}
    given: dict[str, Any] = {**files.see(scene).given, "nodes": ["n1", "n2"], "batch": 2}
    assert "warnings" not in make(**given, batch_constraints={"apart": ["rack"]})
    found = make(**given, batch_constraints=wishes, option_prefix="plan_maintenance_")
    assert len(found["warnings"]) == 2
    for name, key in (("apart", "topology.kubernetes.io/zon"), ("together", "hall")):
        words = f"plan_maintenance_batch_constraints.{name} has label {key}, which no node of the run has: correct it"
        assert words in str(found["warnings"])
    assert found["batches"] == [["n1"], ["n2"]]


def test_nodes_that_the_run_is_done_with_are_left_out(make: Any, files: Files, scene: Scene) -> None:
    scene.lists["nodes"][1]["metadata"]["labels"][LABEL] = "patch"
    files.see(scene)
    result = make(**files.given, run="patch", nodes=["n1", "n2", "n3"], batch=2)
    assert (result["batches"], result["done"]) == ([["n1", "n3"]], ["n2"])
    assert result["lines"][:2] == ["Run patch: 2 of 3 nodes to maintain, 2 at a time.", "Done already: n2"]
    assert make(**files.given, run="patch", batches=[["n2"], ["n1"]])["batches"] == [["n1"]]
    assert make(**files.given, run="other", nodes=["n1", "n2"])["batches"] == [["n1"], ["n2"]]
    assert make(**files.given, run="patch", nodes=["n2"])["lines"][0] == "Run patch: 0 of 1 nodes to maintain."


def test_what_cannot_leave_is_told_first_if_it_lasts(make: Any, files: Files, scene: Scene) -> None:
    scene.vm("busy", "n1", status=BUSY)
    scene.vm("fixed", "n2", status=FIXED)
    result = make(**files.see(scene).given, run="patch", nodes=["n1", "n2"])
    assert result["verdict"] == "partial"
    assert [(entry["name"], entry["node"], entry["passing"]) for entry in result["blocked"]] == [
        ("fixed", "n2", False),
        ("busy", "n1", True),
    ]
    assert result["blocked"][0]["message"].startswith("VM shop/fixed on n2 cannot leave: ")
    assert result["lines"][1] == "As things are, 1 VM cannot leave, and 1 VM has to be waited for:"
    assert "2. n2: cannot be emptied now" in result["lines"]
    policy = [{"expression": "metadata.name == 'fixed'", "policy": "stop"}]
    told = make(**files.given, run="patch", nodes=["n1", "n2"], policies=policy)
    assert (told["verdict"], told["options"]["policies"]) == ("feasible", policy)
    assert "     VM  shop/fixed is off until the node is back" in told["lines"]


def test_a_vm_of_a_replica_set_that_is_stopped_and_what_becomes_of_it(make: Any, files: Files, scene: Scene) -> None:
    """Its set makes another one at once: where a node fits that is no stop, and is not called one."""
    scene.vm("fixed", "n1", status=FIXED, owner="VirtualMachineInstanceReplicaSet")
    stop = [{"selector": {"app": "fixed"}, "policy": "stop"}]
    result = make(**files.see(scene).given, run="patch", nodes=["n1"], policies=stop)
    first, line = [number for number, line in enumerate(result["lines"]) if "shop/fixed" in line]
    assert result["lines"][first] == "1 VM is shut down, and starts anew elsewhere: shop/fixed"
    assert "is off until" not in "".join(result["lines"])
    assert "VM  shop/fixed starts anew on n" in result["lines"][line]
    assert "its replica set makes another one at once, which starts on n" in result["lines"][line + 1]


def test_all_that_is_wrong_with_the_names_is_said_at_once(make: Any, files: Files) -> None:
    result = make(
        **files.given, batches=[["n1", "n22"], [], ["n1", 5]], avoid=["x"], targets={"shop/wep": "n2"}, run="patch"
    )
    assert result["error"]["problems"] == [
        "batch 2 names no node",
        "node n1 is named twice",
        "batch 3 has 5, which is no name",
        "there is no node n22 (do you mean n2?)",
        "there is no node x",
        "there is no VirtualMachineInstance shop/wep (do you mean shop/web?)",
    ]
    assert not files.plan.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch": 0}, "batch is 0"),
        ({"batch": "0%"}, "batch is 0%"),
        ({"batch": "101%"}, "batch is 101%, but a run has no more than all of its nodes. Give a number of nodes"),
        ({"batch": "2"}, "batch is 2, but the run has 1 node. Give a number of nodes"),
        ({"batch": "a few"}, "Give a number of nodes such as 2, a share of them such as 25%, or auto."),
        ({"policies": [{"policy": "stop", "selector": {"app": 5}}]}, "policies[0] has as selector no labels"),
        ({"policies": [{"policy": "stop", "expression": "a ||"}]}, "policies[0] has the malformed expression"),
        ({"targets": {"shop/web": "n1"}}, "shop/web is to go to n1, which is drained itself"),
        ({"path": "/none/plan.json"}, "Create its folder first"),
        ({"nodes": []}, "nodes names no node. Correct the names"),
        ({"nodes": None, "batches": []}, "batches names no node. Correct the names"),
        (
            {"nodes": ["n1", "n2"], "batch_constraints": {"first": ["n3"], "last": ["n2"]}},
            "batch_constraints.first has n3, which is not to be maintained. Correct",
        ),
        ({"batch_constraints": {"first": ["n1"], "last": ["n1"]}}, "node n1 is to be first and last. Correct"),
        ({"nodes": None}, "one of the following is required: batches, nodes, plan"),
        ({"snapshot": "/none/cluster.json"}, "Cannot read the snapshot"),
        ({"nodes": None, "plan": ""}, "plan is empty; leave it out, or say what it is to be. Nothing was written."),
        ({"compare": " "}, "compare is empty; leave it out"),
        ({"path": ""}, "path is empty; leave it out"),
        ({"run": "new kernel"}, "run is 'new kernel', but it becomes the value of a label"),
        ({"sha256": "a"}, "missing parameter(s) required by 'sha256': plan"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, files: Files, changes: dict[str, Any], words: str) -> None:
    given = {**files.given, "nodes": ["n1"], **changes}
    assert words in make(**{name: value for name, value in given.items() if value is not None})["msg"]


def test_a_policy_that_matches_nobody_is_warned_of(make: Any, files: Files, scene: Scene) -> None:
    rules = [{"selector": {"app": "bd"}, "policy": "stop"}, {"policy": "fail"}]
    without = Scene(node("n1"))
    assert "warnings" not in make(**files.see(without).given, nodes=["n1"], policies=rules)
    (warning,) = make(**files.see(scene).given, nodes=["n1"], policies=rules)["warnings"]
    assert "policies[0] matches no virtual machine of the cluster: correct it, or leave it out." in str(warning)


def test_libraries_that_are_missing(make: Any, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as missing:
        missing.setattr(policies, "HAS_JMESPATH", False)
        told = make(**files.given, nodes=["n1"], policies=[{"policy": "stop", "expression": "a"}])
        assert f"(jmespath) on {platform.node()}'s Python {sys.executable}" in told["msg"]
    monkeypatch.setattr(arrays, "np", None)
    told = make(**files.given, nodes=["n1"])
    assert f"(numpy) on {platform.node()}'s Python {sys.executable}" in told["msg"]
    assert not files.plan.exists()

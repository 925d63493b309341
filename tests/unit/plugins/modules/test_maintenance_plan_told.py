# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan is told whole in a file beside it, and on the terminal by what decides; what is proposed there helps."""

from __future__ import annotations

import json
import stat
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from unit.plugins.module_utils._planner.scene import HOST, Scene, node
from unit.plugins.modules.test_maintenance_plan import BUSY, EVENING, FIXED, LABEL, Files, taken
from unit.plugins.support.modules import ModuleRunner

RUN: dict[str, Any] = {"run": "patch", "nodes": ["n1", "n2"]}


@pytest.fixture
def make(run_module: ModuleRunner) -> Any:
    return partial(run_module, main)


@pytest.fixture
def scene() -> Scene:
    """Three nodes, and on two of them something of each kind that cannot leave."""
    scene = Scene(*map(node, ("n1", "n2", "n3")))
    scene.vm("web", "n1")
    scene.vm("fixed", "n1", status=FIXED)
    scene.vm("replica", "n2", status=FIXED, owner="VirtualMachineInstanceReplicaSet")
    scene.vm("alone", "n2", status=FIXED, owner="")
    scene.vm("busy", "n2", status=BUSY)
    scene.pod("bare", "n1", owner="")
    scene.pod("scratch", "n1")["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    scene.pod("both", "n2", owner="")["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return scene


@pytest.fixture
def files(scene: Scene, tmp_path: Path) -> Files:
    return Files(tmp_path).see(scene)


def test_the_whole_plan_stands_beside_it(make: Any, files: Files, scene: Scene) -> None:
    first = make(**files.given, **RUN)
    text = files.plan.with_suffix(".txt")
    assert first["text_path"] == str(text)
    assert stat.S_IMODE(text.stat().st_mode) == 0o600
    content = text.read_text()
    assert content.startswith(f"The plan with the digest {first['sha256']}.\nRun patch: 2 of 2 nodes")
    assert "     pod shop/bare cannot leave: nothing would replace it; set force if it may go\n" in content
    before = text.stat().st_mtime_ns
    assert make(**files.see(scene, EVENING).given, **RUN)["changed"] is False
    assert text.stat().st_mtime_ns == before
    text.unlink()
    assert (make(**files.given, **RUN)["changed"], text.read_text()) == (False, content)


def test_a_sentence_says_what_the_verdict_is_and_what_to_do(make: Any, files: Files) -> None:
    result = make(**files.given, run="patch", nodes=["n3", "n1", "n2"])
    assert (result["verdict"], result["possible"]) == ("partial", ["n3"])
    assert result["message"] == (
        "Run patch cannot be carried out as things are, as n1, n2 cannot be emptied: clear what stands against it, or "
        "maintain only n3."
    )
    assert make(**files.given, **RUN)["message"] == (
        "Run patch cannot be carried out as things are, as n1, n2 cannot be emptied: clear what stands against it."
    )
    assert (
        make(**files.given, run="patch", nodes=["n3"])["message"] == "Run patch can be carried out: 1 node in 1 batch."
    )
    assert make(**files.given, nodes=["n3"])["message"] == "The plan can be carried out: 1 node in 1 batch."


def pinned(*names: str) -> dict[str, Any]:
    """To these nodes alone."""
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": list(names)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def told_possible(make: Any, files: Files, nodes: list[str], **options: Any) -> tuple[str, list[str]]:
    """The verdict and what could be done without the others, which is true where the rest is asked for in its order."""
    result = make(**files.given, run="patch", nodes=nodes, **options)
    if result["possible"]:
        left = [name for name in nodes if name in result["possible"]]
        assert make(**files.given, run="patch", nodes=left, **options)["verdict"] == "feasible"
    return result["verdict"], result["possible"]


def test_who_would_go_where_others_stay_is_not_possible_without_them(make: Any, files: Files) -> None:
    """In batches of the nodes that are left a has to be out of service together with c, to which its VM has to go."""
    scene = Scene(*map(node, "abcd"))
    scene.vm("bound", "b", status=FIXED)
    scene.vm("picky", "a", rules=pinned("a", "c"))
    files.see(scene)
    assert told_possible(make, files, list("abcd"), batch=2, order="given") == ("partial", ["c", "d"])
    assert told_possible(make, files, list("abcd"), batch=1, order="given") == ("partial", ["a", "c", "d"])


@pytest.mark.parametrize("order", ["given", "free"])
def test_who_needs_what_others_would_leave_is_not_possible_without_them(make: Any, files: Files, order: str) -> None:
    scene = Scene(*(node(name, memory="8Gi") for name in "bcx"))
    scene.vm("bound", "b", "128Mi", status=FIXED)
    scene.vm("large", "b", "6Gi", rules=pinned("b", "x"))
    scene.vm("other", "c", "6Gi", rules=pinned("b", "c"))
    files.see(scene)
    assert told_possible(make, files, ["b", "c"], batch=1, order=order) == ("partial", [])


def test_what_is_possible_is_so_in_the_order_of_the_task(make: Any, files: Files) -> None:
    """In the plan b comes last, as it may share no batch with a; without a it would come before c."""
    scene = Scene(*(node(name, memory="8Gi", half="ab"[name in "bd"]) for name in "abcd"), node("x", memory="8Gi"))
    scene.vm("bound", "a", "128Mi", status=FIXED)
    scene.vm("large", "b", "6Gi", rules=pinned("b", "c"))
    scene.vm("other", "c", "6Gi", rules=pinned("c", "x"))
    files.see(scene)
    options = {"batch": 2, "order": "given", "batch_constraints": {"together": "half"}}
    assert told_possible(make, files, list("abcd"), **options) == ("partial", ["c", "d"])


def test_where_the_rest_would_be_refused_none_of_it_is_possible(make: Any, files: Files) -> None:
    """Without b its nodes make other batches, in one of which the target is out of service beside the VM's node."""
    scene = Scene(*map(node, "abcde"))
    scene.vm("bound", "b", status=FIXED)
    scene.vm("web", "a")
    files.see(scene)
    options = {"batch": 2, "order": "given", "targets": {"shop/web": "c"}}
    assert told_possible(make, files, list("abcd"), **options) == ("partial", [])


def test_what_passes_by_itself_is_in_the_sentence(make: Any, files: Files, scene: Scene) -> None:
    only = Scene(*scene.lists["nodes"])
    only.vm("busy", "n2", status=BUSY)
    result = make(**files.see(only).given, **RUN, batch=2)
    assert (result["verdict"], result["possible"]) == ("feasible", ["n1", "n2"])
    assert result["message"] == "Run patch can be carried out: 2 nodes in 1 batch; 1 VM has to be waited for."
    for item in only.lists["nodes"]:
        item["metadata"]["labels"][LABEL] = "patch"
    assert make(**files.see(only).given, **RUN)["message"] == "Run patch is done with all of its nodes."


def test_the_document_is_returned_if_it_is_wanted(make: Any, files: Files) -> None:
    made = make(**files.given, **RUN, document=True)
    assert made["document"] == json.loads(files.plan.read_text())
    assert make(**files.given, **RUN, document=True, check=True)["document"] == made["document"]
    assert taken(make, files, document=True)["document"] == made["document"]
    assert "document" not in taken(make, files)


def test_check_mode_writes_no_text(make: Any, files: Files) -> None:
    assert make(**files.given, **RUN, check=True)["text_path"] == str(files.plan.with_suffix(".txt"))
    assert not files.plan.with_suffix(".txt").exists()


def crowd(scene: Scene) -> None:
    """So many VMs that a plan fills more than a screen."""
    for number in range(19):
        scene.vm(f"many-{number}", "n1", "64Mi")
        scene.vm(f"more-{number}", "n2", "64Mi")


def test_nobody_is_sent_to_a_text_that_is_not_there(make: Any, files: Files, scene: Scene) -> None:
    crowd(scene)
    files.see(scene)
    pointer = f"Each virtual machine and pod, its node and the reasons: {files.plan.with_suffix('.txt')}"
    assert pointer not in make(**files.given, **RUN, check=True)["lines"]
    assert pointer in make(**files.given, **RUN)["lines"]
    assert pointer in make(**files.given, **RUN, check=True)["lines"]


@pytest.mark.parametrize("check", [True, False])
def test_what_is_no_text_of_a_plan_stays(make: Any, files: Files, check: bool) -> None:
    text = files.plan.with_suffix(".txt")
    text.write_text("My notes\n")
    result = make(**files.given, **RUN, check=check)
    assert result["failed"]
    assert f"Cannot write the text of the plan ({text}): this file is of something else. Move it away" in result["msg"]
    assert (text.read_text(), files.plan.exists()) == ("My notes\n", False)


def test_a_name_without_extension_is_kept(make: Any, files: Files) -> None:
    path = files.plan.with_name("plan.v1")
    assert make(**{**files.given, "path": str(path)}, **RUN)["text_path"] == f"{path}.txt"


def test_of_an_approved_plan_only_its_own_text_counts(make: Any, files: Files) -> None:
    make(**files.given, **RUN)
    text = files.plan.with_suffix(".txt")
    assert taken(make, files)["text_path"] == str(text)
    text.write_text("The plan with the digest 123.\n")
    assert taken(make, files)["text_path"] == ""
    make(**files.given, **RUN)
    text.write_text(text.read_text().replace("shop/web", "shop/wep"))
    assert taken(make, files)["text_path"] == "", "somebody has edited it"
    text.write_bytes(b"\xff\xfe")
    assert taken(make, files)["text_path"] == ""
    text.unlink()
    assert taken(make, files)["text_path"] == ""
    assert not text.exists(), "what was approved is only read"


def test_a_long_plan_is_told_by_what_decides(make: Any, files: Files, scene: Scene) -> None:
    crowd(scene)
    told = make(**files.see(scene).given, **RUN)
    assert len(told["lines"]) < 40
    assert not any("shop/many-0" in line for line in told["lines"])
    assert told["lines"][-1] == f"Each virtual machine and pod, its node and the reasons: {told['text_path']}"
    assert "shop/many-0 -> n" in Path(told["text_path"]).read_text()


def test_each_obstacle_is_told_once(make: Any, files: Files) -> None:
    told = make(**files.given, **RUN, option_prefix="plan_maintenance_")
    assert [(obstacle["count"], obstacle["passing"]) for obstacle in told["obstacles"]] == [
        (3, False),
        (1, False),
        (1, False),
        (1, False),
        (1, True),
    ]
    messages = " ".join(obstacle["message"] for obstacle in told["obstacles"])
    assert "set plan_maintenance_force: true and plan_maintenance_delete_emptydir_data: true if that may be" in messages
    assert sum(obstacle["count"] for obstacle in told["obstacles"]) == len(told["blocked"])


def test_what_is_proposed_helps(make: Any, files: Files) -> None:
    """All leave but the one that nothing would start again, and the one that is waited for."""
    lines = make(**files.given, **RUN)["lines"]
    begin = next(number for number, line in enumerate(lines) if line.strip().startswith("With these"))
    options = yaml.safe_load("\n".join(takewhile(lambda line: line.startswith("      "), lines[begin + 1 :])))
    assert set(options) == {"policies", "force", "delete_emptydir_data"}
    helped = make(**files.given, **RUN, **options)
    assert [entry["name"] for entry in helped["blocked"]] == ["alone", "busy"]
    assert not any(line.strip().startswith("With these") for line in helped["lines"])


def test_the_document_says_what_would_clear_it(make: Any, files: Files) -> None:
    make(**files.given, **RUN)
    found = {
        entry["object"]["name"]: (entry["obstacle"]["id"], entry["obstacle"]["cleared_by"])
        for entry in json.loads(files.plan.read_text())["blocked"]
    }
    assert found["alone"] == ("not-live-migratable", [])
    assert found["bare"] == ("force", ["force"])
    assert found["scratch"] == ("delete_emptydir_data", ["delete_emptydir_data"])
    assert found["both"] == ("force-and-delete_emptydir_data", ["force", "delete_emptydir_data"])
    assert found["busy"][1] == []

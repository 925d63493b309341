# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is wrong with a run's plan or nodes gets one error from role plan_maintenance, and the cluster no write.

An earlier start of the run has left a VM off, which the role starts as soon as it holds the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import MAINTAINED, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import StoppedMark, marked
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.modules import maintenance_plan

from testbed.pki import Authority
from testbed.waiting import wait_for
from unit.playbooks.playing import play
from unit.plugins.support.draining_api import fill, vm_path
from unit.plugins.support.held_node import MARK
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner, isolate
from unit.plugins.support.object_api import NODES, managed
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, RunApi, running

pytestmark = pytest.mark.playbook

# What is given, where a file is one of `files`, and what is said of it.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a plan of other nodes": (
        {"file": "right", "nodes": ["n1", "n3"]},
        "plan_maintenance_nodes stands for n3, which the plan does not maintain; "
        "plan_maintenance_nodes does not stand for n2, which the plan maintains. Leave them out",
    ),
    "a plan that was edited": ({"file": "edited"}, "The plan was edited since it was made: its digest would be"),
    "a plan of another cluster": ({"file": "foreign"}, f"it is for the cluster another, and this is {CLUSTER}."),
    "a plan of another release": ({"file": "older"}, "maintenance-plan/1', but this release reads"),
    "a plan of an unknown node": ({"file": "unknown"}, "node n9 is no longer there. Make a plan anew"),
    "half of a plan": ({"file": "half"}, "This is no plan, as it is not JSON"),
    "a plan that all may read": ({"file": "public"}, "its mode is 0644, so that others may read or change it. Run"),
    "no plan at all": ({"file": "missing"}, "No such file or directory"),
    "a plan of another run": ({"file": "right", "run": "other"}, "it is for run 'kernel', and this is run 'other'."),
    "a plan that nobody approved": ({"file": "right", "sha256": "0" * 64}, "the plan is not the one that was meant"),
    "a plan with other wishes": ({"file": "right", "batch": 2}, "plan_maintenance_batch is 2, and the plan has 1."),
    "a plan with a wish that is taken back": (
        {"file": "forced", "force": False, "batch": 1},
        "plan_maintenance_force is false, and the plan has true. Leave them out",
    ),
    "a plan with a batch that is too large": ({"file": "right", "batch": 4}, "batch is 4, but the run has 3 nodes."),
    "a node that is named twice": (
        {"nodes": ["n1", "n2", "n1"]},
        "each host to maintain is to be named in it, and once",
    ),
    "a node that is not there": ({"nodes": ["n1", "n22"]}, "there is no node n22 (do you mean n2?)."),
    "a batch that is too large": ({"nodes": ["n1", "n2"], "batch": 4}, "batch is 4, but the run has 3 nodes."),
    "a folder for a plan": ({"nodes": ["n1", "n2"], "path": "files"}, "Is a directory. Give the path of a file"),
    "a plan in no folder": ({"nodes": ["n1", "n2"], "path": "none/a.json"}, "Create its folder first, or correct"),
    "a plan beside a text": ({"nodes": ["n1", "n2"], "path": "notes.json"}, "this file is of something else"),
}


def files(plan: Plan) -> dict[str, tuple[bytes, int]]:
    """Content and mode of each file, by its name."""
    content = encode(plan)
    document = json.loads(content)
    older = {**document, "schema": "virtops.kubevirt/maintenance-plan/1"}
    of_n1 = tuple(action for action in plan.actions if action.node == "n1")
    return {
        "right": (content, 0o600),
        "notes.txt": (b"of somebody", 0o600),
        "public": (content, 0o644),
        "half": (content[: len(content) // 2], 0o600),
        "edited": (content.replace(b'"to": "n', b'"to": "an', 1), 0o600),
        "older": (json.dumps(older).encode(), 0o600),
        "forced": (encode(replace(plan, options={**plan.options, "allowed": ["force"]})), 0o600),
        "foreign": (encode(replace(plan, cluster=replace(plan.cluster, uid="another"))), 0o600),
        "unknown": (encode(replace(plan, batches=(("n1",), ("n9",)), actions=of_n1)), 0o600),
    }


@dataclass(frozen=True)
class Scene:
    """Run `kernel`, to maintain n1 and n2, which is done with n4 and has left VM `old` off for that."""

    folder: Path
    api: RunApi

    def start(self, *options: str, plays: Sequence[dict[str, Any]] = (), **given: Any) -> tuple[str, int]:
        """What the role tells, as one line, and the status of its playbook. A file is meant by its name.

        plays: those that come after that of the role.
        """
        for name in ("file", "path", "snapshot"):
            if name in given:
                given[name] = str(self.folder / given[name])
        named = {f"plan_maintenance_{name}": value for name, value in {"run": "kernel", **given}.items()}
        role = {"role": "virtops.kubevirt.plan_maintenance", "vars": named}
        content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "roles": [role]}, *plays])
        told, status = play(self.folder, content, *options, kubeconfig=self.folder / "files/cluster.kubeconfig")
        return " ".join(told.split()), status


def stop_old(api: RunApi) -> None:
    """As the run has for n4."""
    stopped = StoppedMark("kernel", "Always", "2026-01-01T00:00:00Z")
    api.add_vm("old", "Halted")["metadata"] |= marked({"n4": stopped})
    del api.objects[vmi_path("old")]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    isolate(monkeypatch, tmp_path)
    authority = Authority(tmp_path)
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as api:
        write_kubeconfig(tmp_path, api, authority)
        fill(api, "n1", "n2", "n3", "n4")
        api.add_vmi("db")
        api.node("n4")["metadata"]["labels"][MAINTAINED] = "kernel"
        stop_old(api)
        plan = tmp_path / "plan.json"
        cluster: dict[str, Any] = {"host": api.url, "api_key": "secret", "ca_cert": str(authority.cert)}
        ModuleRunner(capsys)(maintenance_plan.main, **cluster, run="kernel", nodes=["n1", "n2"], path=str(plan))
        for name, (content, mode) in files(decode(plan.read_bytes())).items():
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).chmod(mode)
        yield Scene(tmp_path, api)


@pytest.mark.campaign
@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_clear_error_and_nothing_is_written(scene: Scene, mistake: str) -> None:
    given, words = MISTAKES[mistake]
    told, status = scene.start(**given)
    assert (status, told.count("FAILED!"), words in told) == (2, 1, True), told
    assert scene.api.writes() == []


def test_without_a_mistake_the_run_begins_and_goes_on(scene: Scene) -> None:
    """By the very file. That a VM is started would have been seen of the others, too."""
    told, status = scene.start(file="right", nodes=["n2", "n1"], snapshot="new/folder/cluster.json")
    assert (status, "Run kernel: 2 of 2 nodes to maintain" in told) == (0, True), told
    assert scene.api.objects[vm_path("old")]["spec"]["runStrategy"] == "Always"
    (kept,) = scene.api.config_maps()
    scene.api.node("n1")["metadata"]["labels"][MAINTAINED] = "kernel"
    wait_for("the end of the first start", lambda: scene.api.run_lease() is None)
    scene.api.requests.clear()
    refused, _status = scene.start(file="edited")
    assert ("The plan was edited since it was made" in refused, scene.api.writes()) == (True, [])
    assert scene.api.config_maps() == [kept]
    told, status = scene.start(file="right")
    assert (status, "Run kernel goes on by the plan of " in told, "Done already: n1" in told) == (0, True, True), told


def test_a_refused_run_tells_what_earlier_starts_have_left(scene: Scene) -> None:
    node = scene.api.node("n2")
    node["spec"]["unschedulable"] = True
    mark = {MARK: Mark("kernel", "2026-01-01T00:00:00Z").to_text()}
    node["metadata"] |= {"annotations": mark, "managedFields": [managed(FIELD_MANAGER, "unschedulable")]}
    scene.api.add_vm("fixed")
    told, status = scene.start(nodes=["n1", "n2"])
    assert (status, "as things are now; nothing more was touched. " in told) == (2, True), told
    assert scene.api.objects[vm_path("old")]["spec"]["runStrategy"] == "Always"
    words = "Of earlier starts of run kernel there is left: node n2"
    assert (words in told, "undo all of it by playbook virtops.kubevirt.abort." in told) == (True, True), told


@pytest.mark.parametrize(
    ("node", "words"),
    [
        pytest.param("n2", "", marks=pytest.mark.slow),
        ("n3", "plan_maintenance_nodes stands for n3, which the plan does not"),
    ],
)
def test_a_plan_is_of_the_node_that_drain_node_of_a_host_says(scene: Scene, node: str, words: str) -> None:
    """As an inventory has it: a plan that was approved is the run's, or one of other nodes."""
    inventory = scene.folder / "hosts.ini"
    inventory.write_text(f"web-2 drain_node={node}\n")
    told, status = scene.start("--check", "-i", str(inventory), file="right", nodes=["n1", "web-2"])
    kept = [request for request in scene.api.writes() if "dryRun" not in request.query]
    assert (status, words in told, kept) == (2 if words else 0, True, []), told


@pytest.mark.slow
def test_what_was_stopped_does_not_wait_for_a_node_that_is_made_anew(scene: Scene) -> None:
    """As by a maintenance that provisions it, in which the first start has crashed."""
    scene.start(nodes=["n1", "n2"])
    wait_for("the end of the first start", lambda: scene.api.run_lease() is None)
    stop_old(scene.api)
    del scene.api.objects[f"{NODES}/n1"]
    told, status = scene.start(nodes=["n1", "n2"])
    assert (status, told.count("FAILED!"), "there is no node n1" in told) == (2, 1, True), told
    assert scene.api.objects[vm_path("old")]["spec"]["runStrategy"] == "Always"


@pytest.mark.slow
def test_an_answer_that_is_left_blank_takes_no_wish_back(scene: Scene) -> None:
    told, status = scene.start("--check", file="forced", force="", batch_constraints="", policies=[])
    assert (status, "Run kernel: 2 of 2 nodes to maintain" in told) == (0, True), told


DRAIN = {"hosts": "maintenance", "gather_facts": False, "roles": ["virtops.kubevirt.drain"]}


@pytest.mark.slow
def test_what_a_drain_is_asked_for_beside_the_plan_of_its_run_is_refused(scene: Scene) -> None:
    """Also as it is by default, and where all hosts of a group have it. It was passed over."""
    (scene.folder / "hosts.ini").write_text("n1\n[workers]\nn1\n[workers:vars]\ndrain_avoid=n3\n")
    options = ("-i", str(scene.folder / "hosts.ini"), "-e", "drain_force=false")
    told, status = scene.start(*options, plays=[DRAIN], nodes=["n1"], force=True)
    words = (
        'Cannot drain node n1 by the plan, 2 mistakes: drain_avoid is ["n3"], and the plan has []; '
        "drain_force is false, and the plan has true. Leave them out, as the plan has its own, or plan with them"
    )
    assert (status, words in told.replace("\\", "")) == (2, True), told
    assert f"{NODES}/n1" not in [request.path for request in scene.api.writes()]


@pytest.mark.slow
def test_what_a_drain_is_asked_for_may_be_as_the_plan_of_its_run_has_it(scene: Scene) -> None:
    asked = {"force": True, "policies": [{"policy": "stop"}]}
    options = ("--check", "-e", "drain_force=yes", "-e", json.dumps({"drain_policies": '[{"policy": "stop"}]'}))
    told, status = scene.start(*options, plays=[DRAIN], nodes=["n1"], **asked)
    assert (status, "Cordon the node and move everything away" in told) == (0, True), told


def test_check_mode_refuses_as_much(scene: Scene) -> None:
    told, status = scene.start("--check", file="edited")
    assert (status, "The plan was edited since it was made" in told, scene.api.writes()) == (2, True, []), told

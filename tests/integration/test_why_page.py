# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide "Why can't my VM move?" is played as it stands: its VMs, its tasks, its remedies, and every answer.

Comments in the page, which its readers do not see, say what a block is: `scene`, `remedy` (VMs that are started with
that part of their specification, or tasks), `prepare` (tasks inside the comment), `ask`, `answer`, `kubevirt` (what
KubeVirt itself says of the VM's migration).
"""

from __future__ import annotations

import copy
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.clusters import (
    KUBEVIRT,
    TIMEOUT,
    VMIS,
    launchers,
    let_time_out,
    migrate,
    remove_deserted,
    remove_nodes,
    scheduling_message,
    vmis,
)
from integration.playbooks import Task, keep, run_tasks
from testbed.api import Api, ApiError, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

PAGE = Path(__file__).parents[2] / "docs/docsite/rst/why_cant_my_vm_move.rst"
SECTION = re.compile(r"^(.+)\n-{3,}\n", re.MULTILINE)
MARK = re.compile(r"^\.\. (scene|ask|answer|kubevirt|prepare|remedy)(?:: (.*))?\n", re.MULTILINE)
BLOCK = re.compile(r"\.\. code-block:: (\S+)\n\n((?:   .*\n|\n)+)")
COMMENT = re.compile(r"\A\n?((?:   .*\n)+)")
ZONES = {"bcn": ("worker-1", "worker-2"), "sab": ("worker-3", "worker-4"), "scu": ("worker-5", "worker-6")}
NODES = tuple(node for nodes in ZONES.values() for node in nodes)
# Where a VM runs that is not on worker-1, and what it has beyond 64 MiB.
STARTS = {"db-2": "worker-3", "db-3": "worker-5", **{f"load-{number}": f"worker-{number}" for number in range(2, 7)}}
MEMORY = {"reports": "12Gi", **{f"load-{number}": "4Gi" for number in range(2, 7)}}
NAMESPACE = "shop"
VMS = "virtualmachines"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True)
class Step:
    """`vms`: the names after the mark. `content`: of the block below it, empty if another mark comes first."""

    kind: str
    vms: tuple[str, ...]
    language: str
    content: str


def sections() -> dict[str, list[Step]]:
    """The page's situations by title."""
    _before, *parts = SECTION.split(PAGE.read_text())
    return {title: list(_steps(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _steps(text: str) -> Iterator[Step]:
    marks = list(MARK.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        below = text[mark.end() : following.start() if following else len(text)]
        vms = tuple((mark[2] or "").split())
        if mark[1] == "prepare":
            found = COMMENT.match(below)
            assert found, below
            yield Step("prepare", vms, "yaml", textwrap.dedent(found[1]))
        elif block := BLOCK.search(below):
            yield Step(mark[1], vms, block[1], textwrap.dedent(block[2]).strip())
        else:
            yield Step(mark[1], vms, "", "")


@dataclass
class Stage:
    """A cluster on which one situation is played."""

    testbed: RunningTestbed
    scratch: Path
    asked: list[Task] = field(default_factory=list)
    runs: int = 0

    @property
    def api(self) -> Api:
        return self.testbed.api

    def play(self, step: Step) -> None:
        if step.kind in ("scene", "remedy") and step.vms:
            self.start(step.vms, yaml.safe_load(step.content) if step.language == "yaml" else {})
        elif step.kind in ("prepare", "remedy"):
            self.run(yaml.safe_load(step.content))
            wait_for("the end of pods that VMs have left", self.is_settled, TIMEOUT)
        elif step.kind == "ask":
            self.asked = yaml.safe_load(step.content)
        elif step.kind == "answer":
            assert self.answer() == yaml.safe_load(step.content)
        else:
            assert self.kubevirt(*step.vms) == " ".join(step.content.split())

    def run(self, tasks: list[Task]) -> None:
        self.runs += 1
        run_tasks(self.scratch / f"{self.runs}.yml", self.testbed.kubeconfig, tasks)

    def answer(self) -> Any:
        """What the question prints of the cluster as it is now."""
        path = self.scratch / "answer.json"
        snapshot = {
            "virtops.kubevirt.cluster_snapshot": {"path": str(self.scratch / "cluster.json")},
            "register": "cluster",
        }
        (question,) = self.asked
        self.run([snapshot, {**question, "register": "asked"}, keep("asked.msg", path)])
        return json.loads(path.read_text())

    def is_settled(self) -> bool:
        return all(len(launchers(self.api, vmi)) == 1 for vmi in vmis(self.api, NAMESPACE))

    def start(self, names: tuple[str, ...], part: Object) -> None:
        """Start VMs, anew if they run, each on its node."""
        for name in names:
            self.stop(name)
        for name in names:
            self.only_node(STARTS.get(name, "worker-1"))
            self.api.create(resource_path(KUBEVIRT, VMS, NAMESPACE), virtual_machine(name, part))
            wait_for(f"a node for {name}", lambda name=name: self.placed(name), TIMEOUT)  # type: ignore[misc]
        self.only_node("")
        wait_for("nodes that are no more tainted for it", self.is_open, TIMEOUT)
        wait_for("the VMs to run", lambda: all(self.runs_ready(name) for name in names), TIMEOUT)

    def stop(self, name: str) -> None:
        try:
            self.api.delete(resource_path(KUBEVIRT, VMS, NAMESPACE, name))
        except ApiError as error:
            if error.status != 404:
                raise
        wait_for(f"the end of {name}", lambda: not self.pods(name), TIMEOUT)

    def only_node(self, only: str) -> None:
        """Let the scheduler use one node, or all of them if none is named."""
        for name in NODES:
            path = resource_path("v1", "nodes", name=name)
            self.api.patch(path, {"spec": {"unschedulable": True if only and name != only else None}})

    def is_open(self) -> bool:
        """The taint of a cordoned node is taken off by a controller, a moment after its cordon."""
        nodes = (self.api.get(resource_path("v1", "nodes", name=name)) for name in NODES)
        return not any(taint["key"] == UNSCHEDULABLE for node in nodes for taint in node["spec"].get("taints") or ())

    def pods(self, name: str) -> list[Object]:
        return self.api.items(resource_path("v1", "pods", NAMESPACE), labelSelector=f"vm.kubevirt.io/name={name}")

    def placed(self, name: str) -> bool:
        return any(pod["spec"].get("nodeName") for pod in self.pods(name))

    def vmi(self, name: str) -> Object:
        return self.api.get(resource_path(KUBEVIRT, VMIS, NAMESPACE, name))

    def runs_ready(self, name: str) -> bool:
        conditions = self.vmi(name).get("status", {}).get("conditions", ())
        return {"Ready", "LiveMigratable"} <= {condition["type"] for condition in conditions if condition["status"]}

    def kubevirt(self, name: str) -> str:
        """What KubeVirt, or its scheduler, says of the VM's migration."""
        try:
            migration = migrate(self.api, self.vmi(name))
        except ApiError as error:
            return " ".join(error.message.split())
        message = scheduling_message(self.api, self.vmi(name))
        let_time_out(self.api, migration)
        wait_for("the end of the target pod", lambda: len(launchers(self.api, self.vmi(name))) == 1, TIMEOUT)
        return message


def virtual_machine(name: str, part: Object) -> Object:
    """`part` of the VMI's specification lies over what all VMs of the page have."""
    spec: Object = {
        "evictionStrategy": "LiveMigrate",
        "domain": {
            "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
            "memory": {"guest": MEMORY.get(name, "64Mi")},
        },
        "networks": [{"name": "default", "pod": {}}],
    }
    labels = {"app": name.partition("-")[0]}
    overlaid = copy.deepcopy(part)
    spec["domain"]["devices"].update(overlaid.pop("domain", {}).get("devices", {}))
    return {
        "apiVersion": KUBEVIRT,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runStrategy": "Always", "template": {"metadata": {"labels": labels}, "spec": {**spec, **overlaid}}},
    }


@pytest.fixture
def stage(testbed: RunningTestbed, tmp_path: Path) -> Iterator[Stage]:
    api = testbed.api
    remove_nodes(api)
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for zone, nodes in ZONES.items():
        for name in nodes:
            api.create("/api/v1/nodes", fake_node(name, memory="16Gi", labels={"topology.kubernetes.io/zone": zone}))
    stage = Stage(testbed, tmp_path)
    yield stage
    for vm in api.items(resource_path(KUBEVIRT, VMS, NAMESPACE)):
        api.delete(resource_path(KUBEVIRT, VMS, NAMESPACE, vm["metadata"]["name"]))
    remove_deserted(api, NODES)


@pytest.mark.parametrize("title", sections())
def test_a_situation_is_as_the_page_tells_it(stage: Stage, title: str) -> None:
    for step in sections()[title]:
        stage.play(step)


def test_the_page_has_five_situations_that_end_well() -> None:
    ends = {title: [step for step in steps if step.kind == "answer"][-1] for title, steps in sections().items()}
    assert len(ends) == 5
    answers = [yaml.safe_load(step.content) for step in ends.values()]
    assert all(answer is True or answer["fit"] for answer in answers)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.doc_fragments import _profile
from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import FilterModule
from ansible_collections.virtops.kubevirt.plugins.filter.launcher_pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import arrays
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._kubevirt.machines import launcher, vmi
from unit.plugins.module_utils._scheduler.builders import node, pod, spread

LISTS = {"nodes": [node("a"), node("b", cordoned=True)]}
VM_LABELS: dict[str, Any] = {
    "kubernetes.io/arch": "amd64",
    "kubevirt.io/schedulable": "true",
    "machine-type.node.kubevirt.io/q35": "true",
}
DEVICES = ("devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net", "ephemeral-storage")
UNFIT = {"b": ["node(s) were unschedulable"]}
ask = FilterModule().filters()["feasible_nodes"]


def test_plain_lists() -> None:
    assert ask(LISTS, pod()) == {"fit": ["a"], "unfit": UNFIT, "message": ""}


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(LISTS))
    assert ask(str(path), pod(), scores=True, profile="NoScoring")["scores"] == {"a": 1}


RUNNING = vmi(status={"nodeName": "a"})
WITH_VM = {
    "nodes": [node("a", **VM_LABELS), node("b", **VM_LABELS)],
    "vmis": [RUNNING],
    "pods": [launcher(RUNNING, node="a")],
}


def test_a_vm_that_runs_is_asked_about_as_its_migration() -> None:
    answer = ask(WITH_VM, "shop/db")
    assert answer["fit"] == ["b"]
    assert answer["source_node"] == "a"
    assert answer["unfit"] == {"a": ["node(s) didn't match pod anti-affinity rules"]}


def test_what_a_migration_adds_to_the_selector_counts() -> None:
    lists = {**WITH_VM, "nodes": [*WITH_VM["nodes"], node("c", **VM_LABELS, rack="2")]}
    assert ask(lists, "shop/db")["fit"] == ["b", "c"]
    answer = ask(lists, "shop/db", added_node_selector={"rack": "2"})
    assert (answer["fit"], answer["unfit"]["b"]) == (["c"], ["node(s) didn't match Pod's node affinity/selector"])


def test_only_what_runs_has_a_migration() -> None:
    template = {"spec": {"domain": {"memory": {"guest": "1Gi"}}}}
    stopped = {
        "metadata": {"namespace": "shop", "name": "off"},
        "spec": {"runStrategy": "Halted", "template": template},
    }
    answer = ask({**WITH_VM, "vms": [stopped]}, "shop/off", added_node_selector={"rack": "2"})
    assert answer["error"].startswith("VirtualMachine shop/off has no VirtualMachineInstance")


def test_a_vm_that_does_not_run_is_asked_about_as_its_first_pod() -> None:
    new = {"metadata": {"name": "new"}, "spec": {"domain": {"memory": {"guest": "1Gi"}}}}
    answer = ask(WITH_VM, new, scores=True)
    reasons = ", ".join(f"2 Insufficient {name}" for name in DEVICES)
    assert answer["message"] == f"0/2 nodes are available: {reasons}."
    assert answer == ask(WITH_VM, launcher_pod(WITH_VM, new), scores=True)
    assert "source_node" not in answer


def test_what_cannot_be_foreseen_of_a_vm() -> None:
    new = {"metadata": {"name": "new"}, "spec": {"domain": {}, "priorityClassName": "high"}}
    assert ask(WITH_VM, new)["unevaluated"] == ["PriorityClass high, which is not known"]


def test_a_vm_for_which_there_is_no_pod() -> None:
    answer = ask({**WITH_VM, "pods": []}, "shop/db")
    assert (answer["fit"], answer["unfit"]) == ([], {})
    assert "has no pod on a to migrate from" in answer["error"]


def test_a_vm_whose_pod_the_api_server_would_refuse() -> None:
    limit = {
        "metadata": {"namespace": "default", "name": "l"},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1m"}}]},
    }
    new = {"metadata": {"name": "new"}, "spec": {"domain": {"memory": {"guest": "1Gi"}}}}
    answer = ask({**WITH_VM, "limitranges": [limit]}, new)
    assert (answer["fit"], answer["unfit"]) == ([], {})
    assert answer["error"].startswith("LimitRange l does not allow the pod with which default/new would start (cpu of")


def test_answers_are_plain_data() -> None:
    answer = ask(LISTS, pod(schedulingGates=[{"name": "g"}], resourceClaims=[{"name": "c"}]), scores=True)
    assert json.loads(json.dumps(answer)) == answer


BROKEN: list[tuple[Any, Any, dict[str, Any], str]] = [
    (LISTS, 3, {}, "A v1.Pod with metadata and spec is expected, a VM, or the namespace/name of one"),
    (LISTS, "default/new", {}, "There is no VirtualMachine, VirtualMachineInstance or replica set 'default/new'"),
    (LISTS, {"metadata": {}, "spec": {"template": {}}}, {}, "is expected. Give the whole object"),
    (LISTS, {"metadata": {}}, {}, "A v1.Pod with metadata and spec is expected"),
    (LISTS, {"metadata": None, "spec": {}}, {}, "A v1.Pod with metadata and spec is expected"),
    (LISTS, {"metadata": "db", "spec": {"domain": {}}}, {}, "A v1.Pod with metadata and spec is expected"),
    (LISTS, pod(), {"added_node_selector": {"rack": "2"}}, "Only a VM's migration adds to a node selector"),
    (LISTS, "shop/db", {"added_node_selector": "rack"}, "is a mapping of labels to values, got 'rack'"),
    (LISTS, pod(), {"profile": "Best"}, "There is no profile 'Best'. Give one of LowNodeUtilization, "),
    ({"node": []}, pod(), {}, "Do you mean 'nodes'"),
    ("/nowhere/cluster.json", pod(), {}, "Cannot read the snapshot"),
    (LISTS, pod(requests={"cpu": "much"}), {}, "is 'much', which is no amount"),
    (LISTS, pod(topologySpreadConstraints=[spread("zone", {"matchLabels": {"a": "?"}})]), {}, "cannot be the value of"),
]


@pytest.mark.parametrize(("source", "asked", "options", "text"), BROKEN)
def test_errors_are_one_sentence(source: Any, asked: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        ask(source, asked, **options)
    assert text in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_missing_library_is_told_with_the_python_that_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "np", None)
    with pytest.raises(AnsibleFilterError) as raised:
        ask({"nodes": [node("only")]}, pod())
    assert f"library (numpy) on {platform.node()}'s Python {sys.executable}" in str(raised.value)


def test_all_profiles_are_documented() -> None:
    assert all(f"- {profile.value}\n" in _profile.ModuleDocFragment.DOCUMENTATION for profile in Profile)

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.filter import launcher_pod as plugin
from ansible_collections.virtops.kubevirt.plugins.filter.launcher_pod import FilterModule

from unit.plugins.module_utils._kubevirt.machines import launcher, node, vmi

RUNNING = vmi(nodeSelector={"rack": "1"})
LISTS: dict[str, Any] = {"vmis": [RUNNING], "pods": [launcher(RUNNING)], "nodes": [node()]}
MANIFEST: dict[str, Any] = {"metadata": {"name": "new"}, "spec": {"domain": {"memory": {"guest": "1Gi"}}}}
ask = FilterModule().filters()["launcher_pod"]


def test_a_vm_by_name_and_as_an_object() -> None:
    assert ask(LISTS, "shop/db") == ask(LISTS, RUNNING)
    assert ask(LISTS, MANIFEST)["metadata"]["namespace"] == "default"


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(LISTS))
    assert ask(str(path), "shop/db") == ask(LISTS, "shop/db")


def test_a_migration() -> None:
    pod = ask(LISTS, "shop/db", migration=True, added_node_selector={"rack": "2", "zone": "a"})
    assert (pod["spec"]["nodeSelector"]["rack"], pod["spec"]["nodeSelector"]["zone"]) == ("1", "a")
    assert "podAntiAffinity" in pod["spec"]["affinity"]


def test_answers_are_plain_data() -> None:
    for pod in (ask(LISTS, MANIFEST), ask(LISTS, "shop/db", migration=True)):
        assert json.loads(json.dumps(pod)) == pod


def test_what_cannot_be_foreseen_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(plugin.display, "warning", said.append)
    ask(LISTS, {**MANIFEST, "spec": {**MANIFEST["spec"], "priorityClassName": "high"}})
    assert said == ["Not foreseen in the pod of default/new: PriorityClass high, which is not known."]


def test_what_the_api_server_would_refuse_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(plugin.display, "warning", said.append)
    limit = {
        "metadata": {"namespace": "default", "name": "l"},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1m"}}]},
    }
    assert ask({**LISTS, "limitranges": [limit]}, MANIFEST)["spec"]
    (text,) = said
    assert text.startswith("The cluster does not take the pod of default/new: LimitRange l does not allow the pod with")


KUBEVIRT: dict[str, Any] = {
    "metadata": {"name": "k"},
    "spec": {"configuration": {"permittedHostDevices": {}}},
    "status": {"phase": "Deployed"},
}
BROKEN: list[tuple[Any, Any, dict[str, Any], str]] = [
    (LISTS, 3, {}, "A VM, VMI or replica set is expected, or its namespace/name, got 3"),
    (LISTS, {"metadata": {"name": "p"}, "spec": {"containers": []}}, {}, "is expected. Give the whole object"),
    (LISTS, "shop/nobody", {}, "There is no VirtualMachine, VirtualMachineInstance or replica set 'shop/nobody'"),
    (LISTS, "shop/db", {"added_node_selector": {"a": "b"}}, "Set migration=true as well"),
    (LISTS, "shop/db", {"added_node_selector": "a=b", "migration": True}, "is a mapping of labels to values"),
    ({**LISTS, "pods": []}, "shop/db", {"migration": True}, "has no pod on n1 to migrate from"),
    ({"vmi": []}, "shop/db", {}, "Do you mean 'vmis'"),
    ("/nowhere/cluster.json", "shop/db", {}, "Cannot read the snapshot"),
    (
        LISTS,
        {**MANIFEST, "spec": {"domain": {"memory": {"guest": "much"}}}},
        {},
        "is 'much', which is no amount such as 500m or 2Gi. Correct",
    ),
    (
        {"kubevirts": [KUBEVIRT]},
        {**MANIFEST, "spec": {"domain": {"devices": {"gpus": [{"name": "g", "deviceName": "v/g"}]}}}},
        {},
        "v/g is not among the permittedHostDevices",
    ),
]


@pytest.mark.parametrize(("source", "asked", "options", "text"), BROKEN)
def test_errors_are_one_sentence(source: Any, asked: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        ask(source, asked, **options)
    assert text in str(raised.value)
    assert raised.value.__cause__ is None

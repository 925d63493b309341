# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects and names, with a snapshot and without, in Python and in templates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _once
from ansible_collections.virtops.kubevirt.plugins.test.live_migratable import TestModule as Plugin

from unit.plugins.module_utils._kubevirt.machines import launcher, metadata, node, vmi
from unit.plugins.support.templates import evaluate

Object = dict[str, Any]

NO = [{"type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable"}]
YES = [{"type": "LiveMigratable", "status": "True"}]
BACKUP = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}
TEMPLATE: Object = {"template": {"spec": {"domain": {}}}}
LISTS = {
    "vmis": [vmi("db"), vmi("gpu", status={"conditions": NO})],
    "vms": [{"metadata": metadata(name), "spec": TEMPLATE} for name in ("db", "off")],
    "pods": [launcher(vmi("db"))],
    "nodes": [node()],
}

ask: Callable[..., bool] = Plugin().tests()["live_migratable"]


def vm(conditions: Any) -> Object:
    return {
        "kind": "VirtualMachine",
        "metadata": metadata("db"),
        "spec": TEMPLATE,
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("machine", "answer"),
    [
        (vmi(), True),
        (vmi(status={"conditions": NO}), False),
        (vmi(status={"conditions": None}), False),
        (vmi(status={"phase": "Succeeded"}), False),
        (vmi(status=BACKUP), True),
        (vm(YES), True),
        (vm(NO), False),
        (vm(None), False),
    ],
)
def test_objects_speak_for_themselves(machine: Object, answer: bool) -> None:
    assert ask(machine) is answer


@pytest.mark.parametrize(
    ("machine", "answer"),
    [("shop/db", True), ("shop/gpu", False), ("shop/off", False), (vmi("db"), True), (vm(NO), True), (vm(YES), True)],
)
def test_with_a_snapshot_its_vmis_count(machine: Object | str, answer: bool) -> None:
    assert ask(machine, LISTS) is answer


def test_with_a_snapshot_more_is_looked_at() -> None:
    full = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    quota = {"metadata": metadata("small"), "spec": {}, "status": full}
    assert ask("shop/db", {**LISTS, "resourcequotas": [quota]}) is False
    assert ask(vmi("db"), {**LISTS, "nodes": [node("n2")]}) is False


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(LISTS))
    reads = 0

    def counted(source: object) -> Snapshot:
        nonlocal reads
        reads += 1
        return load(source)

    monkeypatch.setattr(_once, "load", counted)
    assert [ask(name, str(path)) for name in ("shop/db", "shop/gpu")] == [True, False]
    assert [ask(name, {"snapshot_path": str(path), "changed": True}) for name in ("shop/db", "shop/gpu")] == [
        True,
        False,
    ]
    assert reads == 1
    path.write_text(json.dumps({**LISTS, "vmis": []}))
    assert ask("shop/db", str(path)) is False


@pytest.mark.parametrize(
    ("machine", "snapshot", "says"),
    [
        ("shop/db", None, "cannot be told of 'shop/db'. Give a VirtualMachineInstance or a VirtualMachine, or with a"),
        (["shop/db"], LISTS, "cannot be told of ['shop/db']"),
        ("shop/dx", LISTS, "The snapshot has no VM 'shop/dx'. Check namespace/name"),
        ({"kind": "Pod", "metadata": {}, "spec": {}}, None, "An object of kind Pod cannot be migrated"),
        ({"metadata": {"name": "a"}}, LISTS, "Give a VirtualMachineInstance"),
        ({"metadata": {}, "spec": {}}, LISTS, "without metadata.name and spec cannot be"),
        ({"metadata": {}, "spec": {}}, None, "without metadata.name and spec cannot be"),
        ({"metadata": None, "spec": {}}, LISTS, "without metadata.name and spec cannot be"),
        ("shop/db", {"vmi": []}, "Do you mean 'vmis'"),
        ("shop/db", "/nowhere/cluster.json", "Cannot read the snapshot"),
    ],
)
def test_errors_are_one_sentence(machine: Any, snapshot: Any, says: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        ask(machine, snapshot)
    assert says in str(raised.value)
    assert raised.value.__cause__ is None


IN_TEMPLATES = {
    "machine is virtops.kubevirt.live_migratable": True,
    "'shop/gpu' is virtops.kubevirt.live_migratable(lists)": False,
    "'shop/gpu' is not virtops.kubevirt.live_migratable(snapshot=lists)": True,
    "['shop/db', 'shop/gpu'] | select('virtops.kubevirt.live_migratable', lists)": ["shop/db"],
    "lists.vmis | reject('virtops.kubevirt.live_migratable') | map(attribute='metadata.name')": ["gpu"],
}


def test_in_templates(tmp_path: Path) -> None:
    assert evaluate(IN_TEMPLATES, {"machine": vmi(), "lists": LISTS}, tmp_path) == list(IN_TEMPLATES.values())

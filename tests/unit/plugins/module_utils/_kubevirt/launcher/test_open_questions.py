# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.open_questions import (
    open_questions,
    open_questions_of_migration,
)

from unit.plugins.module_utils._kubevirt.launcher.vms import annotated, listed, machine

Object = dict[str, Any]
POD: Object = {"metadata": {}, "spec": {}}
KNOWN = Configuration(version="v1.8.4")
STATE = {"tpm": {"persistent": True}}
CLAIM = listed("persistent-state-for-db")
DISK = [{"name": "d", "persistentVolumeClaim": {"claimName": "x"}}]
PLUGGED = [{"name": "data", "dataVolume": {"name": "d", "hotpluggable": True}}]

QUESTIONS: list[tuple[Object, Any, str]] = [
    (machine(networks=[{"name": "a", "multus": {"networkName": "blue"}}]), {}, "NetworkAttachmentDefinition blue"),
    (annotated(machine(), mesh="true"), {}, "service mesh"),
    (machine({}, STATE), {}, "PersistentVolumeClaim for the state of the VM"),
    (machine(volumes=PLUGGED), {}, "volume data, which is plugged in"),
    (machine(priorityClassName="high"), {}, "PriorityClass high"),
    (machine(volumes=[{"name": "d", "dataVolume": {"name": "x"}}]), {}, "PersistentVolumeClaim x, which is not there"),
    (
        machine({}, {"filesystems": [{"name": "p"}]}, volumes=[{"name": "p", "containerPath": {"path": "/a"}}]),
        {},
        "container for volume p",
    ),
    (
        machine(),
        {"namespaces": [{"metadata": {"name": "shop", "annotations": {"openshift.io/node-selector": "a=b"}}}]},
        "annotation openshift.io/node-selector of the namespace",
    ),
]


@pytest.mark.parametrize(("item", "lists", "text"), QUESTIONS)
def test_what_is_open_is_said(item: Object, lists: Any, text: str) -> None:
    found = open_questions(item, item, Configuration(), lists)
    assert len(found) == 1
    assert text in found[0]


def test_instance_types_are_not_applied() -> None:
    vm = {"spec": {"instancetype": {"name": "u1"}, "preference": {"name": "linux"}}}
    assert len(open_questions(vm, machine(), Configuration(), {})) == 2


def test_nothing_is_open_that_is_known() -> None:
    lists = {"pvcs": [CLAIM, listed("x")], "priorityclasses": [{"metadata": {"name": "high"}}]}
    item = machine({}, STATE, priorityClassName="high", volumes=DISK, networks=[{"name": "a", "pod": {}}])
    assert open_questions(item, item, Configuration(), lists) == []


def test_an_unknown_runtime_class() -> None:
    found = open_questions(machine(), machine(), Configuration(runtime_class="boxed"), {})
    assert found == ["RuntimeClass boxed, which is not known"]


def test_changed_blocks_are_tracked_by_labels() -> None:
    settings = Configuration(tracks_changed_blocks=True)
    vm: Object = {"spec": {"template": {}}}
    assert "changed block tracking" in open_questions(vm, machine(), settings, {})[0]
    assert open_questions(machine(), machine(), settings, {}) == []


@pytest.mark.parametrize(("volumes", "count"), [([], 1), ([{"name": "vm-state"}], 0)])
def test_a_migration_may_need_another_claim_for_the_state(volumes: list[Object], count: int) -> None:
    target = {**POD, "spec": {"volumes": volumes}}
    assert len(open_questions_of_migration(machine({}, STATE), POD, target, KNOWN, {})) == count


def test_a_migration_with_plugged_volumes() -> None:
    assert len(open_questions_of_migration(machine(volumes=PLUGGED), POD, POD, KNOWN, {})) == 1


@pytest.mark.parametrize(("version", "text"), [("v1.7.0", "as v1.7.0 has rules of its own"), ("", "is not known")])
def test_sizes_of_a_migration_by_another_release(version: str, text: str) -> None:
    (found,) = open_questions_of_migration(machine(), POD, POD, Configuration(version=version), {})
    assert text in found


def test_a_migration_with_an_unknown_runtime_class() -> None:
    pod = {**POD, "spec": {"runtimeClassName": "boxed"}}
    (found,) = open_questions_of_migration(machine(), POD, pod, KNOWN, {})
    assert found == "RuntimeClass boxed, which is not known"
    lists = {"runtimeclasses": [{"metadata": {"name": "boxed"}}]}
    assert not open_questions_of_migration(machine(), POD, pod, KNOWN, lists)


def test_a_migration_of_a_pod_with_labels_of_others() -> None:
    known = {"app": "a", "kubevirt.io/x": "1", "vmi.kubevirt.io/x": "2", "topology.kubernetes.io/zone": "3"}
    source = {"metadata": {"labels": {**known, "injected": "yes"}}}
    target = {**POD, "metadata": {"labels": {"app": "b"}}}
    (found,) = open_questions_of_migration(machine(), source, target, KNOWN, {})
    assert found.startswith("label injected of the running pod")

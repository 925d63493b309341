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
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces

from unit.plugins.module_utils._kubevirt.launcher.vms import annotated, listed, machine

Object = dict[str, Any]
POD: Object = {"metadata": {}, "spec": {}}
KNOWN = Configuration(version="v1.8.4")
STATE = {"tpm": {"persistent": True}}
CLAIM = listed("persistent-state-for-db")
DISK = [{"name": "d", "persistentVolumeClaim": {"claimName": "x"}}]
PLUGGED = [{"name": "data", "dataVolume": {"name": "d", "hotpluggable": True}}]

QUESTIONS: list[tuple[Object, Any, str]] = [
    (machine(networks=[{"name": "a", "multus": {"networkName": "blue"}}]), {}, "NetworkAttachmentDefinition shop/blue"),
    (annotated(machine(), mesh="true"), {}, "service mesh"),
    (machine({}, STATE), {}, "PersistentVolumeClaim for the state of the VM"),
    (machine(volumes=PLUGGED), {}, "volume data, which is plugged in"),
    (machine(priorityClassName="high"), {}, "PriorityClass high"),
    (machine(volumes=[{"name": "d", "dataVolume": {"name": "x"}}]), {}, "PersistentVolumeClaim x, which is not there"),
    (
        machine({}, {"filesystems": [{"name": "p"}]}, volumes=[{"name": "p", "containerPath": {"path": "/a"}}]),
        {},
        "path of volume p; if nothing",
    ),
    (
        machine(),
        {"namespaces": [{"metadata": {"name": "shop", "annotations": {"openshift.io/node-selector": "a=b"}}}]},
        "annotation openshift.io/node-selector of the namespace",
    ),
]


@pytest.mark.parametrize(("item", "lists", "text"), QUESTIONS)
def test_what_is_open_is_said(item: Object, lists: Any, text: str) -> None:
    found = open_questions(item, item, Configuration(), Namespaces(lists).named("shop"))
    assert len(found) == 1
    assert text in found[0]


def test_nothing_is_open_that_is_known() -> None:
    lists = {"pvcs": [CLAIM, listed("x")], "priorityclasses": [{"metadata": {"name": "high"}}]}
    lists["networkattachmentdefinitions"] = [listed("blue"), listed("red", "nets")]
    networks = [{"name": "a", "pod": {}}, *({"name": n, "multus": {"networkName": n}} for n in ("blue", "nets/red"))]
    item = machine({}, STATE, priorityClassName="high", volumes=DISK, networks=networks)
    assert open_questions(item, item, Configuration(), Namespaces(lists).named("shop")) == []


def test_devices_that_others_add_are_open() -> None:
    lists = {"networkattachmentdefinitions": [listed("blue")]}
    gated = Configuration(feature_gates=frozenset({"ExternalNetResourceInjection"}))
    item = machine(networks=[{"name": "a", "multus": {"networkName": "blue"}}])
    (found,) = open_questions(item, item, gated, Namespaces(lists).named("shop"))
    assert "NetworkAttachmentDefinition shop/blue" in found


def test_an_unknown_runtime_class() -> None:
    found = open_questions(machine(), machine(), Configuration(runtime_class="boxed"), Namespace())
    assert found == ["RuntimeClass boxed, which is not known"]


def test_changed_blocks_are_tracked_by_labels() -> None:
    settings = Configuration(tracks_changed_blocks=True)
    vm: Object = {"spec": {"template": {}}}
    assert "changed block tracking" in open_questions(vm, machine(), settings, Namespace())[0]
    assert open_questions(machine(), machine(), settings, Namespace()) == []


@pytest.mark.parametrize(("volumes", "count"), [([], 1), ([{"name": "vm-state"}], 0)])
def test_a_migration_may_need_another_claim_for_the_state(volumes: list[Object], count: int) -> None:
    target = {**POD, "spec": {"volumes": volumes}}
    assert len(open_questions_of_migration(machine({}, STATE), POD, target, KNOWN, Namespace())) == count


def test_a_migration_with_plugged_volumes() -> None:
    assert len(open_questions_of_migration(machine(volumes=PLUGGED), POD, POD, KNOWN, Namespace())) == 1


@pytest.mark.parametrize(("version", "text"), [("v1.7.0", "as v1.7.0 has rules of its own"), ("", "is not known")])
def test_sizes_of_a_migration_by_another_release(version: str, text: str) -> None:
    (found,) = open_questions_of_migration(machine(), POD, POD, Configuration(version=version), Namespace())
    assert text in found


def test_a_migration_with_an_unknown_runtime_class() -> None:
    pod = {**POD, "spec": {"runtimeClassName": "boxed"}}
    (found,) = open_questions_of_migration(machine(), POD, pod, KNOWN, Namespace())
    assert found == "RuntimeClass boxed, which is not known"
    lists = {"runtimeclasses": [{"metadata": {"name": "boxed"}}]}
    assert not open_questions_of_migration(machine(), POD, pod, KNOWN, Namespaces(lists).named("shop"))


def test_a_migration_of_a_pod_with_labels_of_others() -> None:
    known = {"app": "a", "kubevirt.io/x": "1", "vmi.kubevirt.io/x": "2", "topology.kubernetes.io/zone": "3"}
    source = {"metadata": {"labels": {**known, "injected": "yes"}}}
    target = {**POD, "metadata": {"labels": {"app": "b"}}}
    (found,) = open_questions_of_migration(machine(), source, target, KNOWN, Namespace())
    assert found.startswith("label injected of the running pod")

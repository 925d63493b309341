# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists in plain form: what is taken, and what the sentence says about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import SnapshotError, from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS

NODE = {"metadata": {"name": "n1"}}
TEMPLATE: Any = {"spec": {"template": {"spec": {}}}}
# What the API server lets no object be without.
LEAST: dict[str, Any] = {
    "pods": {"spec": {}},
    "vmis": {"spec": {}},
    "vms": TEMPLATE,
    "vmireplicasets": TEMPLATE,
    "migrations": {"spec": {"vmiName": "a"}},
    "volumeattachments": {"spec": {"nodeName": "n1"}},
    "priorityclasses": {"value": 1},
    "instancetypes": {"spec": {"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}},
    "clusterinstancetypes": {"spec": {"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}},
}


def test_lists_that_are_not_given_are_empty() -> None:
    snapshot = from_plain({"nodes": [NODE], "pods": []})
    assert set(snapshot.lists) == set(BY_NAME)
    assert {name: items for name, items in snapshot.lists.items() if items} == {"nodes": [NODE]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_items_may_name_their_kind(kind: Any) -> None:
    item = {"kind": kind.kind, **LEAST.get(kind.name, {}), "metadata": {"name": "a"}}
    assert from_plain({kind.name: [item]}).lists[kind.name] == [item]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "A snapshot is expected, got nothing."),
        ([NODE], "A snapshot is expected, got a list."),
        (5, "A snapshot is expected, got a value of type int."),
        ({}, "The snapshot is empty."),
        ({"vmi": []}, "A snapshot has no list 'vmi'. Do you mean 'vmis'?"),
        ({"virtualmachines": []}, "A snapshot has no list 'virtualmachines'. Its lists are kubevirts, "),
        ({"kind": "List", "items": [NODE]}, "It looks like a single list of the API: put its `items` under their name"),
        ({"nodes": {"kind": "NodeList", "items": [NODE]}}, "`nodes` of a snapshot is a list, got a mapping. Give its"),
        ({"nodes": "n1"}, "`nodes` of a snapshot is a list, got a string. Give a list of objects."),
        ({"nodes": None}, "`nodes` of a snapshot is a list, got nothing."),
        ({"nodes": ["n1"]}, "Item 0 of `nodes` is no object of the API: it is a string without metadata.name."),
        ({"nodes": [NODE, {}]}, "Item 1 of `nodes` is no object of the API: it is a mapping without metadata.name."),
        ({"nodes": [{"metadata": "n1"}]}, "without metadata.name."),
        (
            {"pods": [{"kind": "Node", **NODE}]},
            "Item 0 of `pods`, n1, is a Node, not a Pod. Put it into the list of its kind.",
        ),
    ],
)
def test_what_is_wrong_is_said(given: object, sentence: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        from_plain(given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("name", "item", "sentence"),
    [
        ("nodes", {"spec": []}, "Node n1 cannot be read: spec is a list, where a mapping belongs. Correct it"),
        ("nodes", {"spec": {"unschedulable": "yes"}}, "spec.unschedulable is a string, where true or false belongs"),
        ("nodes", {"spec": {"taints": [{"key": "a"}]}}, "Node n1 cannot be read: spec.taints[0] has no effect."),
        ("nodes", {"spec": {"taints": [None]}}, "spec.taints[0] is nothing, where a mapping belongs"),
        ("nodes", {"spec": {"taints": "a"}}, "spec.taints is a string, where a list belongs"),
        (
            "nodes",
            {"status": {"allocatable": {"cpu": "4x"}}},
            "status.allocatable[cpu] is '4x', which is no amount such as 500m or 2Gi",
        ),
        ("nodes", {"status": {"allocatable": {"cpu": True}}}, "is a value of type bool, where an amount such as"),
        (
            "nodes",
            {"status": {"allocatable": {5: "1"}}},
            "status.allocatable[5] is a value of type int",
        ),
        ("nodes", {"status": {"images": [{"sizeBytes": 10**30}]}}, "sizeBytes is a number that is out of all bounds"),
        (
            "nodes",
            {"status": {"images": [{"sizeBytes": 1.5}]}},
            "is a value of type float, where a whole",
        ),
        (
            "nodes",
            {"metadata": {"name": "n1", "labels": {"\x1b[2J": 1}}},
            "metadata.labels[\ufffd[2J]",
        ),
        ("nodes", {"kind": ["Node"]}, "Node n1 cannot be read: kind is a list, where a string belongs."),
        ("pods", {"metadata": {"namespace": "shop", "name": "a"}}, "Pod shop/a cannot be read: it has no spec."),
        (
            "pdbs",
            {"spec": {"maxUnavailable": "half"}},
            "spec.maxUnavailable is 'half', where a number or",
        ),
    ],
)
def test_a_malformed_object_is_named_with_its_field(name: str, item: Any, sentence: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        from_plain({name: [{**NODE, **item}]})
    assert sentence in str(caught.value)


def test_what_is_null_is_as_if_it_were_not_there() -> None:
    item = {"metadata": {"name": "n1", "labels": None}, "spec": None, "status": {"allocatable": None}, "kind": None}
    assert from_plain({"nodes": [item]}).lists["nodes"] == [item]


def test_what_nobody_reads_may_be_anything() -> None:
    item = {**NODE, "more": [[]], "spec": {"podCIDRs": 5}}
    assert from_plain({"nodes": [item]}).lists["nodes"] == [item]


def test_what_is_made_of_it_is_made_once() -> None:
    def pod(name: str, **spec: Any) -> Any:
        return {"metadata": {"name": name}, "spec": spec}

    here, there, nowhere = pod("a", nodeName="n1"), pod("b", nodeName="n1"), pod("c")
    snapshot = from_plain({"nodes": [NODE], "pods": [here, nowhere, there]})
    assert snapshot.nodes == {"n1": NODE}
    assert snapshot.pods_by_node == {"n1": [here, there], "": [nowhere]}
    made: list[int] = []

    def count(lists: Any) -> int:
        made.append(len(lists["pods"]))
        return made[-1]

    assert [snapshot.once(count), snapshot.once(count), from_plain({"pods": [here]}).once(count)] == [3, 3, 1]
    assert made == [3, 1]

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


def test_lists_that_are_not_given_are_empty() -> None:
    snapshot = from_plain({"nodes": [NODE], "pods": []})
    assert set(snapshot.lists) == set(BY_NAME)
    assert {name: items for name, items in snapshot.lists.items() if items} == {"nodes": [NODE]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_items_may_name_their_kind(kind: Any) -> None:
    item = {"kind": kind.kind, "metadata": {"name": "a"}}
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

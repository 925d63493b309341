# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object tells whether a write was done: it never says so of one that was not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.as_wanted import (
    is_as_wanted,
    is_just_as_wanted,
)

Object = dict[str, Any]

OF_SERVER: Object = {
    "resourceVersion": "7",
    "uid": "u",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "managedFields": [{"manager": "somebody"}],
}
# The server's words, as keys that are anybody's elsewhere.
TAKEN = ("status", "generation", "uid", "resourceVersion", "creationTimestamp", "managedFields")


def labelled(**labels: Any) -> Object:
    return {"metadata": {"name": "n1", "labels": labels}}


def with_spec(**spec: Any) -> Object:
    return {"metadata": {"name": "db"}, "spec": spec}


def stored(wanted: Object) -> Object:
    """As a server keeps it."""
    return {**wanted, "metadata": {**wanted["metadata"], **OF_SERVER}, "status": {"phase": "New"}}


@pytest.mark.parametrize("alike", [is_as_wanted, is_just_as_wanted])
@pytest.mark.parametrize(
    "wanted",
    [
        labelled(rack="7"),
        with_spec(replicas=2, networks=[{"name": "default", "pod": {}}]),
        {**with_spec(replicas=2), "status": {"phase": "Old"}},
        {"metadata": {"name": "n1", "resourceVersion": "6", "managedFields": []}},
        {**labelled(), "binaryData": {}, "spec": {"template": {"metadata": {"creationTimestamp": None}}}},
    ],
)
def test_what_the_server_writes_makes_no_difference(alike: Any, wanted: Object) -> None:
    assert alike(stored(wanted), wanted)


@pytest.mark.parametrize("alike", [is_as_wanted, is_just_as_wanted])
@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (labelled(rack="6"), labelled(rack="7")),
        (labelled(), labelled(rack="7")),
        (with_spec(networks=[]), with_spec(networks=[{"name": "default"}])),
        (with_spec(networks="none"), with_spec(networks=[])),
        (with_spec(template=7), with_spec(template={"spec": {"a": 1}})),
        (with_spec(networks=[{"name": "a"}, {"name": "b"}]), with_spec(networks=[{"name": "b"}, {"name": "a"}])),
        ({"metadata": {"name": "n1"}}, labelled(rack="7")),
    ],
)
def test_what_differs_was_not_done(alike: Any, found: Object, wanted: Object) -> None:
    assert not alike(stored(found), wanted)


@pytest.mark.parametrize("alike", [is_as_wanted, is_just_as_wanted])
@pytest.mark.parametrize("key", TAKEN)
def test_the_servers_words_are_anybodys_elsewhere(alike: Any, key: str) -> None:
    assert not alike(stored(labelled()), labelled(**{key: "x"}))
    assert not alike(stored(labelled(**{key: "y"})), labelled(**{key: "x"}))
    assert not alike(stored(with_spec(template={})), with_spec(template={"metadata": {"labels": {key: "x"}}}))
    assert not alike(stored(with_spec(selector={})), with_spec(selector={"matchLabels": {key: "x"}}))
    assert alike(stored(labelled(**{key: "x"})), labelled(**{key: "x"}))


def test_what_is_null_in_a_patch_is_gone() -> None:
    assert is_as_wanted(stored(labelled(new="1")), labelled(old=None))
    assert not is_as_wanted(stored(labelled(old="1")), labelled(old=None))


def test_a_patch_and_a_new_object_may_find_more() -> None:
    found = stored(with_spec(replicas=1, paused=True))
    assert is_as_wanted(found, with_spec(replicas=1))
    assert is_as_wanted(found, {"metadata": {"labels": {}}})


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (with_spec(replicas=1, paused=True), with_spec(replicas=1)),
        (with_spec(nodeSelector={"disk": "ssd", "zone": "a"}), with_spec(nodeSelector={"zone": "a"})),
        (with_spec(nodeSelector={"disk": "ssd"}), with_spec()),
        (with_spec(affinity={}), with_spec()),
        (with_spec(interfaces=[{"name": "a"}]), with_spec(interfaces=[{"name": "a", "masquerade": {}}])),
        (with_spec(interfaces=[{"name": "a", "masquerade": {}}]), with_spec(interfaces=[{"name": "a"}])),
        (labelled(run="kernel"), labelled()),
        ({**with_spec(), "binaryData": {"content": "x"}}, with_spec()),
    ],
)
def test_what_replaces_takes_away_as_well(found: Object, wanted: Object) -> None:
    assert not is_just_as_wanted(stored(found), wanted)


def test_what_says_nothing_need_not_be_kept() -> None:
    """Objects of the server's own types come back without it, and those of KubeVirt's with it."""
    assert is_just_as_wanted({"metadata": {"name": "a"}}, {"metadata": {"name": "a", "labels": {}}, "binaryData": {}})
    assert is_just_as_wanted(
        with_spec(template={"metadata": {"creationTimestamp": None}}), with_spec(template={"metadata": {}})
    )

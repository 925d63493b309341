# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels reach the nodes that are meant, once, and the module tells what it did and what is wanting."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.node_topology import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import ObjectApi

ZONE, REGION, HOSTNAME = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


class Label(Protocol):
    """Run the module on the cluster."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    """Three nodes that only say their names."""
    fake = ObjectApi()
    for name in ("n1", "n2", "n3"):
        fake.add_node(name, {HOSTNAME: name})
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def label(run_module: ModuleRunner, connection: dict[str, Any]) -> Label:
    return partial(run_module, main, **connection)


def labels(api: ObjectApi, name: str) -> dict[str, str]:
    """The labels of a node, without its host name."""
    return {key: value for key, value in api.node(name)["metadata"]["labels"].items() if key != HOSTNAME}


def test_labels_reach_the_listed_nodes_and_no_others(label: Label, api: ObjectApi) -> None:
    result = label(topology=[{"nodes": ["n1", "n2"], "zone": "a", "region": "r", "labels": {"rack": "7"}}])
    assert result["changed"]
    assert result["changes"] == [
        {"node": name, "labels": {"rack": "7", REGION: "r", ZONE: "a"}} for name in ("n1", "n2")
    ]
    assert labels(api, "n1") == labels(api, "n2") == {ZONE: "a", REGION: "r", "rack": "7"}
    assert labels(api, "n3") == {}


def test_entries_add_up(label: Label, api: ObjectApi) -> None:
    label(topology=[{"nodes": ["n1", "n2"], "region": "r"}, {"nodes": ["n1"], "zone": "a", "region": "r"}])
    assert labels(api, "n1") == {ZONE: "a", REGION: "r"}


def test_a_second_run_changes_nothing(label: Label, api: ObjectApi) -> None:
    task: dict[str, Any] = {
        "topology": [{"nodes": ["n1"], "zone": "a"}],
        "rules": [{"labels": {"twin": "metadata.name"}}],
    }
    label(**task)
    before = len(api.writes())
    again = label(**task)
    assert not again["changed"]
    assert again["changes"] == []
    assert len(api.writes()) == before


def test_only_what_differs_is_written(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {ZONE: "a", "rack": "6"})
    label(topology=[{"nodes": ["n1"], "zone": "a", "labels": {"rack": "7"}}])
    (write,) = api.writes()
    assert write.body == {"metadata": {"labels": {"rack": "7"}, "resourceVersion": "1"}}
    assert write.query == {"fieldManager": "virtops.kubevirt"}
    assert len([request for request in api.requests if "/nodes" in request.path]) == 2


def test_null_removes_a_label(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {"rack": "7", "other": "x"})
    result = label(topology=[{"nodes": ["n1", "n2"], "labels": {"rack": None}}])
    assert labels(api, "n1") == {"other": "x"}
    assert result["changes"] == [{"node": "n1", "labels": {"rack": None}}]


def test_rules_derive_labels_from_the_whole_object(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", status={"nodeInfo": {"osImage": "CoreOS 9"}}, spec={"providerID": "metal://bcn/17"})
    label(
        rules=[
            {
                "condition": "contains(status.nodeInfo.osImage || '', 'CoreOS')",
                "zone": "'bcn'",
                "labels": {"host": "metadata.name"},
            },
        ]
    )
    assert labels(api, "n1") == {ZONE: "bcn", "host": "n1"}
    assert labels(api, "n2") == {}


def test_null_from_a_rule_is_no_wish(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {"rack": "7"})
    assert not label(rules=[{"labels": {"rack": 'metadata.annotations."example.com/rack"'}}])["changed"]
    assert labels(api, "n1") == {"rack": "7"}


def test_purge_removes_the_keys_of_the_task_elsewhere(label: Label, api: ObjectApi) -> None:
    api.add_node("n2", {ZONE: "old", "rack": "7", "other": "x"})
    task: dict[str, Any] = {
        "topology": [{"nodes": ["n1"], "zone": "a"}],
        "rules": [{"condition": "metadata.name == 'n3'", "labels": {"rack": "'8'"}}],
    }
    label(**task)
    assert labels(api, "n2") == {ZONE: "old", "rack": "7", "other": "x"}
    label(**task, purge=True)
    assert labels(api, "n2") == {"other": "x"}
    assert not label(**task, purge=True)["changed"]


def test_deprecated_keys_are_reported(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {OLD_ZONE: "a"})
    result = label()
    assert not result["changed"]
    assert result["deprecated"] == [{"node": "n1", "key": OLD_ZONE, "value": "a", "replacement": ZONE}]
    assert "n1. Set replace_deprecated" in str(result["warnings"])


def test_deprecated_keys_are_replaced_on_request(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {OLD_ZONE: "a", OLD_REGION: "r"})
    api.add_node("n2", {OLD_ZONE: "a", ZONE: "b"})
    api.add_node("n3", {OLD_ZONE: "a"})
    task: dict[str, Any] = {"topology": [{"nodes": ["n3"], "zone": "c"}], "replace_deprecated": True}
    result = label(**task)
    assert labels(api, "n1") == {ZONE: "a", REGION: "r"}
    assert labels(api, "n2") == {ZONE: "b"}, "the key of today holds"
    assert labels(api, "n3") == {ZONE: "c"}, "the task holds"
    assert len(result["deprecated"]) == 4
    again = label(**task)
    assert (again["changed"], again["deprecated"]) == (False, [])


def test_a_purged_key_does_not_come_back_from_a_deprecated_one(label: Label, api: ObjectApi) -> None:
    api.add_node("n2", {OLD_ZONE: "a"})
    task: dict[str, Any] = {"topology": [{"nodes": ["n1"], "zone": "c"}], "replace_deprecated": True, "purge": True}
    label(**task)
    assert labels(api, "n2") == {}
    assert not label(**task)["changed"]


def test_nodes_without_what_others_carry_are_named(label: Label, api: ObjectApi) -> None:
    api.add_node("n4")
    result = label(
        topology=[
            {"nodes": ["n1", "n2"], "zone": "a", "labels": {"rack": "7"}},
            {"nodes": ["n3"], "labels": {"rack": None}},
        ]
    )
    assert result["incomplete"] == {HOSTNAME: ["n4"], ZONE: ["n3", "n4"], "rack": ["n4"]}
    assert f"{ZONE}, which other nodes carry: n3, n4." in str(result["warnings"])
    assert "rack" not in str(result["warnings"]), "a free label may well stand on some nodes only"


def test_a_warning_stays_short(label: Label, api: ObjectApi) -> None:
    for number in range(10):
        api.add_node(f"m{number}", {HOSTNAME: "x"})
    result = label(topology=[{"nodes": ["n1"], "zone": "a"}])
    assert "m0, m1, m2, m3, m4 and 7 more." in str(result["warnings"])
    assert len(result["incomplete"][ZONE]) == 12


def test_check_mode_lets_the_server_judge_and_writes_nothing(label: Label, api: ObjectApi) -> None:
    task: dict[str, Any] = {"topology": [{"nodes": ["n1"], "zone": "a"}]}
    predicted = label(check=True, **task)
    assert labels(api, "n1") == {}
    assert [write.query["dryRun"] for write in api.writes()] == ["All"]
    done = label(**task)
    assert predicted["changes"] == done["changes"]
    assert predicted["incomplete"] == done["incomplete"]
    assert not label(check=True, **task)["changed"]


def test_the_diff_shows_what_changes(label: Label, api: ObjectApi) -> None:
    api.add_node("n1", {"rack": "6", "gone": "x", "same": "y"})
    wished = {"rack": "7", "gone": None, "same": "y", "new": "z"}
    result = label(topology=[{"nodes": ["n1"], "labels": wished}], diff=True, check=True)
    assert result["diff"] == {
        "before": {"n1": {"rack": "6", "gone": "x"}},
        "after": {"n1": {"rack": "7", "new": "z"}},
    }
    assert "diff" not in label()

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each mistake in a node_topology task and each refusal of the cluster gives one sentence, and no node is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes import rules
from ansible_collections.virtops.kubevirt.plugins.modules.node_topology import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import refusal, serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NODES, ObjectApi


class Fail(Protocol):
    def __call__(self, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    fake = ObjectApi()
    for name in ("worker1", "worker2", "worker3"):
        fake.add_node(name)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def fail(run_module: ModuleRunner, connection: dict[str, Any]) -> Fail:
    def run(**arguments: Any) -> Result:
        result = run_module(main, **{**connection, **arguments})
        assert result["failed"], result
        assert "\n" not in result["msg"]
        return result

    return run


@pytest.mark.parametrize(
    ("topology", "rules", "words"),
    [
        ([{"nodes": ["worker9"], "zone": "a"}], [], "in topology[0] node worker9 does not exist (is it worker"),
        ([{"nodes": ["zzz"], "zone": "a"}], [], "in topology[0] node zzz does not exist. Correct"),
        ([{"nodes": [], "zone": "a"}], [], "it names no node"),
        ([{"nodes": ["worker1"]}], [], "it names no label"),
        ([{"nodes": ["worker1"], "zone": ""}], [], "is empty"),
        ([{"nodes": ["worker1"], "zone": "scu bcn"}], [], "'scu bcn' cannot be the value"),
        ([{"nodes": ["worker1"], "labels": {"kubernetes.io/hostname": "x"}}], [], "the kubelet sets it"),
        ([{"nodes": ["worker1"], "labels": {"rack": 7}}], [], "the value 7 of rack is no text"),
        (
            [{"nodes": ["worker1"], "zone": "a", "labels": {"topology.kubernetes.io/zone": "b"}}],
            [],
            "topology.kubernetes.io/zone stands twice, as zone and among labels",
        ),
        (
            [{"nodes": ["worker1", "worker2"], "zone": "a"}, {"nodes": ["worker2"], "zone": "b"}],
            [],
            "topology.kubernetes.io/zone of node worker2 is to be a (topology[0]) and b (topology[1])",
        ),
        (
            [{"nodes": ["worker1"], "labels": {"rack": None}}],
            [{"labels": {"rack": "'7'"}}],
            "rack of node worker1 is to be absent (topology[0]) and 7 (rules[0])",
        ),
        ([], [{"condition": "metadata.name"}], "in rules[0] it names no label"),
        ([], [{"labels": {"a b": "metadata.name"}}], "in rules[0] 'a b' cannot be the key"),
        ([], [{"zone": "metadata.["}], "rules[0] has for topology.kubernetes.io/zone the malformed expression"),
        (
            [],
            [{"condition": "nonsense(@)", "zone": "'a'"}],
            "rules[0] cannot be applied to node worker1, Unknown function",
        ),
        ([], [{"zone": "length(metadata.missing)"}], "rules[0] cannot be applied to node worker1"),
        ([], [{"zone": "metadata"}], "rules[0] gives for node worker1 what cannot be"),
        ([], [{"labels": {"rack": 7}}], "rules[0] has for rack no expression but 7"),
    ],
)
def test_mistakes(
    fail: Fail, api: ObjectApi, topology: list[dict[str, Any]], rules: list[dict[str, Any]], words: str
) -> None:
    result = fail(topology=topology, rules=rules)
    assert words in result["msg"]
    assert len(result["error"]["problems"]) == 1
    assert result["msg"].endswith("Correct the task; nothing was written.")
    assert api.writes() == []


def test_all_mistakes_are_told_at_once(fail: Fail) -> None:
    topology = [{"nodes": [f"missing{number}" for number in range(12)], "zone": "a", "labels": {"a b": "c"}}]
    result = fail(topology=topology)
    assert (len(result["error"]["problems"]), result["error"]["problems_left_out"]) == (10, 3)
    assert "Cannot label the nodes, 13 mistakes: " in result["msg"]
    assert "; and 3 more." in result["msg"]


def test_a_missing_right_to_read(fail: Fail, api: ObjectApi) -> None:
    api.forbidden = {"nodes"}
    result = fail(topology=[{"nodes": ["worker1"], "zone": "a"}])
    assert result["error"]["status"] == 403
    assert "Grant the permission" in result["msg"]


@pytest.mark.parametrize("check", [False, True])
def test_a_missing_right_to_write_is_found_in_check_mode_too(fail: Fail, api: ObjectApi, check: bool) -> None:
    api.faults[f"{NODES}/worker2"] = lambda request: refusal(403, "Forbidden", 'User "jane" cannot patch nodes')
    result = fail(topology=[{"nodes": ["worker1", "worker2"], "zone": "a"}], check=check)
    assert "Cannot label node worker2" in result["msg"]
    assert 'User "jane" cannot patch nodes' in result["msg"]
    assert result["error"]["written"] == ([] if check else ["worker1"])
    assert ("1 of 2 nodes were labelled" in result["msg"]) is not check


def test_a_node_that_goes_away_meanwhile(fail: Fail, api: ObjectApi) -> None:
    api.faults[f"{NODES}/worker2"] = lambda request: refusal(404, "NotFound", 'nodes "worker2" not found')
    result = fail(topology=[{"nodes": ["worker2"], "zone": "a"}])
    assert result["error"]["status"] == 404
    assert 'nodes "worker2" not found' in result["msg"]


def test_rules_need_a_library(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "HAS_JMESPATH", False)
    result = fail(rules=[{"zone": "'a'"}])
    assert "(jmespath)" in result["msg"]


def test_without_rules_no_library_is_needed(
    run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "HAS_JMESPATH", False)
    assert run_module(main, **connection, topology=[{"nodes": ["worker1"], "zone": "a"}])["changed"]

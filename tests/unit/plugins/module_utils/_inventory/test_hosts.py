# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each node is one host, under a name and an address that lead to no other machine than it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.addresses import host_problem
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.groups import GROUP_KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.hosts import (
    HostRules,
    NodeHost,
    hosts,
    remarks,
    require_labels,
    selected,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, MAINTAINED, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=timezone.utc)
MANAGER = "virtops.kubevirt"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
RULES = HostRules(
    hostnames=["name"],
    address_types=["InternalIP", "Hostname", "ExternalIP"],
    annotations=[],
    group_by=list(GROUP_KINDS),
    group_by_labels=[],
    group_prefix="",
    heartbeat_age=180,
)
Object = dict[str, Any]


def node(name: str = "n1", labels: Object | None = None, annotations: Object | None = None, **fields: Any) -> Object:
    return {"metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}}, **fields}


def at(*addresses: tuple[str, str]) -> Object:
    return {"addresses": [{"type": kind, "address": text} for kind, text in addresses]}


def made(*nodes: Object, **rules: Any) -> list[NodeHost]:
    return hosts(nodes, replace(RULES, **rules), NOW, MANAGER)


def names(*nodes: Object, **rules: Any) -> set[str]:
    """Of the groups of a single host, without those that all nodes have, as none runs virt-handler."""
    (host,) = made(*nodes, **rules)
    return {group.name for group in host.groups} - {"kubernetes_nodes", "kubevirt_absent"}


@pytest.mark.parametrize(
    ("addresses", "kinds", "expected"),
    [
        ([], ["InternalIP"], None),
        ([("Hostname", "a.example"), ("InternalIP", "10.0.0.1")], ["InternalIP", "Hostname"], "10.0.0.1"),
        ([("Hostname", "a.example"), ("InternalIP", "10.0.0.1")], ["Hostname", "InternalIP"], "a.example"),
        ([("InternalIP", "fd00::1"), ("InternalIP", "10.0.0.1")], ["InternalIP"], "fd00::1"),
        ([("ExternalIP", "198.51.100.1")], ["InternalIP", "Hostname"], None),
        ([("InternalIP", "10.0.0.1")], [], None),
    ],
)
def test_the_first_address_of_the_first_type_is_taken(
    addresses: list[tuple[str, str]], kinds: list[str], expected: str | None
) -> None:
    (host,) = made(node(status=at(*addresses)), address_types=kinds)
    assert host.variables.get("ansible_host") == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("InternalIP", "-oProxyCommand=sh"),
        ("InternalIP", "fe80::1%$(sh)"),
        ("InternalIP", "127.0.0.1"),
        ("InternalIP", "::1"),
        ("InternalIP", "::ffff:127.0.0.1"),
        ("InternalIP", "0.0.0.0"),
        ("InternalIP", "a.example"),
        ("Hostname", "-oProxyCommand=sh"),
        ("Hostname", "localhost"),
        ("Hostname", "LOCALHOST.localdomain"),
        ("Hostname", "127.1"),
        ("Hostname", "0x7f000001"),
        ("Hostname", "2130706433"),
        ("Hostname", "a b"),
        ("Hostname", "a\nb"),
        ("Hostname", "{{ a }}"),
        ("Hostname", ""),
        ("Hostname", "a" * 254),
    ],
)
def test_what_leads_to_no_node_is_passed_over_and_told(kind: str, text: str) -> None:
    bad = node(status=at((kind, text), ("ExternalIP", "198.51.100.1")))
    (host,) = made(bad)
    assert host.variables["ansible_host"] == "198.51.100.1"
    (remark,) = remarks([bad], RULES)
    assert remark.startswith("Addresses of node n1 are passed over: its ")
    assert remark.isprintable()


def test_two_nodes_at_one_address_are_told() -> None:
    twins = [node(name, status=at(("InternalIP", "10.0.0.1"))) for name in ("n1", "n2")]
    (remark,) = remarks(twins, RULES)
    assert remark.startswith("Nodes n1, n2 have the same address 10.0.0.1")


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["name"], "n1"),
        (["Hostname", "name"], "a.example"),
        (["ExternalDNS", "label:short"], "a"),
        (["label:none", "InternalIP"], "10.0.0.1"),
    ],
)
def test_a_host_is_called_by_the_first_that_there_is(sources: list[str], expected: str) -> None:
    one = node(labels={"short": "a"}, status=at(("InternalIP", "10.0.0.1"), ("Hostname", "a.example")))
    (host,) = made(one, hostnames=sources)
    assert (host.name, host.variables["drain_node"], host.variables["node_name"]) == (expected, "n1", "n1")


@pytest.mark.parametrize(
    ("nodes", "sources", "problem"),
    [
        ([node()], ["nam"], "hostnames has 'nam', which is none of name, "),
        ([node()], ["label:a b"], "hostnames has 'label:a b'"),
        ([node()], ["ExternalDNS"], "node n1 has none of ExternalDNS"),
        ([node("localhost")], ["name"], "would be called 'localhost', which is this machine's name"),
        ([node("127.0.0.1")], ["name"], "which is no address of another machine"),
        ([node("-a")], ["name"], "which is no name of a host"),
        ([node("a", {"b": "c"}), node("d", {"b": "c"})], ["label:b"], "nodes a, d would all be host c"),
    ],
)
def test_names_that_cannot_be_are_refused(nodes: list[Object], sources: list[str], problem: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        made(*nodes, hostnames=sources)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("one", "rules", "expected"),
    [
        (node(), {}, set()),
        (node(labels={ZONE: "bcn", REGION: "iberia"}), {}, {"zone_bcn", "region_iberia"}),
        (node(labels={ZONE: "bcn", REGION: "iberia"}), {"group_by": ["region"]}, {"region_iberia"}),
        (
            node(labels={"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}),
            {},
            {"role_worker", "role_gpu"},
        ),
        (node(spec={"unschedulable": True}), {}, {"cordoned"}),
        (node(labels={MAINTAINED: "r1"}), {}, {"maintained_r1"}),
        (
            node(labels={"rack": "7", "ssd": ""}),
            {"group_by_labels": ["rack", "ssd", "none"]},
            {"label_rack_7", "label_ssd"},
        ),
    ],
)
def test_a_node_is_in_the_groups_of_what_it_is(one: Object, rules: Object, expected: set[str]) -> None:
    assert names(one, **rules) == expected


def marked(owner: str, *, unschedulable: bool, manager: str = MANAGER) -> Object:
    fields: Object = {"f:spec": {"f:unschedulable": {}}}
    one = node(
        annotations={CORDON_NOTE: Mark(owner, "2026-01-01T00:00:00Z", "{{ 7*7 }}").to_text()},
        spec={"unschedulable": unschedulable},
    )
    one["metadata"]["managedFields"] = [{"manager": manager, "time": "t", "fieldsV1": fields}]
    return one


def test_a_run_has_the_nodes_that_it_has_cordoned() -> None:
    (host,) = made(marked("r1", unschedulable=True), group_prefix="p_")
    assert {(group.name, group.parent) for group in host.groups} == {
        ("p_kubernetes_nodes", ""),
        ("p_cordoned", ""),
        ("p_kubevirt_absent", ""),
        ("p_in_maintenance_r1", "p_in_maintenance"),
    }
    assert host.variables["node_cordon"]["by"] == "r1"
    assert names(marked("r1", unschedulable=False)) == set()
    assert names(marked("r1", unschedulable=True, manager="kubectl")) == {"cordoned"}


def test_an_owner_without_a_name_has_no_group_of_its_own() -> None:
    assert names(marked("", unschedulable=True)) == {"cordoned", "in_maintenance"}


def test_variables_are_few() -> None:
    """KubeVirt's node labeller writes hundreds of labels."""
    labels = {"cpu-feature.node.kubevirt.io/vmx": "true", "rack": "7"}
    (host,) = made(node(labels=labels, annotations={"a": "1", "b": "2"}), annotations=["b", "c"])
    assert host.variables["node_labels"] == {"rack": "7"}
    assert host.variables["node_annotations"] == {"b": "2"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [(None, ["a", "b"]), ("metadata.labels.rack == '7'", ["a"]), ("spec.none", [])],
)
def test_an_expression_selects(expression: str | None, expected: list[str]) -> None:
    nodes = [node("a", {"rack": "7"}), node("b")]
    assert [one["metadata"]["name"] for one in selected(nodes, expression)] == expected


@pytest.mark.parametrize("expression", ["metadata[", "", "length(spec.none)"])
def test_an_expression_that_is_none_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^Cannot select nodes: the option expression .* Give a JMESPath"):
        selected([node()], expression)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (
            "topology.kubernetes.io/hostname",
            "no node has the label topology.kubernetes.io/hostname (do you mean kubernetes.io/hostname?)",
        ),
        ("rak", "no node has the label rak (do you mean rack?)"),
        ("quite-another", "no node has the label quite-another"),
        ("a b", "'a b' cannot be the key of a label"),
    ],
)
def test_a_label_that_no_node_has_is_refused(key: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        require_labels([node(labels={"rack": "7", "kubernetes.io/hostname": "n1"})], ["rack", key])
    assert raised.value.problems == [problem]


def test_without_nodes_nothing_is_known_of_labels() -> None:
    require_labels([], ["rack"])
    with pytest.raises(InvalidRequest):
        require_labels([], ["a b"])


NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?", fullmatch=True).filter(
    lambda text: not host_problem(text)
)
TEXTS = st.text(max_size=12)


@given(st.lists(st.tuples(NAMES, st.dictionaries(TEXTS, TEXTS, max_size=3), TEXTS), unique_by=lambda entry: entry[0]))
def test_every_node_is_exactly_one_host(entries: list[tuple[str, Object, str]]) -> None:
    nodes = [node(name, labels, status=at(("InternalIP", address))) for name, labels, address in entries]
    found = made(*nodes)
    assert [host.node for host in found] == [host.name for host in found] == [name for name, _labels, _a in entries]
    assert all(host.groups[0].name == "kubernetes_nodes" for host in found)

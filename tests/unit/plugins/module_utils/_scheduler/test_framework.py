# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of plugins, the message, and promises made to other pods."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._scheduler.asking import fit, message, reasons
from unit.plugins.module_utils._scheduler.builders import HOST, Json, apart, near, node, pod, spread, term

# As they stand in the table of upstream's plugins, without those that are reported but not evaluated.
ORDER = """
NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits
VolumeBinding VolumeZone PodTopologySpread InterPodAffinity NodeDeclaredFeatures
""".split()

APP = {"matchLabels": {"app": "x"}}


def test_order_of_the_filters() -> None:
    assert [plugin.name for plugin in FILTERS] == ORDER


def test_the_first_plugin_that_a_node_fails_decides_its_reason() -> None:
    nodes = [node("n", cordoned=True, taints=[{"key": "k", "effect": "NoSchedule"}])]
    assert reasons(pod(nodeSelector={"no": "no"}, requests={"cpu": "9"}), nodes=nodes) == {
        "n": ["node(s) were unschedulable"]
    }


def test_counts_sort_as_text() -> None:
    nodes = [node(f"small-{number}") for number in range(10)] + [
        node(f"cordoned-{number}", cordoned=True) for number in range(2)
    ]
    text = "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable."
    assert message(pod(requests={"cpu": "9"}), nodes=nodes) == text


def test_a_rejection_stands_on_every_node_and_is_not_counted() -> None:
    nodes = [node("a"), node("b", cordoned=True)]
    wanted = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    assert set(map(tuple, reasons(wanted, nodes=nodes).values())) == {('persistentvolumeclaim "data" not found',)}


def test_the_message_is_empty_when_a_node_fits() -> None:
    assert message(pod(), nodes=[node("a"), node("b", cordoned=True)]) == ""


def test_no_nodes() -> None:
    assert verdict({}, pod()) == {"fit": [], "unfit": {}, "message": "no nodes available to schedule pods"}


def test_gates_are_named_and_the_rest_is_answered_as_if_they_were_gone() -> None:
    gated = pod(schedulingGates=[{"name": "example.org/wait"}])
    assert verdict({"nodes": [node("a")]}, gated) == {
        "fit": ["a"],
        "unfit": {},
        "message": "",
        "gated": ["example.org/wait"],
    }


def test_what_is_not_evaluated_is_said() -> None:
    answer = verdict({"nodes": [node("a")]}, pod(resourceClaims=[{"name": "gpu"}]))
    assert answer["unevaluated"] == ["ResourceClaim gpu of the pod (plugin DynamicResources)"]


def promised(name: str = "p", priority: int = 0, **fields: object) -> Json:
    return pod(name, status={"nominatedNodeName": "a"}, priority=priority, **fields)


NODES = [node("a"), node("b")]
PROMISES = [
    ("as important", promised(requests={"cpu": "4"}), {"priority": 0}, ["b"]),
    ("more important", promised(priority=5, requests={"cpu": "4"}), {"priority": 1}, ["b"]),
    ("less important", promised(requests={"cpu": "4"}), {"priority": 1}, ["a", "b"]),
    ("to the pod itself", promised("new", requests={"cpu": "4"}), {}, ["a", "b"]),
    ("that leaves room", promised(requests={"cpu": "1"}), {}, ["a", "b"]),
]


@pytest.mark.parametrize(("_what", "other", "fields", "names"), PROMISES, ids=[case[0] for case in PROMISES])
def test_nodes_promised_to_other_pods(_what: str, other: Json, fields: Json, names: list[str]) -> None:
    assert fit(pod(requests={"cpu": "2"}, **fields), nodes=NODES, pods=[other]) == names


def test_a_promised_pod_is_no_company() -> None:
    other = promised(labels={"app": "x"})
    assert fit(pod(affinity=near(term(HOST, APP))), nodes=NODES, pods=[other]) == []


def test_a_promised_pod_is_kept_apart_from() -> None:
    other = promised(labels={"app": "x"})
    assert fit(pod(affinity=apart(term(HOST, APP))), nodes=NODES, pods=[other]) == ["b"]


def test_a_promised_pod_that_wants_to_be_alone_is_overlooked_by_one_that_does_not_care() -> None:
    # The plugin had nothing to say about the cluster as it is, so it is not asked again.
    other = promised(affinity=apart(term(HOST, APP)))
    assert fit(pod(labels={"app": "x"}), nodes=NODES, pods=[other]) == ["a", "b"]


@pytest.mark.parametrize(("key", "names"), [(HOST, []), ("topology.kubernetes.io/hostname", ["a", "b"])])
def test_nor_does_a_rule_about_a_label_that_no_node_has_make_it_care(key: str, names: list[str]) -> None:
    lonely = [pod(f"p{name}", on=name, affinity=apart(term(key, APP))) for name in "ab"]
    other = promised(affinity=apart(term(HOST, APP)))
    assert fit(pod(labels={"app": "x"}), nodes=NODES, pods=[*lonely, other]) == names


def test_a_promised_pod_counts_for_spreading_on_its_node_only() -> None:
    other = promised(labels={"app": "x"})
    wanted = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(HOST, APP)])
    assert fit(wanted, nodes=NODES, pods=[other]) == ["b"]


ODD = [({}, {}), ({"matchLabels": {"app": "x"}}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})]


@pytest.mark.parametrize(("selector", "fields"), ODD)
def test_a_promised_pod_counts_for_spreading_where_a_running_one_would_not(selector: Json, fields: Json) -> None:
    wanted = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(HOST, selector)])
    running = pod("p", on="a", labels={"app": "x"}, **fields)
    assert fit(wanted, nodes=NODES, pods=[running]) == ["a", "b"]
    assert fit(wanted, nodes=NODES, pods=[promised(labels={"app": "x"}, **fields)]) == ["b"]


def test_but_not_if_it_is_of_another_namespace() -> None:
    wanted = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(HOST, {})])
    other = promised(labels={"app": "x"}, namespace="other")
    assert fit(wanted, nodes=NODES, pods=[other]) == ["a", "b"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.pod_topology_spread import (
    MISSING_LABEL,
    REASON,
)

from unit.plugins.module_utils._scheduler.asking import fit, reasons
from unit.plugins.module_utils._scheduler.builders import HOST, Json, expression, node, pod, requires, spread

APP = {"matchLabels": {"app": "x"}}
LABELS = {"app": "x"}
NODES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")]


def crowd(*places: str, **fields: Any) -> list[Json]:
    return [pod(f"p{number}", on=place, labels=LABELS, **fields) for number, place in enumerate(places)]


def asking(*constraints: Json, **fields: Any) -> Json:
    return pod(**{"labels": LABELS, **fields}, topologySpreadConstraints=list(constraints))


CASES: list[tuple[str, Json, list[Json], list[str]]] = [
    ("empty", asking(spread("zone", APP)), [], ["a1", "a2", "b1"]),
    ("one ahead", asking(spread("zone", APP)), crowd("a1"), ["b1"]),
    ("within a larger skew", asking(spread("zone", APP, 2)), crowd("a1"), ["a1", "a2", "b1"]),
    (
        "terminating pods do not count",
        asking(spread("zone", APP)),
        crowd("a1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ["a1", "a2", "b1"],
    ),
    ("nor do other namespaces", asking(spread("zone", APP)), crowd("a1", namespace="other"), ["a1", "a2", "b1"]),
    (
        "a pod that does not match itself adds none",
        asking(spread("zone", APP), labels={}),
        crowd("a1"),
        ["a1", "a2", "b1"],
    ),
    ("a null selector matches nothing", asking(spread("zone", None)), crowd("a1", "a1"), ["a1", "a2", "b1"]),
    ("a selector of everything counts nobody", asking(spread("zone", {})), crowd("a1", "a1"), ["a1", "a2", "b1"]),
    ("too few domains make the minimum zero", asking(spread("zone", APP, minDomains=3)), crowd("a1", "b1"), []),
    ("enough domains", asking(spread("zone", APP, minDomains=2)), crowd("a1", "b1"), ["a1", "a2", "b1"]),
    ("affinity is honoured", asking(spread("zone", APP), nodeSelector={"zone": "a"}), crowd("a1"), ["a1", "a2"]),
    (
        "or ignored",
        asking(spread("zone", APP, nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "a"}),
        crowd("a1"),
        [],
    ),
    (
        "label keys narrow the selector",
        asking(spread("zone", APP, matchLabelKeys=["rev", "lacking"]), labels={**LABELS, "rev": "2"}),
        crowd("a1"),
        ["a1", "a2", "b1"],
    ),
    (
        "several constraints must all hold",
        asking(spread("zone", APP), spread(HOST, APP)),
        crowd("a1", "b1", "a1", "b1"),
        ["a2"],
    ),
]


@pytest.mark.parametrize(("_what", "wanted", "pods", "names"), CASES, ids=[case[0] for case in CASES])
def test_spreading(_what: str, wanted: Json, pods: list[Json], names: list[str]) -> None:
    assert fit(wanted, nodes=NODES, pods=pods) == names


def test_a_node_without_the_label_says_so() -> None:
    assert reasons(asking(spread("zone", APP)), nodes=NODES)["none"] == [MISSING_LABEL]


def test_no_node_with_the_label() -> None:
    assert reasons(asking(spread("rack", APP)), nodes=[node("n")]) == {"n": [MISSING_LABEL]}


def test_an_earlier_skew_hides_a_missing_label() -> None:
    nodes = [node("a", zone="a", rack="r"), node("b", zone="b"), node("c", zone="c", rack="r")]
    wanted = asking(spread("zone", APP), spread("rack", APP))
    # Only a and c have both labels, so b is not counted: its zone has nobody, and its rack is missing.
    assert reasons(wanted, nodes=nodes, pods=crowd("a"))["b"] == [MISSING_LABEL]
    assert reasons(wanted, nodes=nodes, pods=crowd("a"))["a"] == [REASON]


def test_the_minimum_is_over_nodes_with_all_labels() -> None:
    nodes = [node("a", zone="a", rack="r"), node("b", zone="b")]
    wanted = asking(spread("zone", APP), spread("rack", APP, 5))
    assert fit(wanted, nodes=nodes, pods=crowd("a")) == ["a"]


def test_taints_count_only_where_asked_and_a_cordon_is_none() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    nodes = [node("a", zone="a"), node("b", zone="b", taints=[taint]), node("c", zone="c", cordoned=True)]
    honoured = spread("zone", APP, nodeTaintsPolicy="Honor")
    assert fit(asking(spread("zone", APP)), nodes=nodes[:2], pods=crowd("a")) == []
    assert fit(asking(honoured), nodes=nodes[:2], pods=crowd("a")) == ["a"]
    assert fit(asking(honoured), nodes=nodes, pods=crowd("a")) == []


def test_a_node_that_is_not_counted_may_be_in_a_domain_that_is() -> None:
    nodes = [node("a1", zone="a"), node("a2", zone="a", kind="new"), node("b", zone="b")]
    policy = spread("zone", APP, nodeAffinityPolicy="Honor")
    wanted = asking(policy, affinity=requires({"matchExpressions": [expression("kind", "DoesNotExist")]}))
    assert reasons(wanted, nodes=nodes, pods=crowd("a1"))["a1"] == [REASON]
    assert fit(wanted, nodes=nodes, pods=crowd("a2")) == ["a1", "b"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes say by themselves: cordon, name, taints, labels and names, features."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters import (
    node_affinity,
    node_declared_features,
    node_name,
    node_unschedulable,
    taint_toleration,
)

from unit.plugins.module_utils._scheduler.asking import fit, message, reasons
from unit.plugins.module_utils._scheduler.builders import expression, node, pod, requires

CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
GPU_TAINT = {"key": "gpu", "value": "big", "effect": "NoSchedule"}


def test_cordon_and_its_taint_are_two_checks() -> None:
    nodes = [node("cordoned", cordoned=True), node("tainted", taints=[CORDON_TAINT]), node("free")]
    found = reasons(pod(), nodes=nodes)
    assert found == {"cordoned": [node_unschedulable.REASON], "tainted": [taint_toleration.REASON], "free": []}


def test_tolerating_the_cordon_covers_both() -> None:
    nodes = [node("cordoned", cordoned=True, taints=[CORDON_TAINT])]
    assert fit(pod(tolerations=[{"operator": "Exists", "key": CORDON_TAINT["key"]}]), nodes=nodes) == ["cordoned"]


def test_conditions_of_nodes_are_ignored() -> None:
    assert fit(pod(), nodes=[node("n", status={"conditions": [{"type": "Ready", "status": "False"}]})]) == ["n"]


def test_a_pod_that_names_its_node_fits_no_other() -> None:
    assert reasons(pod(nodeName="a"), nodes=[node("a"), node("b")]) == {"a": [], "b": [node_name.REASON]}


TOLERATIONS: list[tuple[str, list[dict[str, Any]], bool]] = [
    ("none", [], False),
    ("everything", [{"operator": "Exists"}], True),
    ("the key", [{"key": "gpu", "operator": "Exists"}], True),
    ("key and value", [{"key": "gpu", "value": "big"}], True),
    ("another value", [{"key": "gpu", "operator": "Equal", "value": "small"}], False),
    ("another effect", [{"key": "gpu", "value": "big", "effect": "NoExecute"}], False),
    ("the effect of all keys", [{"operator": "Exists", "effect": "NoSchedule"}], True),
    ("an operator that is not enabled", [{"key": "gpu", "operator": "Gt", "value": "1"}], False),
]


@pytest.mark.parametrize(("_what", "tolerations", "fits"), TOLERATIONS, ids=[case[0] for case in TOLERATIONS])
def test_tolerations(_what: str, tolerations: list[dict[str, Any]], fits: bool) -> None:
    assert fit(pod(tolerations=tolerations), nodes=[node("n", taints=[GPU_TAINT])]) == (["n"] if fits else [])


def test_no_execute_keeps_out_and_prefer_no_schedule_does_not() -> None:
    nodes = [
        node("a", taints=[{"key": "k", "effect": "NoExecute"}]),
        node("b", taints=[{"key": "k", "effect": "PreferNoSchedule"}]),
    ]
    assert fit(pod(), nodes=nodes) == ["b"]


NODES = [node("a", zone="x", rank="5"), node("b", zone="y", rank="no"), node("c")]

AFFINITIES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("selector", {"nodeSelector": {"zone": "x"}}, ["a"]),
    ("selector of an empty value", {"nodeSelector": {"zone": ""}}, []),
    ("in", {"affinity": requires({"matchExpressions": [expression("zone", "In", "x", "y")]})}, ["a", "b"]),
    (
        "not in matches absence",
        {"affinity": requires({"matchExpressions": [expression("zone", "NotIn", "x")]})},
        ["b", "c"],
    ),
    ("exists", {"affinity": requires({"matchExpressions": [expression("zone", "Exists")]})}, ["a", "b"]),
    ("does not exist", {"affinity": requires({"matchExpressions": [expression("zone", "DoesNotExist")]})}, ["c"]),
    ("greater", {"affinity": requires({"matchExpressions": [expression("rank", "Gt", "4")]})}, ["a"]),
    ("less", {"affinity": requires({"matchExpressions": [expression("rank", "Lt", "5")]})}, []),
    (
        "terms are alternatives",
        {
            "affinity": requires(
                {"matchExpressions": [expression("zone", "In", "x")]},
                {"matchExpressions": [expression("zone", "In", "y")]},
            )
        },
        ["a", "b"],
    ),
    (
        "expressions add up",
        {"affinity": requires({"matchExpressions": [expression("zone", "Exists"), expression("rank", "In", "5")]})},
        ["a"],
    ),
    (
        "selector and terms add up",
        {"nodeSelector": {"zone": "y"}, "affinity": requires({"matchExpressions": [expression("rank", "In", "5")]})},
        [],
    ),
    ("an empty term matches nothing", {"affinity": requires({})}, []),
    ("no terms match nothing", {"affinity": requires()}, []),
    (
        "a bad operand kills its own term only",
        {
            "affinity": requires(
                {"matchExpressions": [expression("rank", "Gt", "x")]},
                {"matchExpressions": [expression("zone", "In", "y")]},
            )
        },
        ["b"],
    ),
    ("by name", {"affinity": requires({"matchFields": [expression("metadata.name", "In", "c")]})}, ["c"]),
    ("not by name", {"affinity": requires({"matchFields": [expression("metadata.name", "NotIn", "c")]})}, ["a", "b"]),
]


@pytest.mark.parametrize(("_what", "spec", "names"), AFFINITIES, ids=[case[0] for case in AFFINITIES])
def test_node_affinity(_what: str, spec: dict[str, Any], names: list[str]) -> None:
    found = reasons(pod(**spec), nodes=NODES)
    assert [name for name, why in found.items() if not why] == names
    assert {why[0] for why in found.values() if why} <= {
        node_affinity.REASON,
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    }


def test_names_in_every_term_cut_the_list_of_nodes() -> None:
    named = pod(
        affinity=requires(
            {
                "matchFields": [expression("metadata.name", "In", "a")],
                "matchExpressions": [expression("zone", "In", "y")],
            }
        )
    )
    left_out = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert reasons(named, nodes=NODES) == {"a": [node_affinity.REASON], "b": [left_out], "c": [left_out]}
    assert message(named, nodes=NODES) == f"0/3 nodes are available: 1 {node_affinity.REASON}, 2 {left_out}."


def test_one_term_without_a_name_cuts_nothing() -> None:
    free = pod(
        affinity=requires(
            {"matchFields": [expression("metadata.name", "In", "z")]},
            {"matchExpressions": [expression("zone", "In", "z")]},
        )
    )
    assert set(map(tuple, reasons(free, nodes=NODES).values())) == {(node_affinity.REASON,)}


def test_names_that_exclude_each_other_reject_the_pod() -> None:
    fields = [expression("metadata.name", "In", "a"), expression("metadata.name", "In", "b")]
    torn = pod(affinity=requires({"matchFields": fields}))
    assert message(torn, nodes=NODES) == f"0/3 nodes are available: {node_affinity.CONFLICT}."
    assert set(map(tuple, reasons(torn, nodes=NODES).values())) == {(node_affinity.CONFLICT,)}


def test_features_a_kubelet_must_declare() -> None:
    nodes = [node("old"), node("new", status={"declaredFeatures": ["UserNamespacesHostNetworkSupport"]})]
    assert reasons(pod(hostNetwork=True, hostUsers=False), nodes=nodes) == {
        "old": [node_declared_features.REASON],
        "new": [],
    }
    rules = [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]
    assert fit(pod(containers=rules), nodes=nodes) == []

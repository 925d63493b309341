# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.inter_pod_affinity import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
)

from unit.plugins.module_utils._scheduler.asking import fit, message, reasons
from unit.plugins.module_utils._scheduler.builders import HOST, Json, apart, near, node, pod, term

APP = {"matchLabels": {"app": "x"}}
DB = {"matchLabels": {"app": "x", "tier": "db"}}
NODES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")]
NAMESPACES = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("default", "other")]

CASES: list[tuple[str, Json, Json, list[str]]] = [
    # The pod asked for, the one that runs on a1 with app=x, the nodes that fit.
    ("near it in the zone", pod(affinity=near(term("zone", APP))), {}, ["a1", "a2"]),
    ("near it on the host", pod(affinity=near(term(HOST, APP))), {}, ["a1"]),
    ("apart from it in the zone", pod(affinity=apart(term("zone", APP))), {}, ["b1", "none"]),
    ("apart from it on the host", pod(affinity=apart(term(HOST, APP))), {}, ["a2", "b1", "none"]),
    (
        "terminating, it still counts",
        pod(affinity=apart(term("zone", APP))),
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        ["b1", "none"],
    ),
    (
        "its own namespace is meant",
        pod(affinity=apart(term("zone", APP))),
        {"namespace": "other"},
        ["a1", "a2", "b1", "none"],
    ),
    (
        "named namespaces",
        pod(affinity=apart(term("zone", APP, namespaces=["other"]))),
        {"namespace": "other"},
        ["b1", "none"],
    ),
    (
        "selected namespaces",
        pod(affinity=apart(term("zone", APP, namespaceSelector={"matchLabels": {"team": "other"}}))),
        {"namespace": "other"},
        ["b1", "none"],
    ),
    (
        "all namespaces",
        pod(affinity=apart(term("zone", APP, namespaceSelector={}))),
        {"namespace": "unlisted"},
        ["b1", "none"],
    ),
    (
        "names and selector are a union",
        pod(
            affinity=apart(
                term("zone", APP, namespaces=["default"], namespaceSelector={"matchLabels": {"team": "other"}})
            )
        ),
        {},
        ["b1", "none"],
    ),
    ("a null selector matches nobody", pod(affinity=apart(term("zone", None))), {}, ["a1", "a2", "b1", "none"]),
    ("one pod must match all terms", pod(affinity=near(term("zone", APP), term("zone", DB))), {}, []),
    (
        "terms of anti-affinity count one by one",
        pod(affinity=apart(term("zone", DB), term(HOST, APP))),
        {},
        ["a2", "b1", "none"],
    ),
]


@pytest.mark.parametrize(("_what", "wanted", "fields", "names"), CASES, ids=[case[0] for case in CASES])
def test_terms(_what: str, wanted: Json, fields: Json, names: list[str]) -> None:
    running = pod("p", on="a1", labels={"app": "x"}, **fields)
    assert fit(wanted, nodes=NODES, pods=[running], namespaces=NAMESPACES) == names


def test_reasons_come_in_the_order_of_the_checks() -> None:
    running = [
        pod("wanted", on="a1", labels={"app": "x"}),
        pod("unwanted", on="a2", labels={"app": "y"}),
        pod("loner", on="a1", affinity=apart(term(HOST, {"matchLabels": {"app": "z"}}))),
    ]
    affinity: dict[str, Any] = {**near(term("zone", APP)), **apart(term(HOST, {"matchLabels": {"app": "y"}}))}
    found = reasons(pod(labels={"app": "z"}, affinity=affinity), nodes=NODES, pods=running)
    assert found == {"a1": [EXISTING_ANTI_AFFINITY], "a2": [ANTI_AFFINITY], "b1": [AFFINITY], "none": [AFFINITY]}


FIRST = near(term("zone", APP))


def test_the_first_of_a_series_may_start_anywhere_with_the_label() -> None:
    assert fit(pod(labels={"app": "x"}, affinity=FIRST), nodes=NODES) == ["a1", "a2", "b1"]


def test_but_only_if_it_matches_its_own_terms() -> None:
    assert fit(pod(affinity=FIRST), nodes=NODES) == []


def test_a_match_on_a_node_without_the_label_is_no_match() -> None:
    running = pod("p", on="none", labels={"app": "x"})
    assert fit(pod(labels={"app": "x"}, affinity=FIRST), nodes=NODES, pods=[running]) == ["a1", "a2", "b1"]


def test_a_match_anywhere_else_ends_the_exception() -> None:
    running = pod("p", on="b1", labels={"app": "x"})
    assert fit(pod(labels={"app": "x"}, affinity=FIRST), nodes=NODES, pods=[running]) == ["b1"]


def test_others_keep_this_one_away_by_the_labels_of_its_namespace() -> None:
    loner = pod(
        "p",
        on="a1",
        namespace="other",
        affinity=apart(term("zone", APP, namespaceSelector={"matchLabels": {"team": "default"}})),
    )
    assert fit(pod(labels={"app": "x"}), nodes=NODES, pods=[loner], namespaces=NAMESPACES) == ["b1", "none"]
    assert fit(pod(labels={"app": "x"}), nodes=NODES, pods=[loner]) == ["a1", "a2", "b1", "none"]


def test_a_node_without_the_label_hosting_the_match_passes_anti_affinity() -> None:
    running = pod("p", on="none", labels={"app": "x"})
    assert fit(pod(affinity=apart(term("zone", APP))), nodes=NODES, pods=[running]) == ["a1", "a2", "b1", "none"]


def test_a_selector_that_cannot_be_parsed_rejects_the_pod() -> None:
    broken = apart(term("zone", {"matchLabels": {"app": "not a label"}}))
    assert message(pod(affinity=broken), nodes=NODES).startswith("0/4 nodes are available: parsing pod: ")
    assert fit(pod(), nodes=NODES, pods=[pod("p", on="a1", affinity=broken)]) == ["a1", "a2", "b1", "none"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables that a state keeps, against the plain definition of what they hold."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node import node as parse_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant, occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parse_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    LabelSelector,
    Requirement,
    label_selector,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables import pod_table
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.labels import LabelColumn, LabelIndex
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import Memo, NodeTable
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import (
    PodCounts,
    PodMatch,
    PodQuery,
    PodTable,
)

from unit.plugins.module_utils._scheduler.builders import expression, node, pod, requires

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.sets(st.sampled_from("xyz"), min_size=1)) if operator in ("In", "NotIn") else ()
    return Requirement(draw(st.sampled_from("ab")), operator, tuple(sorted(values)))


SELECTORS = st.builds(LabelSelector, st.lists(requirements(), max_size=3).map(tuple), st.booleans())


@given(st.lists(LABELS, max_size=8), requirements())
def test_a_column_answers_for_all_objects_at_once(objects: list[dict[str, str]], requirement: Requirement) -> None:
    column = LabelColumn(labels.get(requirement.key) for labels in objects)
    assert list(column.matches(requirement)) == [requirement.matches(labels) for labels in objects]


def test_a_column_compares_numbers() -> None:
    column = LabelColumn(["1", "10", None, "x"])
    assert list(column.matches(Requirement("rank", "Gt", ("9",)))) == [False, True, False, False]


@given(st.lists(SELECTORS, max_size=6, unique=True), LABELS, st.integers(0, 6))
def test_an_index_leaves_out_only_what_cannot_match(
    selectors: list[LabelSelector], labels: dict[str, str], gone: int
) -> None:
    index: LabelIndex[LabelSelector] = LabelIndex()
    filed = {selector: index.add(selector, selector) for selector in selectors}
    for selector in selectors[:gone]:
        index.remove(filed[selector], selector)
    found = list(index.candidates(labels))
    left = selectors[gone:]
    assert {selector for selector in left if selector.matches(labels)} <= set(found) <= set(left)
    assert len(found) == len(set(found))


PODS = st.builds(
    lambda number, namespace, labels, leaving: occupant(
        pod(f"p{number}", namespace=namespace, labels=labels, metadata={"deletionTimestamp": leaving})
    ),
    st.integers(),
    st.sampled_from(["one", "two"]),
    LABELS,
    st.sampled_from([None, "2026-01-01T00:00:00Z"]),
)
MATCHES = st.builds(PodMatch, SELECTORS, st.sampled_from([None, frozenset(), frozenset({"one"})]))
QUERIES = st.builds(PodQuery, st.lists(MATCHES, min_size=1, max_size=2).map(tuple), st.booleans())


@given(st.lists(st.tuples(PODS, st.integers(0, 2)), max_size=8), st.lists(QUERIES, min_size=1, max_size=4), st.data())
def test_counts_stay_what_counting_would_give(
    arrivals: list[tuple[Occupant, int]], queries: list[PodQuery], data: st.DataObject
) -> None:
    table = PodTable()
    counts = PodCounts(table, 3)
    slots = []
    for entry, place in arrivals:
        for query in data.draw(st.sets(st.sampled_from(queries))):
            counts.of(query)
        slots.append(table.add(entry, place))
        counts.update(entry, place, 1)
    gone = data.draw(st.integers(0, len(arrivals)))
    for slot, (entry, place) in zip(slots[:gone], arrivals, strict=False):
        table.remove(slot)
        counts.update(entry, place, -1)
    for query in queries:
        expected = [
            sum(query.includes(entry) for entry, place in arrivals[gone:] if place == here) for here in range(3)
        ]
        assert list(counts.of(query)) == expected == list(table.count(query, 3))


def test_counts_asked_for_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_table, "_KEPT", 1)
    table = PodTable()
    counts = PodCounts(table, 1)
    queries = [PodQuery((PodMatch(label_selector({"matchLabels": {"a": value}}), None),)) for value in "xy"]
    entry = occupant(pod("p", labels={"a": "x"}))
    for query in queries:
        counts.of(query)
    table.add(entry, 0)
    counts.update(entry, 0, 1)
    assert [int(counts.of(query)[0]) for query in queries] == [1, 0]


def test_a_memo_drops_what_was_used_longest_ago() -> None:
    made: list[str] = []
    memo: Memo[str] = Memo(2)

    def make(key: str) -> str:
        made.append(key)
        return key

    for key in ("a", "b", "a", "c", "a", "b"):
        memo.get(key, partial(make, key))
    assert made == ["a", "b", "c", "b"]


NODES = NodeTable(parse_node(raw) for raw in [node("a", zone="x"), node("b", zone="y"), node("c")])


def test_fields_other_than_the_name_are_empty() -> None:
    odd = requires({"matchFields": [expression("metadata.namespace", "NotIn", "z")]})
    assert list(NODES.admitted_by_affinity(parse_pod(pod(affinity=odd)).node_affinity)) == [True, True, True]


def test_answers_can_be_changed_without_changing_the_next_one() -> None:
    affinity = parse_pod(pod(nodeSelector={"zone": "x"})).node_affinity
    first = NODES.admitted_by_affinity(affinity)
    first[:] = True
    assert list(NODES.admitted_by_affinity(affinity)) == [True, False, False]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a state, and that undoing them leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parse
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import (
    ClusterState,
    StateError,
    cluster_state,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

from unit.plugins.module_utils._scheduler.builders import (
    HOST,
    Json,
    apart,
    claim,
    mounts,
    near,
    node,
    pod,
    spread,
    term,
    volume,
)

ZONE = "topology.kubernetes.io/zone"
NAMES = ("a", "b", "c")
NODES = [node(name, **{ZONE: zone}) for name, zone in zip(NAMES, "xxy", strict=True)]
LISTS: dict[str, list[Json]] = {
    "nodes": NODES,
    "namespaces": [{"metadata": {"name": "default", "labels": {"team": "t"}}}],
    "pvcs": [claim(name, volume=f"pv-{name}", mode="ReadWriteOncePod") for name in "12"],
    "pvs": [volume(f"pv-{name}", csi={"driver": "d", "volumeHandle": name}) for name in "12"],
    "csinodes": [
        {"metadata": {"name": name}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}}
        for name in NAMES
    ],
}
WISHES = [
    {},
    apart(term(HOST, {"matchLabels": {"app": "x"}})),
    apart(term(ZONE, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["y"]}]})),
    near(term(ZONE, {"matchLabels": {"app": "y"}})),
    {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term(ZONE, {})}]
        }
    },
]


@st.composite
def pods(draw: st.DrawFn, name: str) -> Json:
    """A pod that touches as many of the state's accounts as possible."""
    spec: dict[str, Any] = {
        "labels": {"app": draw(st.sampled_from("xyz"))},
        "requests": {"cpu": f"{draw(st.integers(0, 2000))}m", "example.org/gpu": draw(st.sampled_from("01"))},
        "affinity": draw(st.sampled_from(WISHES)),
        "volumes": mounts(*draw(st.sets(st.sampled_from("12")))),
    }
    if draw(st.booleans()):
        ports = [{"hostPort": 80, "hostIP": draw(st.sampled_from(["", "10.0.0.1"]))}]
        spec["volumes"].append({"name": "disk", "iscsi": {"iqn": "i", "readOnly": draw(st.booleans())}})
        spec["containers"] = [{"name": "c", "ports": ports}]
    if draw(st.integers(0, 4)) == 0:
        spec["metadata"] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return pod(name, **spec)


SITUATIONS = st.tuples(*(st.tuples(pods(f"p{number}"), st.sampled_from(NAMES)) for number in range(4)))
ASKED = [
    pod(labels={"app": "x"}, requests={"cpu": "1", "memory": "1Gi"}),
    pod(labels={"app": "y"}, affinity=WISHES[1] | WISHES[3], volumes=mounts("1")),
    pod(labels={"app": "z"}, affinity=WISHES[2], containers=[{"name": "c", "ports": [{"hostPort": 80}]}]),
    pod(
        labels={"app": "x"},
        volumes=[{"name": "disk", "iscsi": {"iqn": "i"}}, *mounts("2")],
        topologySpreadConstraints=[
            spread(ZONE, {"matchLabels": {"app": "x"}}),
            spread(HOST, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 2, soft=True),
        ],
    ),
]


def answers(state: ClusterState) -> list[dict[str, Any]]:
    """All that can be seen of a state: verdicts with scores on pods that ask about everything."""
    return [explain(parse(asked), state, scores=True) for asked in ASKED]


def built(situation: tuple[tuple[Json, str], ...]) -> ClusterState:
    placed = [{**raw, "spec": {**raw["spec"], "nodeName": name}} for raw, name in situation]
    return cluster_state({**LISTS, "pods": placed})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SITUATIONS)
def test_adding_pods_gives_the_state_that_was_built_with_them(situation: tuple[tuple[Json, str], ...]) -> None:
    state = built(situation[:2])
    answers(state)
    for raw, name in situation[2:]:
        state.add(occupant(raw), name)
    assert answers(state) == answers(built(situation))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SITUATIONS, st.permutations(range(4)), st.lists(st.sampled_from(NAMES), min_size=4, max_size=4))
def test_undoing_leaves_no_trace(situation: tuple[tuple[Json, str], ...], order: list[int], targets: list[str]) -> None:
    state = built(situation[:3])
    before = answers(state)
    changes = [state.add(occupant(situation[3][0]), situation[3][1])]
    for number, target in zip(order, targets, strict=True):
        key = f"default/p{number}"
        changes.append(state.remove(key) if number % 2 else state.move(key, target))
        answers(state)
    for change in reversed(changes):
        state.undo(change)
    assert answers(state) == before
    assert {placement.occupant.key for placement in state.placements()} == {f"default/p{number}" for number in range(3)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SITUATIONS, st.sampled_from(NAMES))
def test_moving_gives_the_state_that_was_built_there(situation: tuple[tuple[Json, str], ...], target: str) -> None:
    state = built(situation)
    answers(state)
    state.move("default/p0", target)
    assert answers(state) == answers(built(((situation[0][0], target), *situation[1:])))


def test_asking_changes_nothing() -> None:
    state = built(((pod("p0", status={}), "a"),))
    assert answers(state) == answers(state)


def test_more_pods_than_there_were_slots() -> None:
    state = cluster_state({"nodes": [node("a", allocatable={"pods": "1000"})]})
    wanted = parse(pod(affinity=apart(term(HOST, {"matchLabels": {"app": "x"}}))))
    assert explain(wanted, state)["fit"] == ["a"]
    for number in range(100):
        state.add(occupant(pod(f"p{number}")), "a")
    assert explain(wanted, state)["fit"] == ["a"]
    state.add(occupant(pod("last", labels={"app": "x"})), "a")
    assert explain(wanted, state)["fit"] == []


def test_changes_that_do_not_fit() -> None:
    state = built(((pod("p0"), "a"),))
    with pytest.raises(StateError, match="default/p0 is on a already"):
        state.add(occupant(pod("p0")), "b")
    with pytest.raises(StateError, match="there is no such node"):
        state.add(occupant(pod("p1")), "z")
    with pytest.raises(StateError, match="there is no such node"):
        state.move("default/p0", "z")
    with pytest.raises(StateError, match="default/p9 is on no node"):
        state.remove("default/p9")
    assert state.placement("default/p0").node == "a"
    assert "default/p0" in state

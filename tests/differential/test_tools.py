# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the comparison is made of: it must see differences, keep what matters of a case, and tell cases apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from differential import files, upstream
from differential.cases.cluster import case
from differential.compare import differences
from differential.mutations import mutations
from differential.shrink import shrink

Json = dict[str, Any]

FITTING: Json = {"fit": ["n1", "n2"], "unfit": {"n3": ["a", "b"]}, "message": "", "scores": {"n1": 3, "n2": 3}}


@pytest.mark.parametrize(
    "change",
    [
        {"fit": ["n1"]},
        {"unfit": {"n3": ["a"]}},
        {"unfit": {"n3": ["a", "b", "b"]}},
        {"unfit": {"n3": ["a", "b"], "n2": ["a"]}},
        {"message": "0/3 nodes are available: 3 a."},
        {"gated": ["gate"]},
        {"scores": {"n1": 3, "n2": 4}},
        {"scores": {"n1": 3}},
        {"error": "it failed"},
        {"failure": "KeyError"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_difference_is_seen(change: Json) -> None:
    assert len(differences(FITTING, FITTING | change)) == 1


def test_order_is_no_difference() -> None:
    assert not differences(FITTING, FITTING | {"fit": ["n2", "n1"], "unfit": {"n3": ["b", "a"]}, "gated": []})


def test_shrinking_leaves_what_is_needed() -> None:
    """A pod that is interesting together with one of the nodes, and a label of that."""

    def interesting(cases: list[Json]) -> list[bool]:
        return [
            any(node["metadata"].get("labels", {}).get("k") == "v" for node in one["lists"].get("nodes", []))
            and any(pod["spec"].get("nodeName") == "n7" for pod in one["lists"].get("pods", []))
            for one in cases
        ]

    nodes = [{"metadata": {"name": f"n{i}", "labels": {"k": "v" if i == 3 else "w"}}, "spec": {}} for i in range(9)]
    pods = [{"metadata": {"name": f"p{i}"}, "spec": {"nodeName": f"n{i}", "priority": 1}} for i in range(9)]
    given = {"lists": {"nodes": nodes, "pods": pods, "pvcs": []}, "asked": [{"metadata": {"name": "a"}}]}
    assert shrink(given, interesting) == {
        "lists": {
            "nodes": [{"metadata": {"name": "n3", "labels": {"k": "v"}}, "spec": {}}],
            "pods": [{"metadata": {"name": "p7"}, "spec": {"nodeName": "n7"}}],
        },
        "asked": [{"metadata": {"name": "a"}}],
    }


def test_a_seed_gives_the_same_case_again() -> None:
    assert case(5, 3) == case(5, 3)
    assert case(5, 3) != case(5, 4)
    assert case(5, 3) != case(6, 3)


def test_mistakes_are_real_ones() -> None:
    source = "def f(a: int | None, b: int) -> bool:\n    return not a and b < 2\n"
    made = {mutation.source for mutation in mutations(source)}
    assert {wrong.rpartition("return ")[2] for wrong in made} == {
        "not a or b < 2",
        "not not a and b < 2",
        "not a and b <= 2",
        "not a and b < 3",
    }


def test_files_hold_cases_in_either_form(tmp_path: Path) -> None:
    node = {"metadata": {"name": "n1"}, "status": {"capacity": {"pods": "1"}}}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    ours = {"lists": {"nodes": [node]}, "asked": [pod], "scores": True}
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, [ours, {"nodes": [node], "pod": pod, "scores": True}])))
    assert list(files.read(path)) == [ours, ours]
    assert next(upstream.judge(list(upstream.store([ours]))))[0]["fit"] == ["n1"]


def test_what_no_api_server_takes_is_refused() -> None:
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": []}}
    with pytest.raises(upstream.OracleError, match=r"spec\.containers: Required value"):
        list(upstream.store([{"lists": {}, "asked": [pod]}]))


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(upstream.OracleError, match=r'unknown field "spec\.unschedulabel"'):
        list(upstream.store([{"lists": {"nodes": [{"spec": {"unschedulabel": True}}]}, "asked": []}]))


def test_kube_schedulers_own_time_is_measured() -> None:
    (stored,) = upstream.store([case(1, 1)])
    assert 0 < upstream.timed(stored) < 1

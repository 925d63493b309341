# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free on nodes: amounts, places for pods, host ports."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters import node_ports
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_resources_fit import (
    TOO_MANY_PODS,
)

from unit.plugins.module_utils._scheduler.asking import fit, message, reasons
from unit.plugins.module_utils._scheduler.builders import Json, node, pod

FITS: list[tuple[str, Json, list[Json], list[str]]] = [
    ("exactly", {"cpu": "4", "memory": "8Gi"}, [], []),
    ("one too many", {"cpu": "4001m"}, [], ["Insufficient cpu"]),
    ("one byte too many", {"memory": str(8 * 2**30 + 1)}, [], ["Insufficient memory"]),
    ("beside another", {"cpu": "2"}, [{"cpu": "2001m"}], ["Insufficient cpu"]),
    (
        "several at once",
        {"cpu": "5", "memory": "9Gi", "ephemeral-storage": "1"},
        [],
        ["Insufficient cpu", "Insufficient ephemeral-storage", "Insufficient memory"],
    ),
    ("an unknown extended resource", {"example.org/gpu": "1"}, [], ["Insufficient example.org/gpu"]),
    ("zero of an unknown one", {"example.org/gpu": "0"}, [], []),
    ("what is not asked may be overcommitted", {"memory": "1"}, [{"cpu": "9"}], []),
    ("zero of what is overcommitted", {"cpu": "0", "memory": "1"}, [{"cpu": "9"}], []),
    ("huge pages", {"hugepages-2Mi": "2Mi"}, [], ["Insufficient hugepages-2Mi"]),
]


@pytest.mark.parametrize(("_what", "wanted", "taken", "expected"), FITS, ids=[case[0] for case in FITS])
def test_amounts(_what: str, wanted: Json, taken: list[Json], expected: list[str]) -> None:
    pods = [pod(f"p{number}", on="n", requests=requests) for number, requests in enumerate(taken)]
    assert reasons(pod(requests=wanted), nodes=[node("n")], pods=pods) == {"n": expected}


def test_places_for_pods() -> None:
    nodes = [
        node("full", allocatable={"pods": "1"}),
        node("free", allocatable={"pods": "2"}),
        node("unknown", allocatable={}),
    ]
    pods = [pod("p", on="full"), pod("q", on="free")]
    assert reasons(pod(), nodes=nodes, pods=pods) == {"full": [TOO_MANY_PODS], "free": [], "unknown": [TOO_MANY_PODS]}


def test_counts_of_reasons_can_exceed_the_number_of_nodes() -> None:
    text = message(pod(requests={"cpu": "5", "memory": "9Gi"}), nodes=[node("n")])
    assert text == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."


COUNTING: list[tuple[str, Json, bool]] = [
    ("running", {"on": "n"}, True),
    ("succeeded", {"on": "n", "status": {"phase": "Succeeded"}}, False),
    ("failed", {"on": "n", "status": {"phase": "Failed"}}, False),
    ("unknown", {"on": "n", "status": {"phase": "Unknown"}}, True),
    ("without a phase", {"on": "n", "status": {"phase": ""}}, True),
    ("terminating", {"on": "n", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
    ("without a node", {}, False),
    ("on a vanished node", {"on": "gone"}, False),
]


@pytest.mark.parametrize(("_what", "fields", "counts"), COUNTING, ids=[case[0] for case in COUNTING])
def test_which_pods_count(_what: str, fields: Json, counts: bool) -> None:
    taken = pod("p", requests={"cpu": "4"}, **fields)
    assert reasons(pod(requests={"cpu": "1"}), nodes=[node("n")], pods=[taken]) == {
        "n": ["Insufficient cpu"] if counts else []
    }


def port(number: int, address: str = "", protocol: str = "TCP", *, init: bool = False, sidecar: bool = False) -> Json:
    container: dict[str, Any] = {"name": "c", "ports": [{"hostPort": number, "hostIP": address, "protocol": protocol}]}
    if not init and not sidecar:
        return {"containers": [container]}
    kept = {"restartPolicy": "Always"} if sidecar else {}
    return {"containers": [{"name": "main"}], "initContainers": [{**container, **kept}]}


PORTS: list[tuple[str, Json, Json, bool]] = [
    ("the same", port(80), port(80), False),
    ("another number", port(80), port(81), True),
    ("another protocol", port(80), port(80, protocol="UDP"), True),
    ("two addresses", port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
    ("one address and all", port(80, "10.0.0.1"), port(80), False),
    ("all, written out, and one", port(80, "0.0.0.0"), port(80, "10.0.0.1"), False),
    ("an init container is gone", port(80, init=True), port(80), True),
    ("a sidecar stays", port(80, sidecar=True), port(80), False),
    ("the pod's own init container", port(80), port(80, init=True), True),
]


@pytest.mark.parametrize(("_what", "taken", "wanted", "fits"), PORTS, ids=[case[0] for case in PORTS])
def test_host_ports(_what: str, taken: Json, wanted: Json, fits: bool) -> None:
    found = reasons(pod(**wanted), nodes=[node("n")], pods=[pod("p", on="n", **taken)])
    assert found == {"n": [] if fits else [node_ports.REASON]}


def test_ports_of_another_node_are_no_concern() -> None:
    assert fit(pod(**port(80)), nodes=[node("a"), node("b")], pods=[pod("p", on="a", **port(80))]) == ["b"]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many volumes of a driver a node takes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters import node_volume_limits
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._scheduler.asking import fit, reasons
from unit.plugins.module_utils._scheduler.builders import Json, claim, mounts, node, pod, storage_class, volume

NODES = [node("a"), node("b")]
DYNAMIC = storage_class("dynamic")


def csi(name: str, handle: str) -> Json:
    return volume(name, csi={"driver": "csi.example.org", "volumeHandle": handle})


def limits(most: int) -> list[Json]:
    drivers = [{"name": "csi.example.org", "allocatable": {"count": most}}, {"name": "boundless"}]
    return [
        {"metadata": {"name": "a"}, "spec": {"drivers": drivers}},
        {"metadata": {"name": "vanished"}, "spec": {"drivers": drivers}},
    ]


COUNTED: list[tuple[str, int, list[str], bool]] = [
    # The volumes that pods on the node use, and whether one called new may be added.
    ("room for one", 2, ["one"], True),
    ("full", 1, ["one"], False),
    ("full, but it is there already", 1, ["new"], True),
    ("used twice, it counts once", 2, ["one", "one"], True),
]


@pytest.mark.parametrize(("_what", "most", "used", "fits"), COUNTED, ids=[case[0] for case in COUNTED])
def test_volumes_of_a_driver_are_counted(_what: str, most: int, used: list[str], fits: bool) -> None:
    lists: dict[str, Any] = {
        "nodes": NODES,
        "pvcs": [claim(name, volume=f"pv-{name}") for name in ("one", "new")],
        "pvs": [csi(f"pv-{name}", name) for name in ("one", "new")],
        "csinodes": limits(most),
        "pods": [pod(f"p{number}", on="a", volumes=mounts(name)) for number, name in enumerate(used)],
    }
    assert reasons(pod(volumes=mounts("new")), **lists) == {"a": [] if fits else [node_volume_limits.REASON], "b": []}


def test_a_pod_with_a_foreign_ephemeral_claim_makes_its_node_uncountable() -> None:
    thief = pod("thief", on="a", volumes=[{"name": "scratch", "ephemeral": {}}])
    lists = {
        "pvcs": [claim("new", volume="pv-new"), claim("thief-scratch")],
        "pvs": [csi("pv-new", "new")],
        "csinodes": limits(9),
        "pods": [thief],
    }
    stumbling = {
        "fit": [],
        "unfit": {},
        "message": "",
        "error": "PVC default/thief-scratch was not created for the pod that uses it",
    }
    assert verdict({**lists, "nodes": NODES}, pod(volumes=mounts("new"))) == stumbling
    # A node that another plugin has ruled out before is not come to, nor one without limits.
    cordoned = [node("a", cordoned=True), NODES[1]]
    assert fit(pod(volumes=mounts("new")), **lists, nodes=cordoned) == ["b"]
    assert fit(pod(volumes=mounts("new")), **{**lists, "csinodes": []}, nodes=NODES) == ["a", "b"]


def test_what_is_attached_counts_even_without_a_pod() -> None:
    attachment = {
        "metadata": {"name": "x"},
        "spec": {"nodeName": "a", "attacher": "csi.example.org", "source": {"persistentVolumeName": "pv-one"}},
    }
    lists = {
        "nodes": NODES,
        "pvcs": [claim("new", volume="pv-new")],
        "pvs": [csi("pv-one", "one"), csi("pv-new", "new")],
        "csinodes": limits(1),
    }
    assert fit(pod(volumes=mounts("new")), **lists) == ["a", "b"]
    assert fit(pod(volumes=mounts("new")), **lists, volumeattachments=[attachment]) == ["b"]


def test_a_claim_that_waits_counts_for_the_driver_of_its_class() -> None:
    lists = {
        "nodes": NODES,
        "pvcs": [claim("new", storage_class="dynamic")],
        "storageclasses": [DYNAMIC],
        "csinodes": limits(0),
    }
    assert reasons(pod(volumes=mounts("new")), **lists) == {"a": [node_volume_limits.REASON], "b": []}


def test_built_in_types_count_for_the_driver_that_took_them_over() -> None:
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 1}}]
    used = pod("p", on="a", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://eu/vol-1"}}])
    wanted = pod(volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "vol-2"}}])
    csinodes = [{"metadata": {"name": "a"}, "spec": {"drivers": drivers}}]
    assert fit(wanted, nodes=NODES, pods=[used], csinodes=csinodes) == ["b"]

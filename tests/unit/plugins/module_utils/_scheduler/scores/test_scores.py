# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each score by itself, on numbers that can be checked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parse
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import PluginError, ScorePlugin
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.balanced_allocation import (
    BalancedAllocation,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.image_locality import ImageLocality
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.inter_pod_affinity_score import (
    InterPodAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_affinity_score import (
    NodeAffinityScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.node_resources_fit_score import (
    NodeResourcesFitScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.pod_topology_spread_score import (
    PodTopologySpreadScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.taint_toleration_score import (
    TaintTolerationScore,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._scheduler.builders import HOST, Json, expression, near, node, pod, spread, term

ZONE = "topology.kubernetes.io/zone"
APP = {"matchLabels": {"app": "x"}}
PREFER = "PreferNoSchedule"


def points(plugin: ScorePlugin, asked: Json, **lists: Any) -> list[int] | None:
    """Scores of the nodes that fit, in their order; None if the plugin has nothing to say."""
    state = cluster_state(lists)
    wanted = parse(asked)
    found = plugin.score(wanted, state, evaluate(wanted, state, FILTERS).feasible)
    return None if found is None else [int(score) for score in found]


def test_taints_that_one_would_rather_avoid() -> None:
    taints = [{"key": key, "effect": PREFER} for key in "kl"]
    nodes = [node("none"), node("one", taints=taints[:1]), node("two", taints=taints)]
    assert points(TaintTolerationScore(), pod(), nodes=nodes) == [100, 50, 0]
    assert points(TaintTolerationScore(), pod(tolerations=[{"key": "l", "operator": "Exists"}]), nodes=nodes) == [
        100,
        0,
        0,
    ]
    tolerant = pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
    assert points(TaintTolerationScore(), tolerant, nodes=nodes[:1]) == [100]


def preferring(*terms: tuple[int, Json]) -> Json:
    wishes = [{"weight": weight, "preference": preference} for weight, preference in terms]
    return pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}})


def test_preferred_node_affinity() -> None:
    nodes = [node("a", zone="x"), node("b", zone="y", disk="fast"), node("c")]
    zone, disk = ({"matchExpressions": [expression(key, "Exists")]} for key in ("zone", "disk"))
    assert points(NodeAffinityScore(), preferring((2, zone), (1, disk), (9, {})), nodes=nodes) == [66, 100, 0]
    assert points(NodeAffinityScore(), pod(), nodes=nodes) is None


def test_a_preferred_term_that_cannot_be_parsed_fails_the_pod() -> None:
    bad = {"matchExpressions": [expression("rank", "Gt", "x")]}
    with pytest.raises(PluginError, match="cannot parse"):
        points(NodeAffinityScore(), preferring((1, bad)), nodes=[node("a")])
    assert points(NodeAffinityScore(), preferring((0, bad)), nodes=[node("a")]) == [0]
    answer = verdict({"nodes": [node("a")]}, preferring((1, bad)), scores=True)
    assert answer["fit"] == ["a"]
    assert "cannot parse" in answer["error"]
    assert "scores" not in answer


def test_emptier_or_fuller_nodes() -> None:
    nodes = [node("empty"), node("half"), node("none", allocatable={"pods": "9"})]
    pods = [pod("p", on="half", requests={"cpu": "2", "memory": "4Gi"})]
    asked = pod(requests={"cpu": "1", "memory": "2Gi"})
    assert points(NodeResourcesFitScore(), asked, nodes=nodes[:2], pods=pods) == [75, 25]
    assert points(NodeResourcesFitScore(most=True), asked, nodes=nodes[:2], pods=pods) == [25, 75]
    # A pod without requests is taken to use a tenth of a core, of 4, and 200 MiB, of 8 GiB.
    assert points(NodeResourcesFitScore(), pod(), nodes=nodes, pods=pods) == [(97 + 97) // 2, (47 + 47) // 2, 0]


def test_balance_of_cpu_and_memory() -> None:
    nodes = [node("even"), node("cpu-heavy")]
    pods = [pod("p", on="cpu-heavy", requests={"cpu": "2"})]
    asked = pod(requests={"memory": "4Gi"})
    # even: 100 before, 75 after; cpu-heavy: 75 before, 100 after.
    assert points(BalancedAllocation(), asked, nodes=nodes, pods=pods) == [62, 87]
    assert points(BalancedAllocation(), pod(), nodes=nodes) is None


def test_images_that_are_there() -> None:
    images = [{"names": ["example.org/app:latest"], "sizeBytes": 1000 * 2**20}]
    nodes = [node("has", status={"images": images}), node("lacks")]
    asked = pod(containers=[{"name": "c", "image": "example.org/app"}])
    assert points(ImageLocality(), asked, nodes=nodes) == [100 * (500 - 23) // (1000 - 23), 0]
    assert points(
        ImageLocality(), pod(volumes=[{"name": "v", "image": {"reference": "example.org/app"}}]), nodes=nodes
    ) == [48, 0]


def test_the_size_of_an_image_is_what_the_first_node_says() -> None:
    sizes = (1000 * 2**20, 1)
    nodes = [
        node(name, status={"images": [{"names": ["app:1"], "sizeBytes": size}]})
        for name, size in zip("ab", sizes, strict=True)
    ]
    asked = pod(containers=[{"name": "c", "image": "app:1"}])
    assert points(ImageLocality(), asked, nodes=nodes) == [100, 100]


def wishing(weight: int, side: str = "podAffinity") -> Json:
    wish = {"weight": weight, "podAffinityTerm": term(ZONE, APP)}
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def test_preferred_company() -> None:
    nodes = [node("a", **{ZONE: "x"}), node("b", **{ZONE: "x"}), node("c", **{ZONE: "y"}), node("d")]
    pods = [
        pod("p", on="a", labels={"app": "x"}),
        pod("q", on="c", labels={"app": "x"}),
        pod("r", on="b", labels={"app": "x"}),
    ]
    assert points(InterPodAffinityScore(), pod(affinity=wishing(10)), nodes=nodes, pods=pods) == [100, 100, 50, 0]
    assert points(InterPodAffinityScore(), pod(affinity=wishing(10, "podAntiAffinity")), nodes=nodes, pods=pods) == [
        0,
        0,
        50,
        100,
    ]
    assert points(InterPodAffinityScore(), pod(), nodes=nodes, pods=pods) is None


def test_wishes_of_others() -> None:
    nodes = [node("a", **{ZONE: "x"}), node("b", **{ZONE: "y"}), node("c", **{ZONE: "z"})]
    pods = [
        pod("p", on="a", affinity=wishing(4)),
        pod("q", on="b", labels={"app": "x"}, affinity=near(term(ZONE, APP))),
        pod("r", on="c", affinity=wishing(4, "podAntiAffinity")),
    ]
    # 4 for being wished, 1 for being required, -4 for being unwished.
    assert points(InterPodAffinityScore(), pod(labels={"app": "x"}), nodes=nodes, pods=pods) == [100, 62, 0]


def test_soft_spreading() -> None:
    nodes = [node("a", **{ZONE: "x"}), node("b", **{ZONE: "y"}), node("bare")]
    pods = [pod(f"p{number}", on="a", labels={"app": "x"}) for number in range(2)]
    asked = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(ZONE, APP, soft=True)])
    # log(2 domains + 2) x 2 pods is about 2.8; the node without a zone does not count.
    assert points(PodTopologySpreadScore(), asked, nodes=nodes, pods=pods) == [0, 100, 0]
    assert points(PodTopologySpreadScore(), pod(), nodes=nodes, pods=pods) is None


def test_default_spreading_is_over_hosts_and_zones() -> None:
    nodes = [node("a", **{ZONE: "x"}), node("b", **{ZONE: "x"}), node("c", **{ZONE: "y"}), node("bare")]
    pods = [pod("p", on="a", labels={"app": "x"})]
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}}
    found = points(PodTopologySpreadScore(), pod(labels={"app": "x"}), nodes=nodes, pods=pods, services=[service])
    # Host: 1 pod x log 6 + 2; zone: 1 pod x log 5 + 4. Rounded 9, 8, 6, 2.
    assert found == [100 * (9 + 2 - 9) // 9, 100 * (9 + 2 - 8) // 9, 100 * (9 + 2 - 6) // 9, 100]


def test_an_empty_zone_is_one_with_those_without() -> None:
    nodes = [node("a", **{ZONE: ""}), node("b", **{ZONE: "y"}), node("bare")]
    pods = [pod("p", on="bare", labels={"app": "x"})]
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}}
    found = points(PodTopologySpreadScore(), pod(labels={"app": "x"}), nodes=nodes, pods=pods, services=[service])
    # Hosts: log 5 x 0, 0, 1, and 2 each; zones: log 4 x 1 and 4, 4, nothing. Rounded 7, 6, 4.
    assert found == [100 * (7 + 4 - 7) // 7, 100 * (7 + 4 - 6) // 7, 100]


OWNERS: list[tuple[str, str, str, Json]] = [
    ("replicationcontrollers", "v1", "ReplicationController", {"app": "x"}),
    ("replicasets", "apps/v1", "ReplicaSet", APP),
    ("statefulsets", "apps/v1", "StatefulSet", APP),
]


@pytest.mark.parametrize(("kind", "version", "name", "selector"), OWNERS)
def test_default_spreading_follows_the_controller(kind: str, version: str, name: str, selector: Json) -> None:
    owner = {"metadata": {"name": "o", "namespace": "default"}, "spec": {"selector": selector}}
    reference = {"apiVersion": version, "kind": name, "name": "o", "controller": True}
    asked = pod(labels={"app": "x"}, metadata={"ownerReferences": [reference]})
    lists: dict[str, Any] = {"nodes": [node("a"), node("b")], "pods": [pod("p", on="a", labels={"app": "x"})]}
    found = points(PodTopologySpreadScore(), asked, **lists, **{kind: [owner]})
    assert found is not None
    assert found[0] < found[1]
    assert points(PodTopologySpreadScore(), asked, **lists) is None


def test_profiles() -> None:
    lists = {
        "nodes": [node("empty"), node("half")],
        "pods": [pod("p", on="half", requests={"cpu": "2", "memory": "4Gi"})],
    }
    asked = pod(requests={"cpu": "1", "memory": "2Gi"})
    low, high, none = (
        verdict(lists, asked, scores=True, profile=profile)["scores"]
        for profile in ("LowNodeUtilization", "HighNodeUtilization", "NoScoring")
    )
    assert low["empty"] > low["half"]
    assert high["half"] > high["empty"]
    assert none == {"empty": 1, "half": 1}


def test_hosts_are_spread_by_what_is_on_each() -> None:
    nodes = [node("a"), node("b")]
    pods = [pod("p", on="a", labels={"app": "x"})]
    asked = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(HOST, APP, soft=True)])
    assert points(PodTopologySpreadScore(), asked, nodes=nodes, pods=pods) == [0, 100]

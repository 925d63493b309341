# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be true after the demonstration: each outcome is a sentence with a yes or no."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from demo.history import ENDED, History
from testbed.api import Api, Object, resource_path

NAMESPACE = "customapp"
HIGH = frozenset({"kni-worker2", "kni-worker4", "kni-worker6"})
REGULAR = frozenset({"kni-worker", "kni-worker3", "kni-worker5"})
# Of a pod, in what was planned: where one in its place was expected.
COMES = "comes back on"
LABEL = "virtops.kubevirt/maintained"


class Outcome(NamedTuple):
    sentence: str
    holds: bool


class Cluster(NamedTuple):
    """Objects as they are at one moment."""

    nodes: list[Object]
    pods: list[Object]

    @classmethod
    def now(cls, api: Api) -> Cluster:
        return cls(api.items("/api/v1/nodes"), api.items(resource_path("v1", "pods", NAMESPACE)))

    def where(self) -> dict[str, list[str]]:
        """Nodes of each tier's pods that have not ended."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for pod in self.pods:
            if pod["status"].get("phase") not in ENDED and "deletionTimestamp" not in pod["metadata"]:
                found[pod["metadata"]["labels"]["app"]].append(pod["spec"].get("nodeName", ""))
        return {app: sorted(nodes) for app, nodes in found.items()}


def at_home(cluster: Cluster) -> Iterator[Outcome]:
    where = cluster.where()
    yield Outcome("every database is on a high-performance node, one in each zone", where["mssql2016"] == sorted(HIGH))
    yield Outcome("every cache is on a regular node, one in each zone", where["cache"] == sorted(REGULAR))
    yield Outcome("every black box is beside a cache", where["blackbox"] == where["cache"])


def maintained(cluster: Cluster, before: Cluster, run: str) -> Iterator[Outcome]:
    yield Outcome(
        "every node has rebooted",
        all(boot_ids(cluster)[node] != boot_id for node, boot_id in boot_ids(before).items()),
    )
    yield Outcome(
        "no node is cordoned, and each says that the run is done with it",
        all(
            not node["spec"].get("unschedulable") and node["metadata"]["labels"].get(LABEL) == run
            for node in cluster.nodes
        ),
    )


def remembered(history: History) -> Iterator[Outcome]:
    yield Outcome("there never were two databases in a zone, nor two black boxes", not history.crowded)
    yield Outcome("no black box was ever down or started anew", not _disturbances(history, "blackbox"))
    yield Outcome(
        "each database was stopped once, while its node was away", len(history.newcomers("mssql2016")) == len(HIGH)
    )


def drained(entries: list[dict[str, Any]]) -> Iterator[Outcome]:
    """What the drains said they did; see callback/narrator.py."""
    ways = {entry["host"]: entry["ways"] for entry in entries if entry["ways"]}
    stopped = {node for node, way in ways.items() if way["interrupted"]}
    yield Outcome("a database of a drained node had no other legal node", stopped == HIGH)
    yield Outcome(
        "cache and black box left a regular node together, for the high-performance node of the same zone",
        {node: way["moves"] for node, way in ways.items() if way["moves"]}
        == {"kni-worker": ["kni-worker2"], "kni-worker3": ["kni-worker4"], "kni-worker5": ["kni-worker6"]},
    )


def came_true(entries: list[dict[str, Any]]) -> Iterator[Outcome]:
    """How much of what the plan had printed the drains have done.

    Pods are judged by where those in their place have come, unless the plan has told that as an assumption: of nodes
    that are equally good the scheduler takes any. One that was foretold for such a node may never have been there.
    """
    ways = [entry["ways"] for entry in entries if entry["ways"]]
    as_planned, otherwise = sum(way["as_planned"] for way in ways), [each for way in ways for each in way["deviations"]]
    told = f" (but {'; '.join(line for _kind, line, _assumed in otherwise)})" if otherwise else ""
    yield Outcome(
        f"{as_planned} of {as_planned + len(otherwise)} virtual machines and pods left their nodes as planned{told}",
        bool(as_planned) and all(kind == "pod" and (assumed or COMES not in line) for kind, line, assumed in otherwise),
    )


def boot_ids(cluster: Cluster) -> dict[str, str]:
    return {node["metadata"]["name"]: node["status"]["nodeInfo"]["bootID"] for node in cluster.nodes}


def _disturbances(history: History, app: str) -> list[str]:
    return [*history.interruptions(app), *history.newcomers(app)]

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as a small picture: zones side by side, in each its nodes, on each what runs there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from testbed.api import Object

ZONE = "topology.kubernetes.io/zone"
APP = "app"
WIDTH = 24
ENDED = ("Succeeded", "Failed")


def draw(nodes: Iterable[Object], pods: Iterable[Object]) -> list[str]:
    """Lines of text. Pods that have ended are not there any more; those without a node stand below."""
    living = [
        pod for pod in pods if pod["status"].get("phase") not in ENDED and "deletionTimestamp" not in pod["metadata"]
    ]
    zones: dict[str, list[list[str]]] = {}
    for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"])):
        zone = node["metadata"].get("labels", {}).get(ZONE, "no zone")
        zones.setdefault(zone, []).append(_node(node, living))
    columns = [_column(zone, boxes) for zone, boxes in zones.items()]
    lines = ["  ".join(parts).rstrip() for parts in zip_longest(*columns, fillvalue=" " * WIDTH)]
    waiting = sorted(_name(pod) for pod in living if not pod["spec"].get("nodeName"))
    return [*lines, *(f"waiting for a node: {name}" for name in waiting)]


def _column(zone: str, boxes: Sequence[Sequence[str]]) -> list[str]:
    return [f"zone {zone}".center(WIDTH), *(line for box in boxes for line in box)]


def _node(node: Object, pods: Sequence[Object]) -> list[str]:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
    mark = "*" if labels.get("performance") == "high" else ""
    state = " cordoned" if node["spec"].get("unschedulable") else ""
    inside = sorted(_name(pod) for pod in pods if pod["spec"].get("nodeName") == name) or [""]
    body = [f"│ {text[: WIDTH - 4]:<{WIDTH - 4}} │" for text in inside]
    title = f" {name}{mark}{state} "
    return [f"┌{title:─^{WIDTH - 2}}┐", *body, f"└{'─' * (WIDTH - 2)}┘"]


def _name(pod: Mapping[str, Object]) -> str:
    """Its tier, with a sign for virtual machines."""
    labels = pod["metadata"].get("labels", {})
    sign = "▣" if labels.get("kubevirt.io") == "virt-launcher" else "○"
    return f"{sign} {labels.get(APP, pod['metadata']['name'])}"

# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that just fit, and pods that miss by one."""

from __future__ import annotations

from decimal import Decimal
from math import ceil

from kubernetes.utils.quantity import parse_quantity

from differential.cases.dice import Dice, Json

FINISHED = ("Succeeded", "Failed")


def fit_exactly(dice: Dice, lists: Json, asked: list[Json]) -> None:
    """Make some of the pods asked about request all that is left of one node, or one unit more or less.

    What is left is reckoned from plain requests only, so in a part of the cases it is not exact; that is no harm.
    """
    for pod in asked:
        if lists["nodes"] and dice.chance(0.12):
            node = dice.pick(lists["nodes"])
            running = [p for p in lists["pods"] if p["spec"].get("nodeName") == node["metadata"]["name"]]
            running = [p for p in running if p["status"]["phase"] not in FINISHED]
            resource = dice.pick(("cpu", "memory"))
            capacity = node["status"].get("allocatable", node["status"]["capacity"])
            left = amount(resource, capacity.get(resource, "0")) - sum(_requested(p, resource) for p in running)
            others = _requested({"spec": {"containers": pod["spec"]["containers"][1:]}}, resource)
            wish = left - others + dice.pick((-1, 0, 0, 1, 1))
            if wish > 0 and "resources" not in pod["spec"]:
                resources = pod["spec"]["containers"][0]["resources"]
                resources["requests"] = {**resources.pop("limits", {}), **resources.get("requests", {})}
                resources["requests"][resource] = f"{wish}m" if resource == "cpu" else str(wish)
                _keep_limits(resources)


def _keep_limits(resources: Json) -> None:
    """Resources that are not overcommitted need a limit that equals the request."""
    whole = {name: value for name, value in resources["requests"].items() if "/" in name or name.startswith("huge")}
    if whole:
        resources["limits"] = whole


def _requested(pod: Json, resource: str) -> int:
    total = 0
    for container in pod["spec"]["containers"]:
        resources = container["resources"]
        requests = {**resources.get("limits", {}), **resources.get("requests", {})}
        total += amount(resource, requests.get(resource, "0"))
    return total


def amount(resource: str, text: str) -> int:
    """Thousandths of a cpu, or bytes; rounded up."""
    units: Decimal = parse_quantity(text)
    return ceil(units * (1000 if resource == "cpu" else 1))

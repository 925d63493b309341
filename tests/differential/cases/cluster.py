# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole case from a seed: a small cluster about a few features, and the pods asked about."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json
from differential.cases.exact import fit_exactly
from differential.cases.nodes import nodes
from differential.cases.pods import Surroundings, asked_pod, present_pods
from differential.cases.spread import owners
from differential.cases.storage import classes, generic_claims, storage
from differential.cases.volumes import attachments, capacities, csi_drivers, csi_nodes

ASKED = 20
PROFILES = ("LowNodeUtilization",) * 4 + ("HighNodeUtilization", "NoScoring")

# Features that the same case is to have together, so that their rules meet.
THEMES: dict[str, dict[str, float]] = {
    "taints": {"taints": 0.5, "cordon": 0.2},
    "node-affinity": {"node-affinity": 0.5},
    "node-preference": {"node-preference": 0.6, "taints": 0.4},
    "images": {"images": 0.7, "init": 0.3},
    "resources": {
        "requests": 0.8,
        "init": 0.4,
        "overhead": 0.2,
        "pod-level": 0.3,
        "extended": 0.3,
        "hugepages": 0.3,
        "storage": 0.3,
    },
    "capacity": {"requests": 0.8, "odd-capacity": 0.3, "extended": 0.5, "resize": 0.4, "init": 0.3},
    "affinity": {"affinity": 0.5, "anti-affinity": 0.15, "odd-labels": 0.3},
    "anti-affinity": {"anti-affinity": 0.3, "odd-labels": 0.3},
    "pod-preference": {"pod-preference": 0.5},
    "spread": {"spread": 0.6, "odd-labels": 0.3, "taints": 0.2, "node-affinity": 0.15},
    "owners": {"owners": 0.9, "spread": 0.2},
    "ports": {"ports": 0.5, "init": 0.3},
    "claims": {"claims": 0.6, "zone-labels": 0.4, "generic": 0.12},
    "binding": {"claims": 0.8, "binding": 1.0},
    "inline": {"inline": 0.5, "claims": 0.2},
    "nominated": {"requests": 0.4, "nominated": 0.7, "anti-affinity": 0.15, "ports": 0.2, "spread": 0.3},
    "gates": {"gates": 0.4, "declared": 0.2},
}


def case(seed: int, number: int) -> Json:
    """The case of this number; the same for the same seed. Not yet as an API server stores it."""
    dice = Dice(f"{seed}/{number}")
    for theme in dice.some(tuple(THEMES), 3, 1):
        for feature, intensity in THEMES[theme].items():
            dice.intensity[feature] = max(intensity, dice.intensity.get(feature, 0.0))
    lists = cluster(dice)
    names = [node["metadata"]["name"] for node in lists["nodes"]]
    around = Surroundings(names, _claims(lists))
    lists["pods"] = present_pods(dice, dice.pick((0, 3, 8, 15, 25, 40)), around)
    asked = [asked_pod(dice, f"asked{index}", around) for index in range(ASKED)]
    fit_exactly(dice, lists, asked)
    asked += _waiting(dice, lists["pods"])
    if "claims" in dice.intensity:
        lists["pvcs"] += generic_claims(dice, [*asked, *lists["pods"]])
    return {"lists": lists, "asked": asked, "profile": dice.pick(PROFILES), "scores": True}


def cluster(dice: Dice) -> Json:
    """All lists but the pods."""
    found = {
        "nodes": nodes(dice, dice.pick((1, 2, 3, 4, 5, 6, 8, 8, 11, 12)) if dice.chance(0.98) else dice.pick((0, 40)))
    }
    names = [node["metadata"]["name"] for node in found["nodes"]]
    known = words.NAMESPACES if dice.chance(0.95) else words.NAMESPACES[1:]
    found["namespaces"] = [{"metadata": {"name": name, "labels": words.TEAM[name]}} for name in known]
    for node in found["nodes"]:
        if dice.feature("declared"):
            node["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    if "claims" in dice.intensity:
        claims, volumes = storage(dice, names)
        found |= {"storageclasses": classes(), "pvcs": claims, "pvs": volumes}
        found |= {"csinodes": csi_nodes(dice, names), "csidrivers": csi_drivers(dice)}
        found |= {"csistoragecapacities": capacities(dice)}
        found["volumeattachments"] = attachments(dice, names, [volume["metadata"]["name"] for volume in volumes])
    return found | owners(dice)


def _waiting(dice: Dice, pods: list[Json]) -> list[Json]:
    """Pods of the list itself that have no node yet, asked about as well."""
    return [pod for pod in pods if "nodeName" not in pod["spec"] and dice.chance(0.3)]


def _claims(lists: Json) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for claim in lists.get("pvcs", []):
        found.setdefault(claim["metadata"]["namespace"], []).append(claim["metadata"]["name"])
    return found
